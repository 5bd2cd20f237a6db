#include "server/catalog/constant_table.h"

#include <cmath>

#include "absl/algorithm/container.h"

namespace sliceplan::catalog {
namespace {

constexpr double kMaxCount = 1 << 30;

}  // namespace

absl::string_view FaultOf(double value, ConstantRange range) {
  if (!std::isfinite(value)) return "must be finite";
  switch (range) {
    case ConstantRange::kNotNegative: return value >= 0 ? "" : "must not be negative";
    case ConstantRange::kAtLeastOne: return value >= 1 ? "" : "must be at least 1";
    case ConstantRange::kShare: return value > 0 && value <= 1 ? "" : "must be above 0 and at most 1";
    case ConstantRange::kShareOrNone: return value >= 0 && value <= 1 ? "" : "must be 0 to 1";
    case ConstantRange::kIntervalEnd: return value >= 0 ? "" : "must not be negative";
    case ConstantRange::kCount: return value >= 0 && value <= kMaxCount ? "" : "must be 0 to 2^30";
  }
  return "";
}

bool IsUnmeasured(const v1::CalibrationProfile& record, absl::string_view accelerator_id) {
  return record.measured_accelerators_size() > 0 &&
         absl::c_find(record.measured_accelerators(), accelerator_id) == record.measured_accelerators().end();
}

}  // namespace sliceplan::catalog
