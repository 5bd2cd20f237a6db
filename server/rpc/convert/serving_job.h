// A serving request as the engine takes it, with everything that the job points to.
#ifndef SLICEPLAN_SERVER_RPC_CONVERT_SERVING_JOB_H_
#define SLICEPLAN_SERVER_RPC_CONVERT_SERVING_JOB_H_

#include <optional>
#include <vector>

#include "proto/sliceplan/v1/pricing.pb.h"
#include "proto/sliceplan/v1/serving.pb.h"
#include "server/catalog/catalog.h"
#include "server/catalog/slice_resolver.h"
#include "server/planner/serving/serving_job.h"
#include "server/rpc/convert/assumptions.h"
#include "server/rpc/field_path.h"
#include "server/rpc/model_cache.h"
#include "server/rpc/profile_cache.h"
#include "server/rpc/violations.h"

namespace sliceplan::rpc {

// Neither copied nor moved: the job points into it.
struct ServingQuestion {
  ServingQuestion() = default;
  ServingQuestion(const ServingQuestion&) = delete;
  ServingQuestion& operator=(const ServingQuestion&) = delete;

  const v1::ServingWorkload* asked = nullptr;  // of the request
  ModelHandle model;
  ModelHandle draft_model;
  // By index of job.pools; nullopt only beside a violation.
  std::vector<std::optional<catalog::ResolvedSlice>> slices;
  std::vector<ServingProfileHandle> profiles;  // nullptr in ROOFLINE mode
  Assumptions assumptions;
  planner::ServingJob job;
};

// Fills `question` and `prices` (one for each pool), or `violations` with everything that is wrong. `request` must
// outlive `question`.
void ToServingJob(const v1::EstimateServingRequest& request, const catalog::Catalog& catalog, ModelCache& models,
                  ProfileCache& profiles, const FieldPath& path, ServingQuestion& question,
                  google::protobuf::RepeatedPtrField<v1::PriceUsed>* prices, Violations& violations);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_CONVERT_SERVING_JOB_H_
