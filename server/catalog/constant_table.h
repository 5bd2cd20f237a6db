// Named constants of a calibration record, read into the fields of a struct of the engine.
#ifndef SLICEPLAN_SERVER_CATALOG_CONSTANT_TABLE_H_
#define SLICEPLAN_SERVER_CATALOG_CONSTANT_TABLE_H_

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "proto/sliceplan/catalog/v1/catalog.pb.h"
#include "server/catalog/problems.h"

namespace sliceplan::catalog {

enum class ConstantRange {
  kNotNegative,
  kAtLeastOne,
  kShare,        // above 0, at most 1
  kShareOrNone,  // 0 to 1
  kCount,        // 0 to 2^30
  kIntervalEnd,  // of a time, as a ratio to the expected one: above 0; 0 for no interval
};

// What is wrong with a value; empty when nothing is.
absl::string_view FaultOf(double value, ConstantRange range);

template <typename Profile>
struct NumberConstant {
  absl::string_view name;
  double Profile::*member;
  ConstantRange range;
};

template <typename Profile>
struct FlagConstant {
  absl::string_view name;
  bool Profile::*member;
};

template <typename Profile>
struct ConstantTable {
  absl::Span<const NumberConstant<Profile>> numbers;
  absl::Span<const FlagConstant<Profile>> flags;
  absl::string_view header;  // that lists the names
};

template <typename Profile>
void ApplyConstant(const ConstantTable<Profile>& table, const v1::Constant& constant, Profile& profile,
                   RecordProblems& problems) {
  const std::string field = absl::StrCat("constants[", constant.name(), "]");
  for (const NumberConstant<Profile>& number : table.numbers) {
    if (number.name != constant.name()) continue;
    const absl::string_view fault = FaultOf(constant.value(), number.range);
    if (!fault.empty()) {
      problems.Add(field, fault);
    } else {
      profile.*number.member = constant.value();
    }
    return;
  }
  for (const FlagConstant<Profile>& flag : table.flags) {
    if (flag.name != constant.name()) continue;
    if (constant.value() != 0 && constant.value() != 1) {
      problems.Add(field, "must be 0 or 1");
    } else {
      profile.*flag.member = constant.value() == 1;
    }
    return;
  }
  problems.Add(field, absl::StrCat("is not a constant of a profile (", table.header, " lists them)"));
}

// Whether the record names the chips with runs behind its constants, and this is none of them.
bool IsUnmeasured(const v1::CalibrationProfile& record, absl::string_view accelerator_id);

// The profile for one chip: the record's constants, overridden by those of the family that lists `accelerator_id`; an
// unmeasured chip's intervals are wider. Unknown names and values outside their range are added to `problems` and left
// out.
template <typename Profile>
Profile ProfileOf(const ConstantTable<Profile>& table, const v1::CalibrationProfile& record,
                  absl::string_view accelerator_id, RecordProblems& problems) {
  Profile profile;
  profile.name = record.name();
  profile.version = record.version();
  for (const v1::Constant& constant : record.constants()) ApplyConstant(table, constant, profile, problems);
  for (const v1::CalibrationFamily& family : record.families()) {
    for (const std::string& id : family.accelerators()) {
      if (id != accelerator_id) continue;
      for (const v1::Constant& constant : family.constants()) ApplyConstant(table, constant, profile, problems);
    }
  }
  if (IsUnmeasured(record, accelerator_id) && record.has_unmeasured_interval_power()) {
    for (const NumberConstant<Profile>& number : table.numbers) {
      if (number.range != ConstantRange::kIntervalEnd || profile.*number.member <= 0) continue;
      profile.*number.member = std::pow(profile.*number.member, record.unmeasured_interval_power());
    }
  }
  return profile;
}

}  // namespace sliceplan::catalog

#endif  // SLICEPLAN_SERVER_CATALOG_CONSTANT_TABLE_H_
