#include "server/planner/serving/serving_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/planner/serving/batch_point.h"
#include "server/planner/serving/estimate_serving.h"
#include "server/planner/serving/plan_choice.h"
#include "server/planner/serving/plan_merit.h"
#include "server/planner/serving/replica_count.h"
#include "server/planner/serving/replica_plan.h"
#include "server/planner/serving/serving_apart.h"
#include "server/planner/serving/serving_judge.h"
#include "server/planner/serving/serving_limits.h"
#include "server/planner/serving/serving_misses.h"
#include "server/planner/serving/serving_reasons.h"
#include "server/planner/words.h"

namespace sliceplan::planner {
namespace {

// Where the order of plans is not exact, as many are estimated in full for each proposal asked for: the mean field
// orders neighbours wrongly now and then.
constexpr size_t kEstimatedPerProposal = 2;
constexpr double kWorst = ServingJudge::kWorst;
// Replicas of more chips are looked at only when the model fits on nothing smaller.
constexpr int64_t kLargeReplica = 256;
// Of pools apart that are tried, cheapest first.
constexpr size_t kMostPairs = 12;

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
    if (!answer_.cancelled) TakeBest();
    if (!answer_.cancelled && question_.workload.load == ServingLoadKind::kRate) TakeApart();
    if (answer_.cancelled) return std::move(answer_);
    Pruned(PruneReason::kComputeFloor) += static_cast<int64_t>(judged_.size()) - answer_.evaluated_count;
    FillFrontier();
    Rank();
    FillNearMisses();
    if (has_large_replicas_) {
      answer_.assumptions.push_back(absl::StrCat("candidates: replicas of more than ", CountWords(kLargeReplica),
                                                 " chips were left out, because smaller ones hold the model"));
    }
    SetProof();
    return std::move(answer_);
  }

 private:
  // False when the caller wants no more.
  bool Continue() {
    if (signal_ == nullptr) return true;
    switch (signal_()) {
      case SearchSignal::kGoOn: return true;
      case SearchSignal::kAnswerNow: answer_.exhaustive = was_seen_whole_ = false; return false;
      case SearchSignal::kCancel: answer_.cancelled = true; return false;
    }
    return true;
  }

  std::function<bool()> Cancelled() const {
    if (signal_ == nullptr) return nullptr;
    return [this] { return signal_() == SearchSignal::kCancel; };
  }

  bool NeedsPrice() const { return question_.objective == Objective::kMinCost && question_.requires_price; }

  int64_t& Pruned(PruneReason reason) { return answer_.pruned[static_cast<size_t>(reason)]; }

  // Of one replica: what one slice costs at a rate, whatever the plan.
  double LeastKeyOfSlice(const ServingCandidate& candidate) const {
    if (question_.workload.load != ServingLoadKind::kRate || !judge_.OrderIsExact()) return -kWorst;
    PlanMerit merit;
    merit.output_tokens_per_second = question_.workload.requests_per_second * question_.workload.output.Mean();
    return KeyOf(question_.objective, question_.workload, merit, candidate.slice.TotalChips(),
                 candidate.usd_per_chip_hour);
  }

  // A slice left out whole counts as one plan.
  void LeaveOut(PruneReason reason) {
    ++answer_.considered_count;
    ++Pruned(reason);
  }

