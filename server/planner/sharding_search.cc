#include "server/planner/sharding_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/planner/cost.h"
#include "server/planner/estimate_training.h"
#include "server/planner/fill_estimate.h"
#include "server/planner/goodput.h"
#include "server/planner/legality.h"
#include "server/planner/plan_evaluator.h"
#include "server/planner/plan_space.h"
#include "server/planner/proposal_words.h"
#include "server/planner/search_record.h"
#include "server/planner/search_site.h"
#include "server/planner/workload_check.h"

namespace sliceplan::planner {
namespace {

using hardware::Violation;

class Search {
 public:
  Search(const ShardingQuestion& question, MappingCache& mappings, const std::function<SearchSignal()>& signal)
      : question_(question),
        mappings_(mappings),
        signal_(signal),
        limits_{question.constraints.fixed_ici, question.constraints.fixed_dcn, question.constraints.forbidden,
                question.constraints.allow_idle_chips, question.constraints.allow_padding},
        divisors_(DivisorsOf(*question.model)),
        record_(question) {}

  ShardingAnswer Run() {
    OpenSites();
    if (sites_.empty() && !answer_.violations.empty()) return std::move(answer_);
    answer_.violations.clear();
    for (const std::unique_ptr<SearchSite>& site : sites_) {
      if (stopped_ || !Wanted(*site, floors_[site->index])) {
        Unseen(*site, floors_[site->index]);
        if (!stopped_) Prune(PruneReason::kComputeFloor, 1);
        continue;
      }
      SearchPlans(*site);
      if (cancelled_) {
        answer_.cancelled = true;
        return std::move(answer_);
      }
    }
    Finish();
    return std::move(answer_);
  }

 private:
  // Candidates that can be asked at all, those that can be best first.
  void OpenSites() {
    floors_.resize(question_.candidates.size());
    std::unique_ptr<SearchSite> least_hopeless;
    double least_needed = 0;
    for (size_t i = 0; i < question_.candidates.size(); ++i) {
      auto site = std::make_unique<SearchSite>(question_, i, mappings_);
      const TrainingJob& job = site->job;
      const std::optional<int64_t>& most = question_.constraints.max_chip_count;
      if (most && job.slice.TotalChips() > *most) {
        Prune(PruneReason::kTooManyChips, 1);
        continue;
      }
      if (!job.usd_per_chip_hour && (question_.objective == Objective::kMinCost || job.budget_usd)) {
        Prune(PruneReason::kNoPrice, 1);
        continue;
      }
      std::vector<Violation> violations;
      CheckWorkload(job, violations, answer_.warnings);
      if (violations.empty()) {
        CheckAccelerator(job, violations);
        if (!violations.empty()) Prune(PruneReason::kUnknownFigure, 1);
      }
      if (!violations.empty()) {
        if (answer_.violations.empty()) answer_.violations = std::move(violations);
        continue;
      }
      // How often the state of the job fills its chips.
      const double needed = LeastStateBytes(job) / static_cast<double>(*job.slice.accelerator.AllocatableBytes());
      floors_[i] = FloorSeconds(job);
      if (needed > kHopeless) {
        Prune(PruneReason::kOutOfMemory, 1);
        if (least_hopeless == nullptr || needed < least_needed) {
          least_needed = needed;
          least_hopeless = std::move(site);
        }
        continue;
      }
      sites_.push_back(std::move(site));
    }
    // With nothing better to say, what the largest of them lacks.
    if (sites_.empty() && least_hopeless != nullptr) {
      Prune(PruneReason::kOutOfMemory, -1);
      sites_.push_back(std::move(least_hopeless));
    }
    std::stable_sort(sites_.begin(), sites_.end(), [this](const auto& a, const auto& b) {
      return record_.KeyOf(a->index, floors_[a->index]) < record_.KeyOf(b->index, floors_[b->index]);
    });
  }

  bool Wanted(const SearchSite& site, double seconds) const { return record_.Wants(site.index, seconds); }

  void Prune(PruneReason reason, int64_t count) { answer_.pruned[static_cast<size_t>(reason)] += count; }

  // A plan, or all plans, of a site that were not looked at and take at least so long.
  void Unseen(const SearchSite& site, double seconds) {
    if (stopped_) record_.AddUnseen(site.index, seconds);
  }

  // Whether to go on.
  bool Poll() {
    if (stopped_) return false;
    if (signal_ == nullptr) return true;
    const SearchSignal signal = signal_();
    cancelled_ = signal == SearchSignal::kCancel;
    stopped_ = signal != SearchSignal::kGoOn;
    return !stopped_;
  }

  // ---- One slice ----

  struct BoundedShape {
    const PlanShape* shape = nullptr;
    double bound_seconds = 0;
    int64_t split_count = 0;
  };

