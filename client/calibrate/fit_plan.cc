#include "client/calibrate/fit_plan.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/catalog/efficiency.h"
#include "server/catalog/problems.h"
#include "server/catalog/serving_efficiency.h"

namespace sliceplan::calibrate {
namespace {

using catalog::v1::CalibrationProfile;

constexpr struct {
  LeaveOut leave_out;
  absl::string_view name;
} kLeaveOuts[] = {
    {LeaveOut::kRow, "row"},
    {LeaveOut::kSource, "source"},
    {LeaveOut::kModel, "model"},
    {LeaveOut::kAccelerator, "accelerator"},
    {LeaveOut::kSourceAndModel, "source+model"},
};

}  // namespace

absl::Status CheckProfile(const CalibrationProfile& record) {
  catalog::Problems problems;
  catalog::RecordProblems record_problems(problems, "", record.name());
  std::vector<std::string> accelerators = {""};
  for (const auto& family : record.families())
    accelerators.insert(accelerators.end(), family.accelerators().begin(), family.accelerators().end());
  for (const std::string& accelerator : accelerators) {
    if (record.workload() == catalog::v1::CALIBRATION_WORKLOAD_TRAINING) {
      catalog::EfficiencyOf(record, accelerator, record_problems);
    } else {
      catalog::ServingEfficiencyOf(record, accelerator, record_problems);
    }
  }
  return problems.ToStatus();
}

namespace {

// The free constant of a row.
absl::StatusOr<calibration::FreeConstant> ToFreeConstant(const Row& row, const ConstantName& name,
                                                         CalibrationProfile record) {
  catalog::v1::Constant* const constant = FindConstant(record, name);
  if (constant == nullptr) return absl::InvalidArgumentError("is not in the profile");
  calibration::FreeConstant free;
  free.name = name.family.empty() ? name.constant : absl::StrCat(name.family, "/", name.constant);
  free.start = constant->value();
  if (row.Text("scale") == "linear") {
    free.scale = calibration::Scale::kLinear;
  } else if (row.Text("scale") != "log") {
    return absl::InvalidArgumentError("scale must be log or linear");
  }
  const std::optional<double> spread = row.Number("spread");
  const std::optional<double> lower = row.Number("lower");
  const std::optional<double> upper = row.Number("upper");
  if (!spread || !lower || !upper) return absl::InvalidArgumentError("spread, lower and upper must be numbers");
  free.prior = row.Text("prior").empty() ? free.start : row.Number("prior").value_or(*lower - 1);
  free.spread = *spread;
  free.lower = *lower;
  free.upper = *upper;
  if (free.spread <= 0) return absl::InvalidArgumentError("spread must be above 0");
  if (free.scale == calibration::Scale::kLogarithmic && free.lower <= 0)
    return absl::InvalidArgumentError("lower must be above 0 on a log scale");
  if (free.lower >= free.upper) return absl::InvalidArgumentError("lower must be below upper");
  for (const double value : {free.start, free.prior}) {
    if (value < free.lower || value > free.upper)
      return absl::InvalidArgumentError(
          absl::StrCat("its value and prior must be between the bounds, ", value, " is not"));
  }
  for (const double bound : {free.lower, free.upper}) {
    constant->set_value(bound);
    if (const absl::Status status = CheckProfile(record); !status.ok()) return status;
  }
  return free;
}

// The profiles of each fit: those that lines name together.
std::vector<FitPlan> PlansOfProfiles(const Table& table) {
  std::vector<FitPlan> plans;
  for (const Row& row : table.rows()) {
    FitPlan joined;
    size_t at = plans.size();
    const std::vector<std::string> names = NamesIn(row.Text("profile"));
    for (size_t i = plans.size(); i-- > 0;) {
      const bool meets =
          absl::c_any_of(names, [&](const auto& name) { return absl::c_linear_search(plans[i].profiles, name); });
      if (!meets) continue;
      joined.profiles.insert(joined.profiles.begin(), plans[i].profiles.begin(), plans[i].profiles.end());
      plans.erase(plans.begin() + static_cast<std::ptrdiff_t>(i));
      at = i;
    }
    for (const std::string& name : names) {
      if (!absl::c_linear_search(joined.profiles, name)) joined.profiles.push_back(name);
    }
    if (!names.empty()) plans.insert(plans.begin() + static_cast<std::ptrdiff_t>(at), std::move(joined));
  }
  return plans;
}

}  // namespace

absl::string_view NameOf(LeaveOut leave_out) {
  for (const auto& known : kLeaveOuts) {
    if (known.leave_out == leave_out) return known.name;
  }
  return "";
}

std::optional<LeaveOut> ToLeaveOut(absl::string_view name) {
  for (const auto& known : kLeaveOuts) {
    if (known.name == name) return known.leave_out;
  }
  return std::nullopt;
}

std::string FoldOf(LeaveOut leave_out, const Case& asked) {
  switch (leave_out) {
    case LeaveOut::kRow: return asked.id;
    case LeaveOut::kSource: return asked.source;
    case LeaveOut::kModel: return asked.architecture.empty() ? asked.model : asked.architecture;
    case LeaveOut::kAccelerator: return asked.accelerator;
    case LeaveOut::kSourceAndModel: return absl::StrCat(asked.source, " ", asked.model);
  }
  return "";
}

catalog::v1::Constant* FindConstant(CalibrationProfile& record, const ConstantName& name) {
  google::protobuf::RepeatedPtrField<catalog::v1::Constant>* constants = record.mutable_constants();
  if (!name.family.empty()) {
    constants = nullptr;
    for (auto& family : *record.mutable_families()) {
      if (family.name() == name.family) constants = family.mutable_constants();
    }
    if (constants == nullptr) return nullptr;
  }
  for (catalog::v1::Constant& constant : *constants) {
    if (constant.name() == name.constant) return &constant;
  }
  return nullptr;
}

CalibrationProfile WithConstants(CalibrationProfile record, const std::vector<ConstantName>& names,
                                 const std::vector<double>& values) {
  for (size_t i = 0; i < names.size(); ++i) FindConstant(record, names[i])->set_value(values[i]);
  return record;
}

std::vector<std::string> NamesIn(absl::string_view cell) {
  return absl::StrSplit(cell, absl::ByAnyChar(" \t"), absl::SkipEmpty());
}

std::vector<size_t> ConstantsOf(const FitPlan& plan, size_t profile) {
  std::vector<size_t> constants;
  for (size_t c = 0; c < plan.names.size(); ++c) {
    if (absl::c_linear_search(plan.holders[c], profile)) constants.push_back(c);
  }
  return constants;
}

absl::StatusOr<std::vector<FitPlan>> ToFitPlan(const Table& table, absl::Span<const CalibrationProfile> profiles) {
  for (const char* column : {"profile", "leave_out", "constant", "scale", "spread", "lower", "upper"}) {
    if (!table.Has(column)) return absl::InvalidArgumentError(absl::StrCat("The column ", column, " is missing."));
  }
  std::vector<FitPlan> plans = PlansOfProfiles(table);
  for (const Row& row : table.rows()) {
    const std::vector<std::string> names = NamesIn(row.Text("profile"));
    const ConstantName name = {std::string(row.Text("family")), std::string(row.Text("constant"))};
    const auto refuse = [&](absl::string_view what) {
      return absl::InvalidArgumentError(absl::StrCat("Line ", row.line(), ": ", row.Text("profile"), " ", name.family,
                                                     name.family.empty() ? "" : "/", name.constant, ": ", what));
    };
    if (names.empty()) return refuse("there is no such profile");
    FitPlan& plan = *absl::c_find_if(
        plans, [&](const FitPlan& known) { return absl::c_linear_search(known.profiles, names.front()); });
    std::vector<LeaveOut> leave_outs;
    for (const std::string& word : NamesIn(row.Text("leave_out"))) {
      const std::optional<LeaveOut> leave_out = ToLeaveOut(word);
      if (!leave_out) return refuse("leave_out must be row, source, model, accelerator or source+model");
      leave_outs.push_back(*leave_out);
    }
    if (leave_outs.empty()) return refuse("leave_out must be row, source, model, accelerator or source+model");
    if (plan.leave_outs.empty()) plan.leave_outs = leave_outs;
    if (plan.leave_outs != leave_outs) return refuse("leave_out must be the same in all lines of a profile");
    std::vector<size_t> holders;
    std::optional<calibration::FreeConstant> shared;
    for (const std::string& profile : names) {
      const auto record = absl::c_find_if(profiles, [&](const auto& known) { return known.name() == profile; });
      if (record == profiles.end()) return refuse("there is no such profile");
      const absl::StatusOr<calibration::FreeConstant> free = ToFreeConstant(row, name, *record);
      if (!free.ok()) return refuse(free.status().message());
      if (!shared) shared = *free;
      if (free->start != shared->start) return refuse("is shared, and its values in the profiles differ");
      holders.push_back(static_cast<size_t>(absl::c_find(plan.profiles, profile) - plan.profiles.begin()));
      for (const size_t other : ConstantsOf(plan, holders.back())) {
        if (plan.names[other] == name) return refuse("is there twice");
      }
    }
    if (holders.size() == 1 && plan.profiles.size() > 1) shared->name = absl::StrCat(names.front(), " ", shared->name);
    plan.names.push_back(name);
    plan.holders.push_back(std::move(holders));
    plan.constants.push_back(*std::move(shared));
  }
  return plans;
}

}  // namespace sliceplan::calibrate
