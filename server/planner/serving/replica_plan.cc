#include "server/planner/serving/replica_plan.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/planner/legality.h"
#include "server/planner/serving/weight_blocks.h"
#include "server/planner/serving_closed_form.h"

namespace sliceplan::planner {
namespace {

using hardware::Violation;

// Placements looked at: tensor innermost comes first, and little else sends much in a step of serving.
constexpr size_t kServingMappings = 8;

// Serving has no batch or sequence that degrees must divide: this workload passes those rules whatever the plan.
TrainingWorkload AnyWorkload(const Parallelism& parallelism) {
  TrainingWorkload workload;
  workload.sequence_length = 0;
  int64_t batch = parallelism.microbatch_count > 0 ? parallelism.microbatch_count : 1;
  for (const LogicalAxis axis :
       {LogicalAxis::kData, LogicalAxis::kFsdp, LogicalAxis::kExpert, LogicalAxis::kPipeline}) {
    const int64_t degree = std::clamp<int64_t>(parallelism.Degree(axis), 1, kMaxDegree);
    if (batch < kMaxDegree) batch *= degree;
  }
  workload.global_batch_size = batch;
  return workload;
}

// fsdp over the inputs of weights and context over keys would share one collective.
bool JoinsFsdpAndContext(const Parallelism& parallelism) {
  return parallelism.Degree(LogicalAxis::kFsdp) > 1 && parallelism.Degree(LogicalAxis::kContext) > 1;
}

}  // namespace

void CheckServingPlan(const ServingJob& job, const ServingPool& pool, const Parallelism& parallelism,
                      const std::string& prefix, std::vector<Violation>& violations, std::vector<std::string>& notes,
                      std::vector<Padding>* paddings) {
  std::vector<Violation> found;
  CheckParallelism(*job.model.operations, pool.slice, AnyWorkload(parallelism), parallelism, pool.allow_idle_chips,
                   /*allow_padding=*/true, found, notes, paddings);
  if (PolicyOf(job, pool).kv_cache_split != KvCacheSplit::kCopies) {
    const auto copied = [](absl::string_view text) { return absl::StrContains(text, "KV heads is copied"); };
    notes.erase(std::remove_if(notes.begin(), notes.end(), copied), notes.end());
    if (paddings != nullptr) {
      paddings->erase(std::remove_if(paddings->begin(), paddings->end(),
                                     [&](const Padding& padding) { return copied(padding.sentence); }),
                      paddings->end());
    }
  }
  if (paddings != nullptr && found.empty() && !job.workload.precision.weights) {
    DescribeWeightBlocks(job.model, parallelism.Degree(LogicalAxis::kTensor), *paddings);
  }
  if (JoinsFsdpAndContext(parallelism)) {
    found.push_back({"parallelism.ici.context", "context cannot be combined with fsdp in serving; use one of them",
                     "PLAN_NOT_LEGAL", Violation::Kind::kInvalid});
  }
  if (parallelism.virtual_stage_count > 1) {
    found.push_back({"parallelism.virtual_stage_count", "serving has no virtual stages: leave it out or set 1",
                     "PLAN_NOT_LEGAL", Violation::Kind::kInvalid});
  }
  for (Violation& violation : found) {
    violation.field = absl::StrCat(prefix, violation.field);
    violations.push_back(std::move(violation));
  }
}

bool IsLegalServingPlan(const ServingJob& job, const ServingPool& pool, const Parallelism& parallelism) {
  std::vector<Violation> violations;
  std::vector<std::string> notes;
  CheckServingPlan(job, pool, parallelism, "", violations, notes, nullptr);
  return violations.empty();
}

double DraftingTimer::DraftSeconds(int64_t sequences, double context_tokens) const {
  StepShape plain;
  plain.decode_sequences = sequences;
  plain.decode_context_tokens = context_tokens;
  const double one = draft_ != nullptr ? draft_->Seconds(plain) : ratio_ * target_.Seconds(plain);
  return static_cast<double>(draft_tokens_) * one;
}

double DraftingTimer::Seconds(const StepShape& shape) const {
  const double checked = target_.Seconds(shape);
  return shape.decode_sequences > 0 ? checked + DraftSeconds(shape.decode_sequences, shape.decode_context_tokens)
                                    : checked;
}

ReplicaPlan::ReplicaPlan(const ServingJob& job, const ServingPool& pool, const Parallelism& parallelism)
    : job_(job),
      pool_(pool),
      parallelism_(parallelism),
      policy_(PolicyOf(job, pool)),
      load_(CountReplica(job, pool, policy_, parallelism)) {}

absl::StatusOr<std::unique_ptr<ReplicaPlan>> ReplicaPlan::Make(const ServingJob& job, const ServingPool& pool,
                                                               const Parallelism& parallelism, int64_t batch_size,
                                                               MappingCache& mappings) {
  absl::StatusOr<std::shared_ptr<const MappingSet>> set =
      mappings.Find(pool.slice, parallelism, pool.allow_idle_chips, kServingMappings);
  if (!set.ok()) return set.status();
  std::unique_ptr<ReplicaPlan> plan(new ReplicaPlan(job, pool, parallelism));
  plan->mappings_ = *std::move(set);
  const bool roofline = job.mode == EstimationMode::kRoofline;
  const roofline::ServingEfficiency* efficiency = roofline ? nullptr : pool.efficiency;
  StepShape shape;
  shape.decode_sequences = std::max<int64_t>(1, batch_size);
  shape.decode_context_tokens = job.workload.prompt.Mean();
  double fastest = 0;
  for (size_t i = 0; i < plan->mappings_->laws.size(); ++i) {
    const ReplicaTimer timer(plan->load_, pool.slice, plan->mappings_->laws[i], efficiency);
    const double seconds = plan->mappings_->laws.size() > 1 ? timer.NetworkSeconds(shape) : 0;
    if (i > 0 && seconds >= fastest) continue;
    fastest = seconds;
    plan->mapping_index_ = i;
  }
  plan->timer_.emplace(plan->load_, pool.slice, plan->laws(), efficiency);
  double draft_weights_bytes = 0;
  if (job.workload.speculation) {
    const Speculation& speculation = *job.workload.speculation;
    plan->draft_tokens_ = speculation.draft_tokens;
    plan->tokens_per_step_ = SpeculativeTokensPerPass(speculation.acceptance_ratio, speculation.draft_tokens);
    if (speculation.draft_model) {
      ServingJob draft = job;
      draft.model = *speculation.draft_model;
      plan->draft_load_ = CountReplica(draft, pool, plan->policy_, parallelism);
      plan->draft_timer_.emplace(plan->draft_load_, pool.slice, plan->laws(), efficiency);
      draft_weights_bytes = ResidentBytes(plan->draft_load_);
    }
    plan->drafting_.emplace(*plan->timer_, plan->draft_timer_ ? &*plan->draft_timer_ : nullptr, plan->draft_tokens_,
                            speculation.draft_cost_ratio);
  }
  plan->memory_.emplace(job, pool, plan->policy_, plan->load_, parallelism, draft_weights_bytes);
  if (!roofline && pool.efficiency->separate_prefill && plan->policy_.prefill_chunk_tokens) {
    plan->chunking_.emplace(plan->drafting_ ? static_cast<const StepTimer&>(*plan->drafting_) : *plan->timer_,
                            *plan->timer_, *plan->policy_.prefill_chunk_tokens);
  }
  plan->group_steps_.emplace(plan->steps(), plan->group_count());
  return plan;
}

double GroupTimer::Seconds(const StepShape& shape) const {
  StepShape all = shape;
  all.decode_sequences *= groups_;
  all.prefill_tokens *= groups_;
  all.prefill_sequences *= groups_;
  return replica_.Seconds(all);
}

double ChunkingTimer::Seconds(const StepShape& shape) const {
  if (shape.decode_sequences > 0 || shape.prefill_sequences < 1) return steps_.Seconds(shape);
  const double tokens = static_cast<double>(shape.prefill_tokens) / static_cast<double>(shape.prefill_sequences);
  return prompts_.PrefillSeconds(shape.prefill_sequences, tokens + shape.prefill_context_tokens,
                                 shape.prefill_context_tokens, chunk_tokens_);
}

const StepTimer& ReplicaPlan::steps() const {
  if (chunking_) return *chunking_;
  if (drafting_) return *drafting_;
  return *timer_;
}

double ReplicaPlan::TokenSeconds(int64_t sequences, double context_tokens) const {
  StepShape shape;
  shape.decode_sequences = sequences;
  shape.decode_context_tokens = context_tokens;
  shape.tokens_per_sequence = tokens_per_sequence();
  return steps().Seconds(shape) / tokens_per_step_;
}

double ReplicaPlan::InterferenceSeconds(int64_t sequences, double context_tokens) const {
  if (pool_.efficiency != nullptr && pool_.efficiency->separate_prefill) {
    return pool_.efficiency->interference_ratio * PrefillSeconds(1);
  }
  const double prompt = job_.workload.prompt.Mean();
  const double cached = prompt * job_.workload.prefix_cache_hit_ratio;
  StepShape decode;
  decode.decode_sequences = sequences;
  decode.decode_context_tokens = context_tokens;
  decode.tokens_per_sequence = tokens_per_sequence();
  StepShape mixed = decode;
  mixed.prefill_sequences = 1;
  mixed.prefill_tokens = std::max<int64_t>(1, std::llround(prompt - cached));
  mixed.prefill_context_tokens = cached;
  return std::max(0.0, steps().Seconds(mixed) - steps().Seconds(decode));
}

double ReplicaPlan::RequestSeconds() const {
  return job_.mode == EstimationMode::kCalibrated && pool_.efficiency != nullptr ? pool_.efficiency->request_seconds
                                                                                 : 0;
}

double ReplicaPlan::PrefillSeconds(int64_t prompts) const {
  const double tokens = job_.workload.prompt.Mean();
  return timer_->PrefillSeconds(prompts, tokens, tokens * job_.workload.prefix_cache_hit_ratio,
                                policy_.prefill_chunk_tokens.value_or(0));
}

}  // namespace sliceplan::planner