  void SearchPlans(SearchSite& site) {
    const std::vector<PlanShape> shapes = ShapesOf(divisors_, site.job.slice, site.job.workload, limits_);
    std::vector<BoundedShape> bounded;
    bounded.reserve(shapes.size());
    for (const PlanShape& shape : shapes) {
      if (bounded.size() % kShapesPerPoll == 0 && !Poll()) break;
      BoundedShape entry;
      entry.shape = &shape;
      if (!BoundShape(site, shape, entry)) continue;
      bounded.push_back(entry);
    }
    std::stable_sort(bounded.begin(), bounded.end(),
                     [](const BoundedShape& a, const BoundedShape& b) { return a.bound_seconds < b.bound_seconds; });
    if (bounded.size() < shapes.size()) Unseen(site, floors_[site.index]);
    for (const BoundedShape& entry : bounded) {
      const bool wanted = Wanted(site, entry.bound_seconds);
      if (wanted && Poll()) {
        SearchShape(site, *entry.shape);
        continue;
      }
      if (cancelled_) return;
      Unseen(site, entry.bound_seconds);
      if (wanted) continue;
      Prune(PruneReason::kNetworkFloor, entry.split_count);
    }
  }

  // False when a network figure is missing.
  bool BoundShape(SearchSite& site, const PlanShape& shape, BoundedShape& entry) {
    entry.split_count = SplitCount(shape, limits_);
    answer_.considered_count += entry.split_count;
    StepPlan plan = FastestPlan(site, MostSharded(shape));
    SplitStages(*question_.model, plan.parallelism, stages_);
    CountStep(site.job, plan, fastest_load_);
    const absl::StatusOr<PlanLaws> laws = site.ideal.Of(shape.parallelism);
    if (!laws.ok()) {
      answer_.unknown_figure = laws.status();
      Prune(PruneReason::kUnknownFigure, entry.split_count);
      return false;
    }
    entry.bound_seconds = TimeStep(site.job, plan, fastest_load_, *laws, stages_, details_).expected_seconds;
    return true;
  }

  static Parallelism MostSharded(const PlanShape& shape) {
    Parallelism plan = shape.parallelism;
    plan.ici[LogicalAxis::kFsdp] = static_cast<int32_t>(shape.shards_ici);
    plan.dcn[LogicalAxis::kFsdp] = static_cast<int32_t>(shape.shards_dcn);
    plan.data_zero_stage = ZeroStage::k1;
    return plan;
  }

  // The choices that compute least: nothing recomputed, nothing accumulated.
  StepPlan FastestPlan(const SearchSite& site, Parallelism parallelism) const {
    const TrainingWorkload& workload = site.job.workload;
    return site.evaluator.PlanOf(std::move(parallelism), workload.remat_policy.value_or(RematPolicy::kNone),
                                 workload.gradient_accumulation.value_or(1));
  }

  struct BoundedSplit {
    Parallelism plan;
    double bound_seconds = 0;
  };

  void SearchShape(SearchSite& site, const PlanShape& shape) {
    const Parallelism most_sharded = MostSharded(shape);
    if (const MemoryUse least = site.evaluator.LeastMemory(most_sharded); !site.evaluator.Fits(least)) {
      Prune(PruneReason::kOutOfMemory, SplitCount(shape, limits_));
      record_.AddTooLarge(site.index, most_sharded, least);
      return;
    }
    std::vector<BoundedSplit> splits;
    SplitStages(*question_.model, shape.parallelism, stages_);
    CountStep(site.job, FastestPlan(site, most_sharded), fastest_load_);
    for (Parallelism& split : SplitsOf(shape, limits_)) {
      const absl::StatusOr<PlanLaws> laws = site.ideal.Of(split);
      if (!laws.ok()) {
        answer_.unknown_figure = laws.status();
        Prune(PruneReason::kUnknownFigure, 1);
        continue;
      }
      const StepPlan plan = FastestPlan(site, split);
      const double bound = TimeStep(site.job, plan, fastest_load_, *laws, stages_, details_).expected_seconds;
      splits.push_back({std::move(split), bound});
    }
    std::stable_sort(splits.begin(), splits.end(),
                     [](const BoundedSplit& a, const BoundedSplit& b) { return a.bound_seconds < b.bound_seconds; });
    for (const BoundedSplit& split : splits) {
      if (!Wanted(site, split.bound_seconds)) {
        Prune(PruneReason::kNetworkFloor, 1);
      } else if (!Poll()) {
        Unseen(site, split.bound_seconds);
      } else {
        EvaluateSplit(site, split);
      }
    }
  }

