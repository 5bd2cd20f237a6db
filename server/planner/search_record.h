// What a search has found so far, and so what it still has to look at. docs/search.md section 3.
#ifndef SLICEPLAN_SERVER_PLANNER_SEARCH_RECORD_H_
#define SLICEPLAN_SERVER_PLANNER_SEARCH_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "server/planner/plan_evaluator.h"
#include "server/planner/plan_space.h"
#include "server/planner/sharding_search.h"

namespace sliceplan::planner {

// What proposals are ordered by; smaller is better.
struct SearchKey {
  double objective = 0;
  double seconds = 0;  // of a step
  size_t candidate = 0;

  friend bool operator<(const SearchKey& a, const SearchKey& b) {
    if (a.objective != b.objective) return a.objective < b.objective;
    if (a.seconds != b.seconds) return a.seconds < b.seconds;
    return a.candidate < b.candidate;
  }
};

struct FoundPlan {
  size_t candidate = 0;
  SearchKey key;
  Simplicity simplicity;
  EvaluatedPlan evaluated;
};

class SearchRecord {
 public:
  // The question must outlive the record.
  explicit SearchRecord(const ShardingQuestion& question);

  // The key of a plan of a candidate whose step takes `seconds`. Grows with the seconds.
  SearchKey KeyOf(size_t candidate, double seconds) const;

  // Whether a plan whose step takes at least `bound_seconds` can change the answer: its proposals, the frontier or,
  // where nothing meets the deadline or budget, the near misses.
  bool Wants(size_t candidate, double bound_seconds) const;

  // Plans that take so long or longer are not wanted; `seconds`: that some do. Infinite: all are wanted.
  double UnwantedFrom(size_t candidate, double seconds) const;

  // A plan that fits its memory.
  void Add(size_t candidate, EvaluatedPlan evaluated);
  // A plan that does not. `least`: its memory at the least.
  void AddTooLarge(size_t candidate, const Parallelism& plan, const MemoryUse& least);
  // A plan that was not looked at, or not in all its placements, and takes at least `bound_seconds`.
  void AddUnseen(size_t candidate, double bound_seconds);

  // Best first; each has its own place and degrees.
  const std::vector<FoundPlan>& best() const { return best_; }
  std::vector<PlanSummary> Frontier() const;

  struct Miss {
    size_t candidate = 0;
    Parallelism plan;
    Outcome outcome = Outcome::kOutOfMemory;
    double amount = 0;           // bytes, seconds or dollars
    double relative_amount = 0;  // of what there is
    bool on_host = false;        // it is the host's memory that lacks
  };
  // Those that run before those that do not, nearest first, at most kMaxNearMisses.
  std::vector<Miss> NearMisses() const;

  // How much better than the best an unseen plan could be, as a share of the objective.
  double GapRatio() const;

  PlanSummary SummaryOf(size_t candidate, const Parallelism& plan, double seconds) const;

 private:
  struct Run {
    std::optional<double> end_seconds;  // from now; infinite: it never ends
    std::optional<double> total_usd;
  };
  Run RunOf(size_t candidate, double seconds) const;
  // What the run misses, or kFeasible.
  Outcome OutcomeOf(const Run& run) const;
  bool IsOnFrontier(size_t candidate, double seconds) const;
  double UsdPerStep(size_t candidate, double seconds) const;
  double TokensPerStep(size_t candidate) const;

  // Of a candidate and its variants.
  struct PlaceBest {
    std::optional<double> seconds;  // of the best feasible plan
    size_t candidate = 0;
    Parallelism plan;
    std::optional<double> missing_seconds;  // of the best plan that misses deadline or budget
    size_t missing_candidate = 0;
    Parallelism missing_plan;
  };
  size_t PlaceOf(size_t candidate) const { return planner::PlaceOf(question_, candidate); }
  bool IsSamePlan(size_t candidate, const Parallelism& plan, size_t other, const Parallelism& other_plan) const;

  const ShardingQuestion& question_;
  std::vector<FoundPlan> best_;
  std::vector<PlaceBest> of_place_;  // by candidate; variants have none
  std::vector<Miss> too_large_;      // the nearest kMaxNearMisses
  std::optional<SearchKey> unseen_;
};

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SEARCH_RECORD_H_
