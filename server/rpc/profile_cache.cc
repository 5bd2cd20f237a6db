#include "server/rpc/profile_cache.h"

#include "absl/strings/str_cat.h"
#include "server/catalog/efficiency.h"
#include "server/catalog/problems.h"

namespace sliceplan::rpc {

ProfileHandle ProfileCache::Find(const catalog::Catalog& catalog, const catalog::v1::CalibrationProfile& record,
                                 const std::string& accelerator_id) {
  const std::string key = absl::StrCat(record.name(), "/", accelerator_id);
  std::lock_guard lock(mutex_);
  if (catalog_version_ != catalog.version()) {
    catalog_version_ = catalog.version();
    profiles_.clear();
  }
  ProfileHandle& profile = profiles_[key];
  if (profile == nullptr) {
    // The catalog was checked when it was loaded: nothing is reported here.
    catalog::Problems problems;
    catalog::RecordProblems record_problems(problems, "", record.name());
    profile = std::make_shared<const roofline::EfficiencyProfile>(
        catalog::EfficiencyOf(record, accelerator_id, record_problems));
  }
  return profile;
}

}  // namespace sliceplan::rpc
