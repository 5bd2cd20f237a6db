// A serving load and its targets: contract to engine, and back with every field filled in.
#ifndef SLICEPLAN_SERVER_RPC_CONVERT_SERVING_WORKLOAD_H_
#define SLICEPLAN_SERVER_RPC_CONVERT_SERVING_WORKLOAD_H_

#include "proto/sliceplan/v1/serving.pb.h"
#include "server/catalog/catalog.h"
#include "server/planner/serving/serving_estimate.h"
#include "server/planner/serving/serving_job.h"
#include "server/rpc/convert/assumptions.h"
#include "server/rpc/field_path.h"
#include "server/rpc/model_cache.h"
#include "server/rpc/violations.h"

namespace sliceplan::rpc {

// `draft_model` keeps the model that drafts, when the request names one.
planner::ServingWorkload ToServingWorkload(const v1::ServingWorkload& proto, const catalog::Catalog& catalog,
                                           ModelCache& models, const FieldPath& path, ModelHandle& draft_model,
                                           Violations& violations, Assumptions& assumptions);

planner::ServingSlo ToSlo(const v1::Slo& proto, const FieldPath& path, Violations& violations);

// `asked` with what the engine filled in.
void ToProto(const v1::ServingWorkload& asked, const planner::ServingWorkload& workload,
             const planner::ServingEstimate& estimate, v1::ServingWorkload* proto);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_CONVERT_SERVING_WORKLOAD_H_
