// Calibration profiles as the engine takes them, made once per catalog and chip.
#ifndef SLICEPLAN_SERVER_RPC_PROFILE_CACHE_H_
#define SLICEPLAN_SERVER_RPC_PROFILE_CACHE_H_

#include <memory>
#include <mutex>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "server/catalog/catalog.h"
#include "server/roofline/efficiency.h"
#include "server/roofline/serving_efficiency.h"

namespace sliceplan::rpc {

using ProfileHandle = std::shared_ptr<const roofline::EfficiencyProfile>;
using ServingProfileHandle = std::shared_ptr<const roofline::ServingEfficiency>;

// Thread-safe.
class ProfileCache {
 public:
  // `record` must be of `catalog` and for training; `accelerator_id` is empty for a custom chip.
  ProfileHandle Find(const catalog::Catalog& catalog, const catalog::v1::CalibrationProfile& record,
                     const std::string& accelerator_id);
  // The same for a record of serving.
  ServingProfileHandle FindServing(const catalog::Catalog& catalog, const catalog::v1::CalibrationProfile& record,
                                   const std::string& accelerator_id);

  // From now on `record` stands in for the catalog's profile of the same name: for a tool that tries constants.
  void Try(const catalog::v1::CalibrationProfile& record);

 private:
  // Forgets the profiles of other catalogs. Requires the lock.
  void Keep(const catalog::Catalog& catalog);
  // `record` or the one that stands in for it. Requires the lock.
  const catalog::v1::CalibrationProfile& Current(const catalog::v1::CalibrationProfile& record) const;

  std::mutex mutex_;
  std::string catalog_version_;  // of everything below
  absl::flat_hash_map<std::string, ProfileHandle> profiles_;
  absl::flat_hash_map<std::string, ServingProfileHandle> serving_profiles_;
  absl::flat_hash_map<std::string, catalog::v1::CalibrationProfile> tried_;  // by name
};

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_PROFILE_CACHE_H_