  void JudgeCandidate(size_t index) {
    const ServingCandidate& candidate = question_.candidates[index];
    if (NeedsPrice() && !candidate.usd_per_chip_hour) return LeaveOut(PruneReason::kNoPrice);
    if (question_.constraints.max_chip_count && candidate.slice.TotalChips() > *question_.constraints.max_chip_count) {
      return LeaveOut(PruneReason::kTooManyChips);
    }
    if (candidate.slice.TotalChips() > kLargeReplica && !judged_.empty()) {
      LeaveOut(PruneReason::kTooManyChips);
      has_large_replicas_ = true;
      least_unseen_ = std::min(least_unseen_, LeastKeyOfSlice(candidate));
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
    if (*pruned == PruneReason::kOutOfMemory) {
      too_large_.Add(judged.summary, plan, question_.workload, judge_.LeastBatch());
    }
  }

  void FillFrontier() {
    std::vector<const JudgedPlan*> plans;
    for (const JudgedPlan& judged : judged_) {
      if (judged.summary.outcome == ServingOutcome::kFeasible) plans.push_back(&judged);
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

  // Best first. A plan whose replicas are a bound goes back to its place once a replay has counted them.
  void TakeBest() {
    const auto behind = [this](size_t a, size_t b) {
      return std::make_tuple(judged_[a].rank.Order(), a) > std::make_tuple(judged_[b].rank.Order(), b);
    };
    std::priority_queue<size_t, std::vector<size_t>, decltype(behind)> queue(behind);
    for (size_t i = 0; i < judged_.size(); ++i) {
      if (judged_[i].rank.tier == PlanTier::kCarries) {
        queue.push(i);
      } else {
        missed_.push_back(i);
      }
    }
    const size_t wanted = question_.proposal_count * (judge_.OrderIsExact() ? 1 : kEstimatedPerProposal);
    size_t tried = 0;
    while (!queue.empty() && estimated_.size() < wanted) {
      // What was asked for is tried even when time is out; the engine still hears a cancellation.
      if (!Continue() && (answer_.cancelled || tried >= question_.proposal_count)) break;
      const size_t index = queue.top();
      queue.pop();
      JudgedPlan& judged = judged_[index];
      if (counted_.count(index) == 0) ++answer_.evaluated_count;
      if (judged.is_bound) {
        const bool is_possible = CountReplicas(index);
        if (answer_.cancelled) return;
        if (!is_possible) {
          missed_.push_back(index);
          ++tried;
          continue;
        }
        if (judged.is_bound || judge_.OrderIsExact()) {
          queue.push(index);
          continue;
        }
      }
      ++tried;
      ServingJob job = JobOf(judged, judged.replica_count);
      EstimatePlan(job, {judged.summary.candidate}, judged.rank, counted_[index].trials);
      if (answer_.cancelled) return;
    }
    // What is left is behind what was taken, where the order is exact; else no token of it can come before its floor.
    for (; !queue.empty(); queue.pop()) {
      const JudgedPlan& judged = judged_[queue.top()];
      least_unseen_ = std::min(least_unseen_, judge_.OrderIsExact() ? judged.rank.key : judged.floor_seconds);
    }
  }

  ServingJob JobOf(const JudgedPlan& judged, int64_t replica_count) const {
    ServingJob job = judge_.JobOf(judged.summary.candidate, PoolRole::kBoth);
    job.pools[0].parallelism = judged.summary.parallelism;
    job.pools[0].replica_count = static_cast<int32_t>(replica_count);
    return job;
  }

  // One replay more, or where the order is not exact as many as it takes. False: no number of replicas meets the
  // targets, or more than there may be.
  bool CountReplicas(size_t index) {
    JudgedPlan& judged = judged_[index];
    Counted& counted = counted_[index];
    if (counted.plan == nullptr) {
      counted.job = JobOf(judged, 1);
      auto plan = ReplicaPlan::Make(counted.job, counted.job.pools[0], judged.summary.parallelism,
                                    NominalBatch(question_.workload), mappings_);
      if (!plan.ok()) return false;
      counted.plan = *std::move(plan);
      const PlannedPool pool{counted.plan.get(), 1, counted.plan->memory().MaxBatch(FullContext(question_.workload))};
      counted.counter.emplace(counted.job, pool, counted.trials);
    }
    ReplicaCounter& counter = *counted.counter;
    do {
      if (!counter.is_done()) counter.Advance(Cancelled(), answer_.cancelled);
    } while (!counter.is_done() && !judge_.OrderIsExact());
    const bool is_possible = !counter.is_done() || counter.count();
    judged.is_bound = !counter.is_done();
    if (is_possible &&
        judge_.SetReplicas(counted.job, *counted.plan, counter.count().value_or(counter.bound()), judged)) {
      return true;
    }
    judged.summary.outcome = ServingOutcome::kMissesSlo;
    return false;
  }

  // Adds it to the estimated or, when it does not run as asked, to those that miss.
  void EstimatePlan(const ServingJob& job, std::vector<size_t> candidates, const PlanRank& rank,
                    ReplicaTrials& trials) {
    ServingAnswer answer = EstimateServing(job, mappings_, Cancelled(), job.pools.size() == 1 ? &trials : nullptr);
    answer_.cancelled |= answer.cancelled;
    if (!answer.violations.empty() || answer.cancelled) return;
    RankedProposal one;
    one.rank = rank;
    if (!judge_.OrderIsExact()) one.rank.key = judge_.KeyOf(answer.estimate);
    one.proposal.candidates = std::move(candidates);
    for (const ServingPool& pool : job.pools) one.proposal.roles.push_back(pool.role);
    one.proposal.estimate = std::move(answer.estimate);
    if (one.proposal.estimate.outcome == ServingOutcome::kFeasible) {
      estimated_.push_back(std::move(one));
    } else if (one.proposal.estimate.shortfall) {
      AddMiss(MissOf(one.proposal), answer_.near_misses);
    }
  }

  // Prompts on a slice that reads them cheaply, output on one that writes it cheaply: pairs in the order of their
  // bounds, until those are behind the best pair or all proposals.
  void TakeApart() {
    std::vector<ApartPair> pairs = CheapestPairs(question_, judge_, judged_, mappings_, [this] { return Continue(); });
    if (pairs.size() > kMostPairs) pairs.resize(kMostPairs);
    double best_key = kWorst;
    for (ApartPair& pair : pairs) {
      if (!Continue()) return;
      const double least_key = KeyOfPair(pair);
      if (least_key >= best_key) return;
      const bool is_full = estimated_.size() >= question_.proposal_count;
      if (is_full && judge_.OrderIsExact() && least_key > estimated_[question_.proposal_count - 1].rank.key) return;
      least_unseen_ = std::min(least_unseen_, judge_.OrderIsExact() ? least_key : -kWorst);
      if (!SetReplicas(pair, mappings_, Cancelled()) || !TakePair(pair)) continue;
      // By time per token the bounds say nothing: one pair is enough.
      if (!judge_.OrderIsExact()) return;
      best_key = std::min(best_key, estimated_.back().rank.key);
    }
  }

  // False: it does not run as asked after all.
  bool TakePair(const ApartPair& pair) {
    ReplicaTrials none;
    const size_t before = estimated_.size();
    EstimatePlan(pair.job, pair.candidates, PlanRank(), none);
    if (estimated_.size() == before) return false;
    PlanRank& rank = estimated_.back().rank;
    const ServingEstimate& estimate = estimated_.back().proposal.estimate;
    rank.tier = PlanTier::kCarries;
    rank.key = judge_.KeyOf(estimate);
    rank.seconds = estimate.end_to_end ? estimate.end_to_end->mean_seconds : kWorst;
    rank.chip_count = estimate.chip_count;
    rank.candidate = pair.candidates[0];
    return true;
  }

  // Of what a pair costs at least, in dollars or chips.
  double KeyOfPair(const ApartPair& pair) const {
    PlanMerit merit;
    merit.output_tokens_per_second = question_.workload.requests_per_second * question_.workload.output.Mean();
    const auto chips = static_cast<int64_t>(std::ceil(pair.least_chips));
    const std::optional<double> usd =
        pair.least_usd ? std::optional<double>(*pair.least_usd / static_cast<double>(chips)) : std::nullopt;
    return KeyOf(question_.objective, question_.workload, merit, chips, usd);
  }

  // In the order of the objective.
  void Rank() {
    std::stable_sort(estimated_.begin(), estimated_.end(),
                     [](const RankedProposal& a, const RankedProposal& b) { return a.rank.Order() < b.rank.Order(); });
    if (estimated_.size() > question_.proposal_count) estimated_.resize(question_.proposal_count);
    for (size_t i = 0; i + 1 < estimated_.size(); ++i) {
      estimated_[i].proposal.beats_next_because = ServingReason(question_.objective, estimated_[i], estimated_[i + 1]);
    }
    for (RankedProposal& one : estimated_) answer_.proposals.push_back(std::move(one.proposal));
  }

  // Proven is what no bound of what was not estimated is below.
  void SetProof() {
    // The throughput of users that is reported is then the replay's, which the order only comes near.
    const bool by_mean =
        question_.workload.load == ServingLoadKind::kConcurrency && question_.mode == EstimationMode::kRoofline;
    if (by_mean) answer_.exhaustive = was_seen_whole_ = false;
    if (estimated_.empty()) {
      answer_.exhaustive = answer_.exhaustive && least_unseen_ >= kWorst;
      return;
    }
    const double best = estimated_[0].rank.key;
    answer_.exhaustive = answer_.exhaustive && least_unseen_ >= best;
    if (!answer_.exhaustive && least_unseen_ > 0 && best > 0 && was_seen_whole_) {
      answer_.optimality_gap_ratio = std::max(0.0, 1 - least_unseen_ / best);
    }
  }

  // When there are fewer proposals than asked for, plans that miss a target; and those that do not fit, in full.
  void FillNearMisses() {
    if (answer_.proposals.size() < question_.proposal_count) {
      std::stable_sort(missed_.begin(), missed_.end(),
                       [this](size_t a, size_t b) { return judged_[a].rank.Order() < judged_[b].rank.Order(); });
      std::vector<size_t> slices;
      for (const size_t index : missed_) {
        const JudgedPlan& judged = judged_[index];
        if (slices.size() >= kMaxNearMisses || answer_.near_misses.size() >= kMaxNearMisses || answer_.cancelled) break;
        if (std::find(slices.begin(), slices.end(), judged.summary.candidate) != slices.end()) continue;
        slices.push_back(judged.summary.candidate);
        EstimatePlan(JobOf(judged, judged.summary.replica_count), {judged.summary.candidate}, judged.rank,
                     counted_[index].trials);
      }
    }
    for (const ServingMiss& miss : too_large_.plans()) {
      if (answer_.near_misses.size() >= kMaxNearMisses) return;
      // Where another plan of the slice fits, this one is no way out of anything.
      const bool fits_otherwise = std::any_of(judged_.begin(), judged_.end(), [&miss](const JudgedPlan& judged) {
        return judged.summary.candidate == miss.plan.candidate;
      });
      if (fits_otherwise) continue;
      ServingMiss added = miss;
      ServingJob job = judge_.JobOf(miss.plan.candidate, PoolRole::kBoth);
      job.pools[0].parallelism = miss.plan.parallelism;
      const ServingAnswer answer = EstimateServing(job, mappings_, Cancelled());
      if (answer.estimate.shortfall) added.shortfall = *answer.estimate.shortfall;
      added.smallest_fix = answer.estimate.smallest_fix;
      added.plan.tpot_seconds = answer.estimate.decode.time.expected_seconds;
      AddMiss(std::move(added), answer_.near_misses);
    }
  }

  // A plan whose replicas are being counted. Its parts point at each other.
  struct Counted {
    ServingJob job;
    std::unique_ptr<ReplicaPlan> plan;
    ReplicaTrials trials;
    std::optional<ReplicaCounter> counter;
  };

  const ServingQuestion& question_;
  const ServingJudge judge_;
  MappingCache& mappings_;
  const std::function<SearchSignal()>& signal_;
  ServingSearchAnswer answer_;
  bool has_large_replicas_ = false;
  std::vector<JudgedPlan> judged_;
  TooLargePlans too_large_;
  std::vector<size_t> missed_;         // of judged_
  std::map<size_t, Counted> counted_;  // by index of judged_
  std::vector<RankedProposal> estimated_;
  double least_unseen_ = kWorst;  // no plan that was not estimated has a smaller key
  bool was_seen_whole_ = true;    // all plans were judged
};

}  // namespace

ServingSearchAnswer ProposeServing(const ServingQuestion& question, MappingCache& mappings,
                                   const std::function<SearchSignal()>& signal) {
  return Search(question, mappings, signal).Run();
}

}  // namespace sliceplan::planner
