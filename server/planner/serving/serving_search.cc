#include "server/planner/serving/serving_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/planner/budget.h"
#include "server/planner/proposal_words.h"
#include "server/planner/serving/batch_point.h"
#include "server/planner/serving/estimate_serving.h"
#include "server/planner/serving/plan_choice.h"
#include "server/planner/serving/pool_system.h"
#include "server/planner/serving/replica_plan.h"
#include "server/planner/serving/serving_judge.h"
#include "server/planner/serving/serving_limits.h"
#include "server/planner/words.h"

namespace sliceplan::planner {
namespace {

// Estimated in full for each proposal asked for: the mean field orders neighbours wrongly now and then.
constexpr size_t kEstimatedPerProposal = 2;
constexpr double kWorst = ServingJudge::kWorst;
// Replicas of more chips are looked at only when the model fits on nothing smaller.
constexpr int64_t kLargeReplica = 256;

class Search {
 public:
  Search(const ServingQuestion& question, MappingCache& mappings, const std::function<SearchSignal()>& signal)
      : question_(question), judge_(question), mappings_(mappings), signal_(signal) {}

  ServingSearchAnswer Run() {
    // Small slices first: a search that is cut has seen what most loads need.
    std::vector<size_t> order(question_.candidates.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [this](size_t a, size_t b) {
      return question_.candidates[a].slice.TotalChips() < question_.candidates[b].slice.TotalChips();
    });
    for (const size_t i : order) {
      if (!Continue()) break;
      JudgeCandidate(i);
    }
    if (answer_.cancelled) return std::move(answer_);
    std::sort(judged_.begin(), judged_.end(),
              [](const JudgedPlan& a, const JudgedPlan& b) { return a.Order() < b.Order(); });
    FillFrontier();
    EstimateBest();
    if (!answer_.cancelled && question_.workload.load == ServingLoadKind::kRate) EstimateApart();
    if (answer_.cancelled) return std::move(answer_);
    Rank();
    FillNearMisses();
    if (has_large_replicas_) {
      answer_.assumptions.push_back(absl::StrCat("candidates: replicas of more than ", CountWords(kLargeReplica),
                                                 " chips were left out, because smaller ones hold the model"));
    }
    // At a rate and with users the mean field orders plans, and it is no bound.
    answer_.exhaustive &=
        question_.workload.load == ServingLoadKind::kBatch || question_.workload.load == ServingLoadKind::kLargestBatch;
    return std::move(answer_);
  }

 private:
  // False when the caller wants no more.
  bool Continue() {
    if (signal_ == nullptr) return true;
    switch (signal_()) {
      case SearchSignal::kGoOn: return true;
      case SearchSignal::kAnswerNow: answer_.exhaustive = false; return false;
      case SearchSignal::kCancel: answer_.cancelled = true; return false;
    }
    return true;
  }

  std::function<bool()> Cancelled() const {
    if (signal_ == nullptr) return nullptr;
    return [this] { return signal_() == SearchSignal::kCancel; };
  }

  bool NeedsPrice() const { return question_.objective == Objective::kMinCost; }

  int64_t& Pruned(PruneReason reason) { return answer_.pruned[static_cast<size_t>(reason)]; }

  void JudgeCandidate(size_t index) {
    const ServingCandidate& candidate = question_.candidates[index];
    if (NeedsPrice() && !candidate.usd_per_chip_hour) {
      ++Pruned(PruneReason::kNoPrice);
      return;
    }
    if (question_.constraints.max_chip_count && candidate.slice.TotalChips() > *question_.constraints.max_chip_count) {
      ++Pruned(PruneReason::kTooManyChips);
      return;
    }
    if (candidate.slice.TotalChips() > kLargeReplica && !judged_.empty()) {
      ++Pruned(PruneReason::kTooManyChips);
      has_large_replicas_ = true;
      return;
    }
    const ServingJob job = judge_.JobOf(index, PoolRole::kBoth);
    for (const Parallelism& parallelism : ServingPlansOf(job, job.pools[0])) {
      if (!judge_.Allows(parallelism)) continue;
      if (!Continue()) return;
      ++answer_.considered_count;
      auto made = ReplicaPlan::Make(job, job.pools[0], parallelism, NominalBatch(question_.workload), mappings_);
      if (!made.ok()) {
        ++Pruned(absl::IsFailedPrecondition(made.status()) ? PruneReason::kUnknownFigure : PruneReason::kNoPlacement);
        continue;
      }
      JudgePlan(index, job, **made);
    }
  }

