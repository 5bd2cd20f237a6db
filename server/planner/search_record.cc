#include "server/planner/search_record.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "server/planner/budget.h"
#include "server/planner/cost.h"
#include "server/planner/goodput.h"
#include "server/planner/host_memory.h"

namespace sliceplan::planner {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kLimitPrecision = 1e-9;

bool SameDegrees(const Parallelism& a, const Parallelism& b) { return a.ici == b.ici && a.dcn == b.dcn; }

}  // namespace

SearchRecord::SearchRecord(const ShardingQuestion& question)
    : question_(question), of_place_(question.candidates.size()) {}

bool SearchRecord::IsSamePlan(size_t candidate, const Parallelism& plan, size_t other,
                              const Parallelism& other_plan) const {
  return PlaceOf(candidate) == PlaceOf(other) && SameDegrees(plan, other_plan);
}

double SearchRecord::TokensPerStep(size_t candidate) const {
  const TrainingWorkload& workload = question_.candidates[candidate].workload;
  return static_cast<double>(workload.global_batch_size) * static_cast<double>(workload.sequence_length);
}

double SearchRecord::UsdPerStep(size_t candidate, double seconds) const {
  const SearchCandidate& where = question_.candidates[candidate];
  return where.usd_per_chip_hour.value_or(0) * ChipHours(where.slice.TotalChips(), seconds);
}

SearchRecord::Run SearchRecord::RunOf(size_t candidate, double seconds) const {
  const SearchCandidate& where = question_.candidates[candidate];
  Run run;
  if (!where.workload.total_tokens) return run;
  const double steps = std::ceil(static_cast<double>(*where.workload.total_tokens) / TokensPerStep(candidate));
  std::vector<std::string> unused;
  const Goodput goodput = GoodputOf(question_.reliability, where.slice.TotalChips(), seconds, steps * seconds, unused);
  const double wall = goodput.wall_seconds.value_or(kNever);
  run.end_seconds = where.available_after_seconds + wall;
  if (where.usd_per_chip_hour) run.total_usd = UsdPerStep(candidate, wall);
  return run;
}

Outcome SearchRecord::OutcomeOf(const Run& run) const {
  const SearchConstraints& constraints = question_.constraints;
  if (constraints.deadline_seconds && run.end_seconds && *run.end_seconds > *constraints.deadline_seconds) {
    return Outcome::kMissesDeadline;
  }
  if (constraints.budget_usd && run.total_usd && *run.total_usd > *constraints.budget_usd) return Outcome::kOverBudget;
  return Outcome::kFeasible;
}

SearchKey SearchRecord::KeyOf(size_t candidate, double seconds) const {
  const double chips = static_cast<double>(question_.candidates[candidate].slice.TotalChips());
  SearchKey key{seconds, seconds, candidate};
  switch (question_.objective) {
    case Objective::kMinStepTime: break;
    case Objective::kMinCost:
      key.objective = RunOf(candidate, seconds).total_usd.value_or(UsdPerStep(candidate, seconds));
      break;
    case Objective::kMaxThroughputPerChip: key.objective = seconds * chips; break;
    case Objective::kMinChips: key.objective = chips; break;
    case Objective::kMinTimeToTrain: key.objective = RunOf(candidate, seconds).end_seconds.value_or(seconds); break;
  }
  return key;
}

bool SearchRecord::IsOnFrontier(size_t candidate, double seconds) const {
  if (!question_.candidates[candidate].usd_per_chip_hour) return false;
  const size_t place = PlaceOf(candidate);
  if (of_place_[place].seconds && *of_place_[place].seconds <= seconds) return false;
  const double usd = UsdPerStep(candidate, seconds);
  for (size_t other = 0; other < of_place_.size(); ++other) {
    const std::optional<double>& theirs = of_place_[other].seconds;
    if (other == place || !theirs || !question_.candidates[other].usd_per_chip_hour) continue;
    if (*theirs <= seconds && UsdPerStep(other, *theirs) <= usd) return false;
  }
  return true;
}

