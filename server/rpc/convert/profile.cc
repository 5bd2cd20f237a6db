#include "server/rpc/convert/profile.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "server/catalog/constant_table.h"
#include "server/catalog/near_names.h"
#include "server/rpc/convert/ranges.h"
#include "server/rpc/text.h"

namespace sliceplan::rpc {
namespace {

using catalog::v1::CalibrationWorkload;

constexpr size_t kMaxNameBytes = 64;

const catalog::v1::CalibrationProfile* FindProfile(const std::string& name, const catalog::Catalog& catalog) {
  for (const catalog::v1::CalibrationProfile& profile : catalog.calibration_profiles()) {
    if (profile.name() == name) return &profile;
  }
  return nullptr;
}

const std::string& DefaultOf(const catalog::Accelerator& accelerator, CalibrationWorkload workload) {
  return workload == catalog::v1::CALIBRATION_WORKLOAD_SERVING ? accelerator.record.default_serving_profile()
                                                               : accelerator.record.default_training_profile();
}

// The default of the first chip of the catalog with the same kind of fabric.
std::string DefaultOf(hardware::FabricKind fabric, CalibrationWorkload workload, const catalog::Catalog& catalog) {
  for (const catalog::Accelerator& accelerator : catalog.accelerators()) {
    if (accelerator.spec.fabric == fabric && !DefaultOf(accelerator, workload).empty()) {
      return DefaultOf(accelerator, workload);
    }
  }
  return "";
}

absl::string_view WorkloadName(CalibrationWorkload workload) {
  return workload == catalog::v1::CALIBRATION_WORKLOAD_SERVING ? "serving" : "training";
}

// The record for one kind of job; nullptr with a violation at `path` when there is none.
const catalog::v1::CalibrationProfile* ToRecord(const std::string& name, CalibrationWorkload workload,
                                                const catalog::ResolvedSlice& slice, const catalog::Catalog& catalog,
                                                const FieldPath& path, Violations& violations,
                                                Assumptions& assumptions) {
  if (!CheckProfileName(name, catalog, path, violations)) return nullptr;
  std::string used = name;
  if (used.empty() && slice.accelerator != nullptr) used = DefaultOf(*slice.accelerator, workload);
  if (used.empty()) {
    used = DefaultOf(slice.slice.accelerator.fabric, workload, catalog);
    if (!used.empty()) {
      assumptions.Add("calibration_profile", used,
                      absl::StrCat("Calibration profile ", used, ": that of other chips with the same kind of fabric, ",
                                   "because this one has none of its own."));
    }
  }
  const catalog::v1::CalibrationProfile* const record = used.empty() ? nullptr : FindProfile(used, catalog);
  if (record == nullptr) {
    violations.Add(path, "This chip has no calibration profile; name one, or use ESTIMATION_MODE_ROOFLINE.",
                   "NO_CALIBRATION_PROFILE");
    return nullptr;
  }
  if (record->workload() != workload) {
    violations.Add(path,
                   absl::StrCat(record->name(), " is a profile of ", WorkloadName(record->workload()), ", not of ",
                                WorkloadName(workload), "."),
                   "WRONG_CALIBRATION_PROFILE");
    return nullptr;
  }
  if (catalog::IsUnmeasured(*record, slice.slice.accelerator_id)) {
    assumptions.Add("calibration_profile", record->name(),
                    absl::StrCat("No measured run of this chip is behind the constants of ", record->name(),
                                 ": they are those of its family, and intervals are wider."));
  }
  return record;
}

}  // namespace

bool CheckProfileName(const std::string& name, const catalog::Catalog& catalog, const FieldPath& path,
                      Violations& violations) {
  if (name.empty()) return true;
  if (!CheckLength(name, kMaxNameBytes, path, violations)) return false;
  if (FindProfile(name, catalog) != nullptr) return true;
  std::vector<absl::string_view> names;
  for (const catalog::v1::CalibrationProfile& profile : catalog.calibration_profiles()) {
    names.push_back(profile.name());
  }
  const std::vector<std::string> near = catalog::NearNames(name, names);
  violations.AddUnknownName(
      path, "calibration profile", name,
      absl::StrCat("There is no calibration profile ", Quoted(name), near.empty() ? "." : catalog::DidYouMean(near)),
      "UNKNOWN_CALIBRATION_PROFILE");
  return false;
}

ProfileHandle ToTrainingProfile(const std::string& name, const catalog::ResolvedSlice& slice,
                                const catalog::Catalog& catalog, ProfileCache& cache, const FieldPath& path,
                                Violations& violations, Assumptions& assumptions) {
  const catalog::v1::CalibrationProfile* const record =
      ToRecord(name, catalog::v1::CALIBRATION_WORKLOAD_TRAINING, slice, catalog, path, violations, assumptions);
  return record == nullptr ? nullptr : cache.Find(catalog, *record, slice.slice.accelerator_id);
}

ServingProfileHandle ToServingProfile(const std::string& name, const catalog::ResolvedSlice& slice,
                                      const catalog::Catalog& catalog, ProfileCache& cache, const FieldPath& path,
                                      Violations& violations, Assumptions& assumptions) {
  const catalog::v1::CalibrationProfile* const record =
      ToRecord(name, catalog::v1::CALIBRATION_WORKLOAD_SERVING, slice, catalog, path, violations, assumptions);
  return record == nullptr ? nullptr : cache.FindServing(catalog, *record, slice.slice.accelerator_id);
}

}  // namespace sliceplan::rpc