  void JudgePlan(size_t index, const ServingJob& job, const ReplicaPlan& plan) {
    JudgedPlan judged;
    const std::optional<PruneReason> pruned = judge_.Judge(index, job, plan, judged);
    if (!pruned) {
      judged_.push_back(std::move(judged));
      return;
    }
    ++Pruned(*pruned);
    if (*pruned == PruneReason::kOutOfMemory) AddTooLarge(judged.summary, plan, judge_.LeastBatch());
  }

  void AddTooLarge(const ServingSummary& summary, const ReplicaPlan& plan, int64_t asked) {
    const ServingMemory memory = plan.memory().Of(asked, FullContext(question_.workload));
    ServingMiss miss;
    miss.plan = summary;
    miss.plan.outcome = ServingOutcome::kOutOfMemory;
    miss.shortfall.limit = "hbm_bytes";
    miss.shortfall.needed = static_cast<double>(memory.used_bytes);
    miss.shortfall.available = static_cast<double>(memory.capacity_bytes);
    miss.shortfall.missing = std::max(1.0, miss.shortfall.needed - miss.shortfall.available);
    const auto nearer = [](const ServingMiss& a, const ServingMiss& b) {
      return a.shortfall.missing < b.shortfall.missing;
    };
    too_large_.insert(std::upper_bound(too_large_.begin(), too_large_.end(), miss, nearer), miss);
    if (too_large_.size() > kMaxNearMisses) too_large_.pop_back();
  }

  void FillFrontier() {
    std::vector<const JudgedPlan*> plans;
    for (const JudgedPlan& judged : judged_) {
      if (judged.meets_targets) plans.push_back(&judged);
    }
    std::stable_sort(plans.begin(), plans.end(), [](const JudgedPlan* a, const JudgedPlan* b) {
      return a->summary.tpot_seconds < b->summary.tpot_seconds;
    });
    const bool priced = std::all_of(plans.begin(), plans.end(), [](const JudgedPlan* judged) {
      return judged->summary.usd_per_million_output_tokens.has_value();
    });
    double best = kWorst;
    for (const JudgedPlan* judged : plans) {
      const double cost =
          priced ? *judged->summary.usd_per_million_output_tokens : -judged->summary.output_tokens_per_second_per_chip;
      if (cost >= best) continue;
      best = cost;
      answer_.frontier.push_back(judged->summary);
    }
  }

  void EstimateBest() {
    const size_t count = std::min(judged_.size(), kEstimatedPerProposal * question_.proposal_count);
    for (size_t i = 0; i < count; ++i) {
      // What was asked for is estimated even when time is out; the engine still hears a cancellation.
      if (!Continue() && (answer_.cancelled || i >= question_.proposal_count)) break;
      const ServingSummary& summary = judged_[i].summary;
      ServingJob job = judge_.JobOf(summary.candidate, PoolRole::kBoth);
      job.pools[0].parallelism = summary.parallelism;
      job.pools[0].replica_count = static_cast<int32_t>(summary.replica_count);
      Estimate(job, {summary.candidate});
    }
    Pruned(PruneReason::kComputeFloor) += static_cast<int64_t>(judged_.size() - count);
  }

  // Estimates once, and once more with the replicas that the first says are needed, where there are that many.
  void Estimate(ServingJob& job, std::vector<size_t> candidates) {
    ServingAnswer answer = EstimateServing(job, mappings_, Cancelled());
    ++answer_.evaluated_count;
    const std::optional<int32_t> needed = answer.estimate.replica_count;
    const bool fits = answer.estimate.outcome == ServingOutcome::kFeasible;
    if (job.pools.size() == 1 && needed && *needed != job.pools[0].replica_count &&
        *needed <= question_.candidates[candidates[0]].max_replica_count && (!fits || question_.slo.Any())) {
      job.pools[0].replica_count = *needed;
      answer = EstimateServing(job, mappings_, Cancelled());
    }
    answer_.cancelled |= answer.cancelled;
    if (!answer.violations.empty() || answer.cancelled) return;
    ServingProposal proposal;
    proposal.candidates = std::move(candidates);
    for (const ServingPool& pool : job.pools) proposal.roles.push_back(pool.role);
    proposal.estimate = std::move(answer.estimate);
    estimated_.push_back(std::move(proposal));
  }