bool SearchRecord::Wants(size_t candidate, double bound_seconds) const {
  const PlaceBest& mine = of_place_[PlaceOf(candidate)];
  const SearchConstraints& constraints = question_.constraints;
  if (constraints.deadline_seconds || constraints.budget_usd) {
    if (OutcomeOf(RunOf(candidate, bound_seconds)) != Outcome::kFeasible) {
      return !mine.seconds && (!mine.missing_seconds || bound_seconds < *mine.missing_seconds);
    }
  }
  if (best_.size() < question_.proposal_count) return true;
  const SearchKey bound = KeyOf(candidate, bound_seconds);
  const SearchKey& worst = best_.back().key;
  // Of equals the simpler plan wins, which this one may be.
  if (std::tie(bound.objective, bound.seconds, bound.candidate) <=
      std::tie(worst.objective, worst.seconds, worst.candidate)) {
    return true;
  }
  return IsOnFrontier(candidate, bound_seconds);
}

double SearchRecord::UnwantedFrom(size_t candidate, double seconds) const {
  if (best_.size() < question_.proposal_count) return kNever;
  double wanted = seconds;
  double unwanted = seconds;
  do {
    unwanted *= 2;
    if (!std::isfinite(unwanted)) return kNever;
  } while (Wants(candidate, unwanted));
  while (unwanted - wanted > kLimitPrecision * wanted) {
    const double middle = wanted + (unwanted - wanted) / 2;
    (Wants(candidate, middle) ? wanted : unwanted) = middle;
  }
  return unwanted;
}

void SearchRecord::Add(size_t candidate, EvaluatedPlan evaluated) {
  const double seconds = evaluated.times.expected_seconds;
  PlaceBest& mine = of_place_[PlaceOf(candidate)];
  if (OutcomeOf(RunOf(candidate, seconds)) != Outcome::kFeasible) {
    if (mine.missing_seconds && *mine.missing_seconds <= seconds) return;
    mine.missing_seconds = seconds;
    mine.missing_candidate = candidate;
    mine.missing_plan = evaluated.plan.parallelism;
    return;
  }
  if (!mine.seconds || seconds < *mine.seconds) {
    mine.seconds = seconds;
    mine.candidate = candidate;
    mine.plan = evaluated.plan.parallelism;
  }
  FoundPlan found{candidate, KeyOf(candidate, seconds), SimplicityOf(evaluated.plan.parallelism), std::move(evaluated)};
  const auto before = [](const FoundPlan& a, const FoundPlan& b) {
    if (a.key < b.key) return true;
    if (b.key < a.key) return false;
    return a.simplicity < b.simplicity;
  };
  const auto same = std::find_if(best_.begin(), best_.end(), [&](const FoundPlan& other) {
    return IsSamePlan(candidate, found.evaluated.plan.parallelism, other.candidate, other.evaluated.plan.parallelism);
  });
  if (same != best_.end()) {
    if (!before(found, *same)) return;
    best_.erase(same);
  }
  best_.insert(std::upper_bound(best_.begin(), best_.end(), found, before), std::move(found));
  if (best_.size() > question_.proposal_count) best_.pop_back();
}

void SearchRecord::AddTooLarge(size_t candidate, const Parallelism& plan, const MemoryUse& least) {
  Miss miss{candidate, plan, Outcome::kOutOfMemory, static_cast<double>(-SlackBytes(least)), 0};
  miss.on_host = least.headroom_bytes >= 0 && HostShortfallBytes(least) > 0;
  const int64_t available = miss.on_host ? least.host_capacity_bytes : least.capacity_bytes;
  miss.relative_amount = miss.amount / static_cast<double>(std::max<int64_t>(1, available));
  const auto nearer = [](const Miss& a, const Miss& b) { return a.relative_amount < b.relative_amount; };
  const auto same = std::find_if(too_large_.begin(), too_large_.end(), [&](const Miss& other) {
    return IsSamePlan(candidate, plan, other.candidate, other.plan);
  });
  if (same != too_large_.end()) {
    if (!nearer(miss, *same)) return;
    too_large_.erase(same);
  }
  too_large_.insert(std::upper_bound(too_large_.begin(), too_large_.end(), miss, nearer), std::move(miss));
  if (too_large_.size() > kMaxNearMisses) too_large_.pop_back();
}

void SearchRecord::AddUnseen(size_t candidate, double bound_seconds) {
  if (OutcomeOf(RunOf(candidate, bound_seconds)) != Outcome::kFeasible) return;
  const SearchKey key = KeyOf(candidate, bound_seconds);
  if (!unseen_ || key < *unseen_) unseen_ = key;
}

