#include "server/planner/estimate_training.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/planner/fill_estimate.h"
#include "server/planner/legality.h"
#include "server/planner/plan_evaluator.h"
#include "server/planner/sharding_search.h"
#include "server/planner/smallest_fix.h"
#include "server/planner/words.h"
#include "server/planner/workload_check.h"

namespace sliceplan::planner {
namespace {

using hardware::Violation;

Violation ViolationOf(const absl::Status& status) {
  const bool figure = absl::IsFailedPrecondition(status);
  return {figure ? "slice" : "parallelism",
          figure ? absl::StrCat(status.message(), "; set it in slice.override or slice.custom")
                 : std::string(status.message()),
          figure ? "ACCELERATOR_FIGURE_UNKNOWN" : "PLAN_CANNOT_BE_PLACED", Violation::Kind::kInvalid};
}

// The best plan of the slice, or the one that needs least more memory; no mappings: there is none. `estimate` says how
// it was found.
EvaluatedPlan FindPlan(const TrainingJob& job, PlanEvaluator& evaluator, MappingCache& mappings,
                       const std::function<bool()>& cancelled, TrainingAnswer& answer) {
  ShardingQuestion question;
  question.model = job.model;
  question.candidates.push_back({job.slice, job.workload, job.profile, job.usd_per_chip_hour, 0, std::nullopt});
  question.mode = job.mode;
  question.constraints.hbm_headroom_ratio = job.min_headroom_ratio;
  question.constraints.allow_idle_chips = job.allow_idle_chips;
  question.constraints.allow_padding = job.allow_padding;
  question.proposal_count = 1;
  question.explain_near_misses = false;
  std::function<SearchSignal()> signal;
  if (cancelled != nullptr) {
    signal = [&cancelled] { return cancelled() ? SearchSignal::kCancel : SearchSignal::kGoOn; };
  }
  const ShardingAnswer found = ProposeSharding(question, mappings, signal);
  answer.cancelled = found.cancelled;
  EvaluatedPlan best;
  if (found.cancelled) return best;
  const size_t unknown = static_cast<size_t>(PruneReason::kUnknownFigure);
  if (found.proposals.empty() && found.near_misses.empty() && found.pruned[unknown] > 0) {
    answer.violations.push_back(ViolationOf(found.unknown_figure));
    return best;
  }
  answer.estimate.assumptions.push_back(
      absl::StrCat("parallelism: the fastest of ", CountWords(found.considered_count), " legal plans"));
  answer.estimate.plans_evaluated = found.considered_count;
  if (!found.proposals.empty()) {
    evaluator.Evaluate(found.proposals.front().estimate.parallelism, best).IgnoreError();
  } else if (!found.near_misses.empty()) {
    evaluator.Evaluate(found.near_misses.front().plan.parallelism, best).IgnoreError();
  }
  return best;
}

TrainingAnswer EstimateWithoutFix(const TrainingJob& job, MappingCache& mappings,
                                  const std::function<bool()>& cancelled) {
  TrainingAnswer answer;
  CheckWorkload(job, answer.violations, answer.estimate.warnings);
  CheckAccelerator(job, answer.violations);
  PlanEvaluator evaluator(job, mappings);
  EvaluatedPlan best;
  if (job.parallelism) {
    CheckParallelism(*job.model, job.slice, job.workload, *job.parallelism, job.allow_idle_chips, job.allow_padding,
                     answer.violations, answer.estimate.assumptions);
    if (!answer.violations.empty()) return answer;
    const absl::Status status = evaluator.Evaluate(*job.parallelism, best);
    if (!status.ok()) {
      answer.violations.push_back(ViolationOf(status));
      return answer;
    }
    FillEstimate(job, best, evaluator, answer.estimate);
    return answer;
  }
  if (!answer.violations.empty()) return answer;

  best = FindPlan(job, evaluator, mappings, cancelled, answer);
  if (answer.cancelled || !answer.violations.empty()) return answer;
  const std::string odd = ExplainOddFactors(DivisorsOf(*job.model), job.slice, job.workload);
  if (!odd.empty()) answer.estimate.warnings.push_back(odd);
  if (best.mappings == nullptr) {
    FillWithoutPlan(job, answer.estimate);
    return answer;
  }
  // The notes of the plan that was found: copied heads, uneven stages, padding.
  std::vector<Violation> none;
  CheckParallelism(*job.model, job.slice, job.workload, best.plan.parallelism, job.allow_idle_chips, job.allow_padding,
                   none, answer.estimate.assumptions);
  FillEstimate(job, best, evaluator, answer.estimate);
  return answer;
}

}  // namespace

TrainingAnswer EstimateGivenPlan(const TrainingJob& job, MappingCache& mappings) {
  return EstimateWithoutFix(job, mappings, nullptr);
}

TrainingAnswer EstimateTraining(const TrainingJob& job, MappingCache& mappings,
                                const std::function<bool()>& cancelled) {
  TrainingAnswer answer = EstimateWithoutFix(job, mappings, cancelled);
  if (!answer.violations.empty() || answer.cancelled || answer.estimate.outcome == Outcome::kFeasible) return answer;
  answer.estimate.smallest_fix =
      SmallestFix(job, answer.estimate, [&](const TrainingJob& changed) -> std::optional<Trial> {
        if (cancelled != nullptr && cancelled()) return std::nullopt;
        const TrainingAnswer tried = EstimateWithoutFix(changed, mappings, cancelled);
        if (!tried.violations.empty() || tried.cancelled) return std::nullopt;
        const TrainingEstimate& estimate = tried.estimate;
        return Trial{estimate.outcome, estimate.step_time.expected_seconds, estimate.goodput.wall_seconds.value_or(0)};
      });
  return answer;
}

}  // namespace sliceplan::planner