  // Prompts on the slice that reads them cheapest, output on the one that writes it best: one pair.
  void EstimateApart() {
    const std::optional<size_t> decode = BestAlone(PoolRole::kDecode);
    const std::optional<size_t> prefill = BestAlone(PoolRole::kPrefill);
    if (!decode || !prefill || answer_.cancelled) return;
    ServingJob job = judge_.JobOf(*prefill, PoolRole::kPrefill);
    job.pools.push_back(judge_.JobOf(*decode, PoolRole::kDecode).pools[0]);
    job.pools_given = true;
    for (size_t i = 0; i < job.pools.size(); ++i) {
      PlanChoice choice = ChoosePlan(job, job.pools[i], mappings_, Cancelled());
      if (choice.plan == nullptr || !choice.fits) return;
      job.pools[i].parallelism = choice.plan->parallelism();
      const PlannedPool pool{choice.plan.get(), 1, choice.plan->memory().MaxBatch(FullContext(question_.workload))};
      const double sustained = std::max(SustainedRate(job, pool), 1e-12);
      const double replicas = std::ceil(question_.workload.requests_per_second / (kTargetUtilization * sustained));
      const size_t candidate = i == 0 ? *prefill : *decode;
      if (replicas > static_cast<double>(question_.candidates[candidate].max_replica_count)) return;
      job.pools[i].replica_count = static_cast<int32_t>(std::max(1.0, replicas));
    }
    Estimate(job, {*prefill, *decode});
    // The counts by the mean field leave room: fewer decode replicas, then fewer that read prompts.
    for (const size_t pool : {size_t{1}, size_t{0}}) {
      while (!answer_.cancelled && !estimated_.empty() && job.pools[pool].replica_count > 1 &&
             estimated_.back().estimate.outcome == ServingOutcome::kFeasible) {
        --job.pools[pool].replica_count;
        const size_t before = estimated_.size();
        Estimate(job, {*prefill, *decode});
        if (estimated_.size() == before) break;
        if (estimated_.back().estimate.outcome != ServingOutcome::kFeasible) {
          estimated_.pop_back();
          ++job.pools[pool].replica_count;
          break;
        }
        estimated_.erase(estimated_.end() - 2);
      }
    }
  }

  // Dollars (or chips, unpriced) per unit of work in that role alone.
  std::optional<size_t> BestAlone(PoolRole role) {
    std::optional<size_t> best;
    double best_cost = kWorst;
    for (const JudgedPlan& judged : judged_) {
      if (!judged.meets_targets) continue;
      const size_t index = judged.summary.candidate;
      const ServingJob job = judge_.JobOf(index, role);
      auto made =
          ReplicaPlan::Make(job, job.pools[0], judged.summary.parallelism, NominalBatch(question_.workload), mappings_);
      if (!made.ok() || !Continue()) return best;
      const PlannedPool pool{made->get(), 1, (*made)->memory().MaxBatch(FullContext(question_.workload))};
      if (pool.max_batch_size < 1) continue;
      const double cost = static_cast<double>((*made)->chip_count()) *
                          question_.candidates[index].usd_per_chip_hour.value_or(1) /
                          std::max(SustainedRate(job, pool), 1e-12);
      if (cost >= best_cost) continue;
      best_cost = cost;
      best = index;
    }
    return best;
  }

  // By the estimates: feasible first, then the objective.
  void Rank() {
    const auto key = [this](const ServingProposal& proposal) {
      ServingSummary summary;
      summary.candidate = proposal.candidates.back();
      summary.chip_count = proposal.estimate.chip_count;
      summary.tpot_seconds = proposal.estimate.tpot ? proposal.estimate.tpot->mean_seconds : kWorst;
      summary.output_tokens_per_second_per_chip = proposal.estimate.throughput.output_tokens_per_second_per_chip;
      if (proposal.estimate.cost) {
        const double tokens = std::max(proposal.estimate.throughput.output_tokens_per_second, 1e-12);
        summary.usd_per_million_output_tokens =
            proposal.estimate.cost->usd_per_hour / kSecondsPerHour / tokens * kTokensPerMillion;
      }
      double objective = judge_.KeyOf(summary);
      if (question_.objective == Objective::kMinCost && question_.workload.load == ServingLoadKind::kRate) {
        objective = proposal.estimate.cost ? proposal.estimate.cost->usd_per_hour : kWorst;
      }
      return std::make_tuple(proposal.estimate.outcome != ServingOutcome::kFeasible, objective, summary.tpot_seconds,
                             summary.chip_count);
    };
    std::stable_sort(estimated_.begin(), estimated_.end(),
                     [&](const ServingProposal& a, const ServingProposal& b) { return key(a) < key(b); });
    for (ServingProposal& proposal : estimated_) {
      if (proposal.estimate.outcome != ServingOutcome::kFeasible) {
        AddMiss(proposal);
      } else if (answer_.proposals.size() < question_.proposal_count) {
        answer_.proposals.push_back(std::move(proposal));
      }
    }
    for (size_t i = 0; i + 1 < answer_.proposals.size(); ++i) {
      answer_.proposals[i].beats_next_because = Because(answer_.proposals[i], answer_.proposals[i + 1]);
    }
  }