double SearchRecord::GapRatio() const {
  if (!unseen_) return 0;
  if (best_.empty()) return 1;
  const double best = best_.front().key.objective;
  return best > 0 ? std::max(0.0, 1 - unseen_->objective / best) : 0;
}

PlanSummary SearchRecord::SummaryOf(size_t candidate, const Parallelism& plan, double seconds) const {
  const SearchCandidate& where = question_.candidates[candidate];
  const Run run = RunOf(candidate, seconds);
  const double tokens = TokensPerStep(candidate);
  PlanSummary summary;
  summary.candidate = candidate;
  summary.parallelism = plan;
  summary.outcome = OutcomeOf(run);
  summary.expected_seconds = seconds;
  summary.chip_count = where.slice.TotalChips();
  summary.tokens_per_second_per_chip = tokens / seconds / static_cast<double>(summary.chip_count);
  if (run.end_seconds && std::isfinite(*run.end_seconds)) summary.end_seconds = run.end_seconds;
  if (run.total_usd && std::isfinite(*run.total_usd)) summary.total_usd = run.total_usd;
  if (summary.total_usd) {
    summary.usd_per_million_tokens =
        *summary.total_usd / static_cast<double>(*where.workload.total_tokens) * kTokensPerMillion;
  } else if (where.usd_per_chip_hour && !where.workload.total_tokens) {
    summary.usd_per_million_tokens = UsdPerStep(candidate, seconds) / tokens * kTokensPerMillion;
  }
  return summary;
}

std::vector<PlanSummary> SearchRecord::Frontier() const {
  std::vector<PlanSummary> plans;
  for (size_t i = 0; i < of_place_.size(); ++i) {
    if (!of_place_[i].seconds || !question_.candidates[i].usd_per_chip_hour) continue;
    plans.push_back(SummaryOf(of_place_[i].candidate, of_place_[i].plan, *of_place_[i].seconds));
  }
  const auto usd = [this](const PlanSummary& plan) { return UsdPerStep(plan.candidate, plan.expected_seconds); };
  std::stable_sort(plans.begin(), plans.end(), [&](const PlanSummary& a, const PlanSummary& b) {
    return std::make_tuple(a.expected_seconds, usd(a)) < std::make_tuple(b.expected_seconds, usd(b));
  });
  std::vector<PlanSummary> frontier;
  for (PlanSummary& plan : plans) {
    if (frontier.empty() || usd(plan) < usd(frontier.back())) frontier.push_back(std::move(plan));
  }
  return frontier;
}

std::vector<SearchRecord::Miss> SearchRecord::NearMisses() const {
  std::vector<Miss> misses;
  for (const Miss& miss : too_large_) {
    // A variant of it may run.
    const bool runs = std::any_of(best_.begin(), best_.end(), [&](const FoundPlan& found) {
      return found.candidate != miss.candidate &&
             IsSamePlan(miss.candidate, miss.plan, found.candidate, found.evaluated.plan.parallelism);
    });
    if (!runs) misses.push_back(miss);
  }
  const SearchConstraints& constraints = question_.constraints;
  for (const PlaceBest& mine : of_place_) {
    if (mine.seconds || !mine.missing_seconds) continue;
    const Run run = RunOf(mine.missing_candidate, *mine.missing_seconds);
    Miss miss{mine.missing_candidate, mine.missing_plan, OutcomeOf(run), kNever, kNever};
    if (miss.outcome == Outcome::kMissesDeadline) {
      miss.amount = *run.end_seconds - *constraints.deadline_seconds;
      miss.relative_amount = miss.amount / *constraints.deadline_seconds;
    } else if (miss.outcome == Outcome::kOverBudget) {
      miss.amount = *run.total_usd - *constraints.budget_usd;
      miss.relative_amount = miss.amount / *constraints.budget_usd;
    }
    if (std::isfinite(miss.amount)) misses.push_back(std::move(miss));
  }
  std::stable_sort(misses.begin(), misses.end(), [](const Miss& a, const Miss& b) {
    return std::make_tuple(a.outcome == Outcome::kOutOfMemory, a.relative_amount) <
           std::make_tuple(b.outcome == Outcome::kOutOfMemory, b.relative_amount);
  });
  if (misses.size() > kMaxNearMisses) misses.resize(kMaxNearMisses);
  return misses;
}

}  // namespace sliceplan::planner
