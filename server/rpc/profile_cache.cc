#include "server/rpc/profile_cache.h"

#include "absl/strings/str_cat.h"
#include "server/catalog/efficiency.h"
#include "server/catalog/problems.h"
#include "server/catalog/serving_efficiency.h"

namespace sliceplan::rpc {
namespace {

// The profile in `profiles`, made with `read` when it is not there yet.
template <typename Efficiency, typename Read>
std::shared_ptr<const Efficiency> FindOrMake(
    const catalog::v1::CalibrationProfile& record, const std::string& accelerator_id, Read read,
    absl::flat_hash_map<std::string, std::shared_ptr<const Efficiency>>& profiles) {
  std::shared_ptr<const Efficiency>& profile = profiles[absl::StrCat(record.name(), "/", accelerator_id)];
  if (profile == nullptr) {
    // The catalog was checked when it was loaded: nothing is reported here.
    catalog::Problems problems;
    catalog::RecordProblems record_problems(problems, "", record.name());
    profile = std::make_shared<const Efficiency>(read(record, accelerator_id, record_problems));
  }
  return profile;
}

}  // namespace

void ProfileCache::Keep(const catalog::Catalog& catalog) {
  if (catalog_version_ == catalog.version()) return;
  catalog_version_ = catalog.version();
  profiles_.clear();
  serving_profiles_.clear();
}

const catalog::v1::CalibrationProfile& ProfileCache::Current(const catalog::v1::CalibrationProfile& record) const {
  const auto found = tried_.find(record.name());
  return found == tried_.end() ? record : found->second;
}

void ProfileCache::Try(const catalog::v1::CalibrationProfile& record) {
  std::lock_guard lock(mutex_);
  tried_[record.name()] = record;
  profiles_.clear();
  serving_profiles_.clear();
}

ProfileHandle ProfileCache::Find(const catalog::Catalog& catalog, const catalog::v1::CalibrationProfile& record,
                                 const std::string& accelerator_id) {
  std::lock_guard lock(mutex_);
  Keep(catalog);
  return FindOrMake(Current(record), accelerator_id, catalog::EfficiencyOf, profiles_);
}

ServingProfileHandle ProfileCache::FindServing(const catalog::Catalog& catalog,
                                               const catalog::v1::CalibrationProfile& record,
                                               const std::string& accelerator_id) {
  std::lock_guard lock(mutex_);
  Keep(catalog);
  return FindOrMake(Current(record), accelerator_id, catalog::ServingEfficiencyOf, serving_profiles_);
}

}  // namespace sliceplan::rpc
