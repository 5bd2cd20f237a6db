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
#include "server/planner/site_search.h"
#include "server/planner/workload_check.h"

namespace sliceplan::planner {
namespace {

using hardware::Violation;

constexpr double kNever = std::numeric_limits<double>::infinity();

class Search {
 public:
  Search(const ShardingQuestion& question, MappingCache& mappings, const std::function<SearchSignal()>& signal)
      : question_(question),
        mappings_(mappings),
        limits_{question.constraints.fixed_ici, question.constraints.fixed_dcn, question.constraints.forbidden,
                question.constraints.allow_idle_chips, question.constraints.allow_padding},
        divisors_(DivisorsOf(*question.model)),
        record_(question),
        progress_(signal),
        crew_(question, mappings, question.thread_count - 1) {}

  ShardingAnswer Run() {
    OpenSites();
    answer_.pruned = progress_.pruned;
    if (sites_.empty() && !answer_.violations.empty()) return std::move(answer_);
    answer_.violations.clear();
    for (const std::unique_ptr<SearchSite>& site : sites_) {
      if (progress_.stopped) {
        record_.AddUnseen(site->index, floors_[site->index]);
        continue;
      }
      if (!record_.Wants(site->index, floors_[site->index])) {
        Prune(PruneReason::kComputeFloor, 1);
        continue;
      }
      SiteSearch(*site, divisors_, limits_, record_, progress_, crew_).Run();
      if (progress_.cancelled) {
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
      std::vector<std::string> said;  // of the candidate that this is a variant of
      CheckWorkload(job, violations, PlaceOf(question_, i) == i ? answer_.warnings : said);
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

  void Prune(PruneReason reason, int64_t count) { progress_.Prune(reason, count); }

  // ---- The answer ----

  void Finish() {
    answer_.considered_count = progress_.considered_count;
    answer_.evaluated_count = progress_.evaluated_count;
    answer_.pruned = progress_.pruned;
    answer_.unknown_figure = progress_.unknown_figure;
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
    answer_.exhaustive = !progress_.stopped && answer_.optimality_gap_ratio == 0;
    if (!answer_.proposals.empty()) {
      answer_.closed_forms = ClosedForms(SiteOf(answer_.proposals.front().candidate).job, answer_.proposals.front());
    }
  }

  // A fix takes about a hundred trials: with proposals at hand only the nearest miss gets one.
  void AddNearMisses() {
    if (progress_.stopped) return;  // the caller waits
    for (const SearchRecord::Miss& miss : record_.NearMisses()) {
      NearMiss near;
      SearchSite& site = SiteOf(miss.candidate);
      near.shortfall_amount = miss.amount;
      near.on_host = miss.on_host;
      TrainingJob job = site.job;
      job.parallelism = miss.plan;
      EvaluatedPlan evaluated;
      const absl::StatusOr<PlanLaws> laws = site.ideal.Of(miss.plan);
      if (!laws.ok() || !site.evaluator.EvaluateBelow(kNever, miss.plan, *laws, evaluated).ok()) continue;
      near.plan = record_.SummaryOf(miss.candidate, miss.plan, evaluated.times.expected_seconds);
      near.plan.outcome = miss.outcome;
      if (question_.explain_near_misses) {
        const bool with_fix = answer_.near_misses.empty() || answer_.proposals.empty();
        if (!with_fix) job.parallelism->mapping = AssignmentsOf(evaluated.mapping());
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

  const ShardingQuestion& question_;
  MappingCache& mappings_;
  const PlanLimits limits_;
  const ModelDivisors divisors_;
  SearchRecord record_;
  SearchProgress progress_;
  FitCrew crew_;
  std::vector<std::unique_ptr<SearchSite>> sites_;
  std::vector<double> floors_;  // by candidate
  ShardingAnswer answer_;
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