  std::string Because(const ServingProposal& proposal, const ServingProposal& next) const {
    const ServingEstimate& a = proposal.estimate;
    const ServingEstimate& b = next.estimate;
    const auto usd = [](const ServingEstimate& e) { return e.cost ? e.cost->usd_per_hour : 0.0; };
    const std::string tokens = absl::StrCat("a token every ", SecondsWords(a.tpot ? a.tpot->mean_seconds : 0),
                                            " against ", SecondsWords(b.tpot ? b.tpot->mean_seconds : 0));
    const std::string chips = absl::StrCat(CountWords(a.chip_count), " chips against ", CountWords(b.chip_count));
    const std::string money =
        a.cost && b.cost ? absl::StrCat(UsdWords(usd(a)), " an hour against ", UsdWords(usd(b))) : "";
    const std::string dense =
        absl::StrCat(NumberWords(a.throughput.output_tokens_per_second_per_chip), " tokens a second and chip against ",
                     NumberWords(b.throughput.output_tokens_per_second_per_chip));
    switch (question_.objective) {
      case Objective::kMinCost: return absl::StrCat(money, "; ", tokens, ".");
      case Objective::kMinChips: return absl::StrCat(chips, "; ", tokens, ".");
      case Objective::kMaxThroughputPerChip: return absl::StrCat(dense, "; ", tokens, ".");
      case Objective::kMinStepTime:
      case Objective::kMinTimeToTrain: break;
    }
    return absl::StrCat(tokens, "; ", money.empty() ? chips : money, ".");
  }

  void AddMiss(const ServingProposal& proposal) {
    if (answer_.near_misses.size() >= kMaxNearMisses || !proposal.estimate.shortfall) return;
    ServingMiss miss;
    miss.plan.candidate = proposal.candidates.back();
    miss.plan.parallelism = proposal.estimate.pools.back().parallelism;
    miss.plan.replica_count = proposal.estimate.pools.back().replica_count;
    miss.plan.chip_count = proposal.estimate.chip_count;
    miss.plan.outcome = proposal.estimate.outcome;
    miss.plan.tpot_seconds = proposal.estimate.tpot ? proposal.estimate.tpot->mean_seconds : 0;
    miss.plan.output_tokens_per_second_per_chip = proposal.estimate.throughput.output_tokens_per_second_per_chip;
    miss.shortfall = *proposal.estimate.shortfall;
    miss.smallest_fix = proposal.estimate.smallest_fix;
    answer_.near_misses.push_back(std::move(miss));
  }

  // Those that do not fit, in full.
  void FillNearMisses() {
    for (ServingMiss& miss : too_large_) {
      if (answer_.near_misses.size() >= kMaxNearMisses) return;
      ServingJob job = judge_.JobOf(miss.plan.candidate, PoolRole::kBoth);
      job.pools[0].parallelism = miss.plan.parallelism;
      const ServingAnswer answer = EstimateServing(job, mappings_, Cancelled());
      if (answer.estimate.shortfall) miss.shortfall = *answer.estimate.shortfall;
      miss.smallest_fix = answer.estimate.smallest_fix;
      miss.plan.tpot_seconds = answer.estimate.decode.time.expected_seconds;
      answer_.near_misses.push_back(std::move(miss));
    }
  }

  const ServingQuestion& question_;
  const ServingJudge judge_;
  MappingCache& mappings_;
  const std::function<SearchSignal()>& signal_;
  ServingSearchAnswer answer_;
  bool has_large_replicas_ = false;
  std::vector<JudgedPlan> judged_;
  std::vector<ServingMiss> too_large_;
  std::vector<ServingProposal> estimated_;
};

}  // namespace

ServingSearchAnswer ProposeServing(const ServingQuestion& question, MappingCache& mappings,
                                   const std::function<SearchSignal()>& signal) {
  return Search(question, mappings, signal).Run();
}

}  // namespace sliceplan::planner
