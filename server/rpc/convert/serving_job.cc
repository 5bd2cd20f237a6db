#include "server/rpc/convert/serving_job.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/planner/serving/replica_plan.h"
#include "server/rpc/convert/model.h"
#include "server/rpc/convert/ranges.h"
#include "server/rpc/convert/serving_enums.h"
#include "server/rpc/convert/serving_pools.h"
#include "server/rpc/convert/serving_workload.h"

namespace sliceplan::rpc {
namespace {

constexpr double kMaxPriceRatio = 1e6;
// Of a cached token where prices are fixed: what providers of models charge for it.
constexpr double kUsualCachedPriceRatio = 0.1;

planner::CostSplit ToCostSplit(const v1::CostSplit& proto, const FieldPath& path, Violations& violations) {
  planner::CostSplit split;
  if (proto.kind() != v1::COST_SPLIT_KIND_UNSPECIFIED && !v1::CostSplitKind_IsValid(proto.kind())) {
    violations.Add(FieldPath(path, "kind"),
                   absl::StrCat(static_cast<int>(proto.kind()), " is no CostSplitKind; legal are ",
                                LegalEnumNames(*v1::CostSplitKind_descriptor()), "."),
                   "UNKNOWN_ENUM_VALUE");
    return split;
  }
  split.fixed_ratio = proto.kind() == v1::COST_SPLIT_KIND_FIXED_RATIO;
  const FieldPath ratio_path(path, "output_to_input_price_ratio");
  if (split.fixed_ratio) {
    split.cached_to_input_price_ratio = kUsualCachedPriceRatio;
    if (!proto.has_output_to_input_price_ratio()) {
      AddRequired("output_to_input_price_ratio", ratio_path, violations);
    } else if (CheckPositive(proto.output_to_input_price_ratio(), kMaxPriceRatio, ratio_path, violations)) {
      split.output_to_input_price_ratio = proto.output_to_input_price_ratio();
    }
  } else if (proto.has_output_to_input_price_ratio()) {
    violations.Add(ratio_path, "belongs to COST_SPLIT_KIND_FIXED_RATIO; by time the ratio is a result.", "CONFLICT");
  }
  if (proto.has_cached_to_input_price_ratio() &&
      CheckRange(proto.cached_to_input_price_ratio(), 0, 1, FieldPath(path, "cached_to_input_price_ratio"),
                 violations)) {
    split.cached_to_input_price_ratio = proto.cached_to_input_price_ratio();
  }
  return split;
}

// What the engine would say next, beside a request that is wrong already.
void AddRestOfViolations(const FieldPath& path, const ServingQuestion& question, Violations& violations) {
  const planner::ServingJob& job = question.job;
  if (question.model == nullptr) return;
  std::vector<hardware::Violation> found;
  std::vector<std::string> ignored;
  for (size_t i = 0; i < question.slices.size(); ++i) {
    const planner::ServingPool& pool = job.pools[i];
    const bool has_policy = job.mode == planner::EstimationMode::kRoofline || pool.efficiency != nullptr;
    if (!question.slices[i].has_value() || !pool.parallelism.has_value() || !has_policy) continue;
    planner::CheckServingPlan(job, pool, *pool.parallelism, job.pools_given ? absl::StrCat("pools[", i, "].") : "",
                              found, ignored, nullptr);
  }
  violations.AddMissing(path, found);
}

}  // namespace

void ToServingJob(const v1::EstimateServingRequest& request, const catalog::Catalog& catalog, ModelCache& models,
                  ProfileCache& profiles, const FieldPath& path, ServingQuestion& question,
                  google::protobuf::RepeatedPtrField<v1::PriceUsed>* prices, Violations& violations) {
  planner::ServingJob& job = question.job;
  question.asked = &request.workload();
  question.model = ToModel(request.model(), catalog, models, FieldPath(path, "model"), violations);
  if (question.model != nullptr) job.model = {&question.model->architecture, &question.model->operations};
  ReadPools(request, catalog, path, question, violations);
  job.workload = ToServingWorkload(request.workload(), catalog, models, FieldPath(path, "workload"),
                                   question.draft_model, violations, question.assumptions);
  job.slo = ToSlo(request.slo(), FieldPath(path, "slo"), violations);
  if (request.workload().load_case() == v1::ServingWorkload::LOAD_NOT_SET) {
    question.assumptions.Add("workload.batch_size", "",
                             job.slo.Any() ? "The load is the largest batch that meets the targets."
                                           : "The load is the largest batch that fits.");
  }
  if (const auto mode =
          FromProto(kEstimationModes, request.estimation_mode(), FieldPath(path, "estimation_mode"), violations)) {
    job.mode = *mode;
  } else {
    question.assumptions.Add("estimation_mode", "ESTIMATION_MODE_CALIBRATED",
                             "Times as a real runtime reaches them, not the roofline's.");
  }
  SetProfiles(request.calibration_profile(), catalog, profiles, FieldPath(path, "calibration_profile"), question,
              violations);
  SetPrices(request.pricing(), catalog, FieldPath(path, "pricing"), question, prices, violations);
  job.cost_split = ToCostSplit(request.cost_split(), FieldPath(path, "cost_split"), violations);
  if (!violations.empty()) AddRestOfViolations(path, question, violations);
}

}  // namespace sliceplan::rpc
