#include "client/calibrate/fit_plan.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
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

// Whether the catalog would load `record`.
absl::Status Check(const CalibrationProfile& record) {
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
    if (const absl::Status status = Check(record); !status.ok()) return status;
  }
  return free;
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
    case LeaveOut::kModel: return asked.model;
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

absl::StatusOr<std::vector<ProfilePlan>> ToFitPlan(const Table& table, absl::Span<const CalibrationProfile> profiles) {
  for (const char* column : {"profile", "leave_out", "constant", "scale", "spread", "lower", "upper"}) {
    if (!table.Has(column)) return absl::InvalidArgumentError(absl::StrCat("The column ", column, " is missing."));
  }
  std::vector<ProfilePlan> plans;
  for (const Row& row : table.rows()) {
    const std::string profile(row.Text("profile"));
    const ConstantName name = {std::string(row.Text("family")), std::string(row.Text("constant"))};
    const auto refuse = [&](absl::string_view what) {
      return absl::InvalidArgumentError(absl::StrCat("Line ", row.line(), ": ", profile, " ", name.family,
                                                     name.family.empty() ? "" : "/", name.constant, ": ", what));
    };
    const auto record =
        std::find_if(profiles.begin(), profiles.end(), [&](const auto& known) { return known.name() == profile; });
    if (record == profiles.end()) return refuse("there is no such profile");
    const std::optional<LeaveOut> leave_out = ToLeaveOut(row.Text("leave_out"));
    if (!leave_out) return refuse("leave_out must be row, source, model, accelerator or source+model");
    auto plan = std::find_if(plans.begin(), plans.end(), [&](const auto& known) { return known.profile == profile; });
    if (plan == plans.end()) plan = plans.insert(plan, {profile, *leave_out, {}, {}});
    if (plan->leave_out != *leave_out) return refuse("leave_out must be the same in all lines of a profile");
    const absl::StatusOr<calibration::FreeConstant> free = ToFreeConstant(row, name, *record);
    if (!free.ok()) return refuse(free.status().message());
    for (const calibration::FreeConstant& other : plan->constants) {
      if (other.name == free->name) return refuse("is there twice");
    }
    plan->names.push_back(name);
    plan->constants.push_back(*free);
  }
  return plans;
}

}  // namespace sliceplan::calibrate
