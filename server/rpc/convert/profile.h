// Which calibration profile a request is answered with.
#ifndef SLICEPLAN_SERVER_RPC_CONVERT_PROFILE_H_
#define SLICEPLAN_SERVER_RPC_CONVERT_PROFILE_H_

#include <string>

#include "server/catalog/catalog.h"
#include "server/catalog/slice_resolver.h"
#include "server/rpc/convert/assumptions.h"
#include "server/rpc/field_path.h"
#include "server/rpc/profile_cache.h"
#include "server/rpc/violations.h"

namespace sliceplan::rpc {

// The profile `name` for training, or the default of the slice's chip when empty; for a chip without a default, that of
// the first chip of the catalog with the same kind of fabric, which `assumptions` says. nullptr with a violation at
// `path` when there is none.
ProfileHandle ToTrainingProfile(const std::string& name, const catalog::ResolvedSlice& slice,
                                const catalog::Catalog& catalog, ProfileCache& cache, const FieldPath& path,
                                Violations& violations, Assumptions& assumptions);

// The same for serving.
ServingProfileHandle ToServingProfile(const std::string& name, const catalog::ResolvedSlice& slice,
                                      const catalog::Catalog& catalog, ProfileCache& cache, const FieldPath& path,
                                      Violations& violations, Assumptions& assumptions);

// Whether `name` is empty or a profile of the catalog; adds a violation when not.
bool CheckProfileName(const std::string& name, const catalog::Catalog& catalog, const FieldPath& path,
                      Violations& violations);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_CONVERT_PROFILE_H_
