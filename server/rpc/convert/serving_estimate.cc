#include "server/rpc/convert/serving_estimate.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "server/rpc/convert/model.h"
#include "server/rpc/convert/serving_enums.h"
#include "server/rpc/convert/serving_parts.h"
#include "server/rpc/convert/serving_workload.h"
#include "server/rpc/convert/slice.h"
#include "server/rpc/convert/training_parts.h"

namespace sliceplan::rpc {
namespace {

using planner::ServingOutcome;

void SetMode(const ServingQuestion& question, v1::ServingEstimate* proto) {
  proto->set_estimation_mode(ToProto(kEstimationModes, question.job.mode));
  if (question.job.mode != planner::EstimationMode::kCalibrated) return;
  // Pools of different chips may have different profiles.
  std::vector<std::string> names;
  std::vector<std::string> versions;
  for (const ServingProfileHandle& profile : question.profiles) {
    if (profile == nullptr || std::find(names.begin(), names.end(), profile->name) != names.end()) continue;
    names.push_back(profile->name);
    versions.push_back(profile->version);
  }
  proto->set_calibration_profile(absl::StrJoin(names, ", "));
  proto->set_calibration_version(absl::StrJoin(versions, ", "));
}

void SetPools(const ServingQuestion& question, const planner::ServingEstimate& estimate, bool has_plan,
              v1::ServingEstimate* proto) {
  for (size_t i = 0; i < question.job.pools.size(); ++i) {
    const planner::ServingPool& pool = question.job.pools[i];
    v1::PoolEstimate* const ours = proto->add_pools();
    ours->set_role(ToProto(kPoolRoles, pool.role));
    ToProto(*question.slices[i], ours->mutable_slice());
    ours->set_replica_count(pool.replica_count);
    if (!has_plan || i >= estimate.pools.size()) continue;
    ours->set_replica_count(estimate.pools[i].replica_count);
    ToProto(estimate.pools[i], pool, ours);
  }
}

void SetLatencies(const planner::ServingEstimate& estimate, v1::ServingEstimate* proto) {
  if (estimate.ttft) ToProto(*estimate.ttft, proto->mutable_ttft());
  if (estimate.tpot) ToProto(*estimate.tpot, proto->mutable_tpot());
  if (estimate.inter_token_latency) ToProto(*estimate.inter_token_latency, proto->mutable_inter_token_latency());
  if (estimate.end_to_end) ToProto(*estimate.end_to_end, proto->mutable_end_to_end());
  if (estimate.normalized_time_per_output_token) {
    ToProto(*estimate.normalized_time_per_output_token, proto->mutable_normalized_time_per_output_token());
  }
}

// What there is only with a plan.
void SetRun(const planner::ServingEstimate& estimate, v1::ServingEstimate* proto) {
  ToProto(estimate.memory, proto->mutable_memory());
  proto->set_max_batch_size(estimate.max_batch_size);
  proto->set_max_context_tokens(estimate.max_context_tokens);
  proto->set_batch_size(estimate.batch_size);
  if (estimate.critical_batch_size) proto->set_critical_batch_size(*estimate.critical_batch_size);
  if (estimate.tensor_degree_limit) proto->set_tensor_degree_limit(*estimate.tensor_degree_limit);
  if (estimate.prefill.time.expected_seconds > 0) ToProto(estimate.prefill, proto->mutable_prefill());
  if (estimate.decode.time.expected_seconds > 0) ToProto(estimate.decode, proto->mutable_decode());
  SetLatencies(estimate, proto);
  ToProto(estimate.throughput, proto->mutable_throughput());
  for (const planner::ServingPoint& point : estimate.frontier) ToProto(point, proto->add_frontier());
  if (estimate.best_point) ToProto(*estimate.best_point, proto->mutable_best_point());
  if (estimate.disaggregation) ToProto(*estimate.disaggregation, proto->mutable_disaggregation());
  if (estimate.replica_count) proto->set_replica_count(*estimate.replica_count);
  if (estimate.kilowatt_hours_per_million_output_tokens) {
    proto->set_kilowatt_hours_per_million_output_tokens(*estimate.kilowatt_hours_per_million_output_tokens);
  }
}

void SetWarnings(const ServingQuestion& question, const planner::ServingEstimate& estimate,
                 v1::ServingEstimate* proto) {
  for (const std::string& sentence : estimate.warnings) {
    v1::Warning* const warning = proto->add_warnings();
    warning->set_code("ENGINE_NOTE");
    warning->set_sentence(AsSentence(sentence));
  }
  AddImportWarnings(*question.model, proto->mutable_warnings());
  if (question.draft_model == nullptr) return;
  const int before = proto->warnings_size();
  AddImportWarnings(*question.draft_model, proto->mutable_warnings());
  for (int i = before; i < proto->warnings_size(); ++i) {
    proto->mutable_warnings(i)->set_field("workload.speculative.draft_model");
  }
}

}  // namespace

void ToProto(const ServingQuestion& question, const planner::ServingEstimate& estimate, v1::ServingEstimate* proto) {
  const planner::ServingJob& job = question.job;
  const bool has_plan = estimate.outcome != ServingOutcome::kNoLegalPlan;
  proto->set_outcome(ToProto(kServingOutcomes, estimate.outcome));
  if (estimate.shortfall.has_value()) ToProto(*estimate.shortfall, proto->mutable_shortfall());
  if (estimate.smallest_fix.has_value()) ToProto(*estimate.smallest_fix, proto->mutable_smallest_fix());
  if (has_plan) SetRun(estimate, proto);
  proto->set_kv_bytes_per_token(estimate.kv_bytes_per_token);
  proto->set_chip_count(static_cast<int32_t>(estimate.chip_count));
  if (estimate.cost.has_value()) ToProto(*estimate.cost, proto->mutable_cost());
  ToProto(job.cost_split, proto->mutable_cost()->mutable_split());
  SetPools(question, estimate, has_plan, proto);
  ToProto(*question.asked, job.workload, estimate, proto->mutable_workload());
  SetMode(question, proto);
  for (const planner::Advice& advice : estimate.advice) {
    ToProto(advice, estimate.tpot ? estimate.tpot->mean_seconds : estimate.decode.time.expected_seconds,
            proto->add_advice());
  }
  question.assumptions.ToProto(proto->mutable_assumptions());
  for (const std::string& line : estimate.assumptions) ToProto(line, proto->add_assumptions());
  SetWarnings(question, estimate, proto);
}

}  // namespace sliceplan::rpc