  void EvaluateSplit(SearchSite& site, const BoundedSplit& split) {
    MemoryUse least = site.evaluator.LeastMemory(split.plan);
    if (!site.evaluator.Fits(least)) {
      Prune(PruneReason::kOutOfMemory, 1);
      record_.AddTooLarge(site.index, split.plan, least);
      return;
    }
    EvaluatedPlan evaluated;
    const absl::Status status = site.evaluator.Evaluate(split.plan, evaluated);
    if (!status.ok()) {
      const bool unknown = absl::IsFailedPrecondition(status);
      if (unknown) answer_.unknown_figure = status;
      Prune(unknown ? PruneReason::kUnknownFigure : PruneReason::kNoPlacement, 1);
      return;
    }
    ++answer_.evaluated_count;
    if (evaluated.mappings->truncated) record_.AddUnseen(site.index, split.bound_seconds);
    record_.Add(site.index, std::move(evaluated));
  }

  // ---- The answer ----

  void Finish() {
    for (const FoundPlan& found : record_.best()) {
      SearchSite& site = SiteOf(found.candidate);
      Proposal proposal;
      proposal.candidate = found.candidate;
      std::vector<Violation> none;
      CheckParallelism(*question_.model, site.job.slice, site.job.workload, found.evaluated.plan.parallelism,
                       limits_.allow_idle_chips, limits_.allow_padding, none, proposal.estimate.assumptions,
                       &proposal.estimate.paddings);
      FillEstimate(site.job, found.evaluated, site.evaluator, proposal.estimate);
      answer_.proposals.push_back(std::move(proposal));
    }
    for (size_t i = 0; i + 1 < answer_.proposals.size(); ++i) {
      Proposal& proposal = answer_.proposals[i];
      proposal.beats_next_because = BeatsBecause(question_, proposal, answer_.proposals[i + 1]);
    }
    answer_.frontier = record_.Frontier();
    AddNearMisses();
    answer_.optimality_gap_ratio = record_.GapRatio();
    answer_.exhaustive = !stopped_ && answer_.optimality_gap_ratio == 0;
    if (!answer_.proposals.empty()) {
      answer_.closed_forms = ClosedForms(SiteOf(answer_.proposals.front().candidate).job, answer_.proposals.front());
    }
  }

  // A fix takes about a hundred trials: with proposals at hand only the nearest miss gets one.
  void AddNearMisses() {
    if (stopped_) return;  // the caller waits
    for (const SearchRecord::Miss& miss : record_.NearMisses()) {
      NearMiss near;
      SearchSite& site = SiteOf(miss.candidate);
      near.shortfall_amount = miss.amount;
      TrainingJob job = site.job;
      job.parallelism = miss.plan;
      EvaluatedPlan evaluated;
      if (!site.evaluator.Evaluate(miss.plan, evaluated).ok()) continue;
      near.plan = record_.SummaryOf(miss.candidate, miss.plan, evaluated.times.expected_seconds);
      near.plan.outcome = miss.outcome;
      if (question_.explain_near_misses) {
        const bool with_fix = answer_.near_misses.empty() || answer_.proposals.empty();
        TrainingAnswer explained = with_fix ? EstimateTraining(job, mappings_) : EstimateGivenPlan(job, mappings_);
        near.shortfall = std::move(explained.estimate.shortfall);
        near.smallest_fix = std::move(explained.estimate.smallest_fix);
      }
      answer_.near_misses.push_back(std::move(near));
    }
  }

  SearchSite& SiteOf(size_t candidate) {
    return **std::find_if(sites_.begin(), sites_.end(),
                          [candidate](const auto& site) { return site->index == candidate; });
  }

  static constexpr size_t kShapesPerPoll = 64;

  const ShardingQuestion& question_;
  MappingCache& mappings_;
  const std::function<SearchSignal()>& signal_;
  const PlanLimits limits_;
  const ModelDivisors divisors_;
  SearchRecord record_;
  std::vector<std::unique_ptr<SearchSite>> sites_;
  std::vector<double> floors_;  // by candidate
  ShardingAnswer answer_;
  bool stopped_ = false;
  bool cancelled_ = false;
  // Working memory.
  StepLoad fastest_load_;
  StageSplit stages_;
  StepDetails details_;
};

}  // namespace

absl::string_view PruneReasonName(PruneReason reason) {
  switch (reason) {
    case PruneReason::kNoPrice: return "NO_PRICE";
    case PruneReason::kTooManyChips: return "TOO_MANY_CHIPS";
    case PruneReason::kUnknownFigure: return "UNKNOWN_FIGURE";
    case PruneReason::kOutOfMemory: return "OUT_OF_MEMORY";
    case PruneReason::kComputeFloor: return "COMPUTE_FLOOR";
    case PruneReason::kNetworkFloor: return "NETWORK_FLOOR";
    case PruneReason::kNoPlacement: return "NO_PLACEMENT";
  }
  return "";
}

ShardingAnswer ProposeSharding(const ShardingQuestion& question, MappingCache& mappings,
                               const std::function<SearchSignal()>& signal) {
  return Search(question, mappings, signal).Run();
}

}  // namespace sliceplan::planner
