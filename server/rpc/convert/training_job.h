// A training request as the engine takes it, with everything that the job points to.
#ifndef SLICEPLAN_SERVER_RPC_CONVERT_TRAINING_JOB_H_
#define SLICEPLAN_SERVER_RPC_CONVERT_TRAINING_JOB_H_

#include <optional>

#include "proto/sliceplan/v1/pricing.pb.h"
#include "proto/sliceplan/v1/training.pb.h"
#include "server/catalog/catalog.h"
#include "server/catalog/slice_resolver.h"
#include "server/planner/training_job.h"
#include "server/rpc/convert/assumptions.h"
#include "server/rpc/field_path.h"
#include "server/rpc/model_cache.h"
#include "server/rpc/profile_cache.h"
#include "server/rpc/violations.h"

namespace sliceplan::rpc {

// Neither copied nor moved: the job points into it.
struct TrainingQuestion {
  TrainingQuestion() = default;
  TrainingQuestion(const TrainingQuestion&) = delete;
  TrainingQuestion& operator=(const TrainingQuestion&) = delete;

  ModelHandle model;
  std::optional<transformer::ModelOperations> edited_operations;  // when the request changes the experts' load
  std::optional<catalog::ResolvedSlice> slice;
  ProfileHandle profile;  // nullptr in ROOFLINE mode
  Assumptions assumptions;
  planner::TrainingJob job;
};

// Fills `question` and `price`, or `violations` with everything that is wrong, what the engine would say included.
void ToTrainingJob(const v1::EstimateTrainingRequest& request, const catalog::Catalog& catalog, ModelCache& models,
                   ProfileCache& profiles, const FieldPath& path, TrainingQuestion& question, v1::PriceUsed* price,
                   Violations& violations);

// Adds what the engine found, in the names that the request used, once per field.
void AddEngineViolations(const v1::EstimateTrainingRequest& request, const FieldPath& path,
                         std::vector<hardware::Violation> found, Violations& violations);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_CONVERT_TRAINING_JOB_H_
