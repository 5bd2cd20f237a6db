// The plans of one candidate, the most promising first. docs/search.md sections 2 and 3.
#ifndef SLICEPLAN_SERVER_PLANNER_SITE_SEARCH_H_
#define SLICEPLAN_SERVER_PLANNER_SITE_SEARCH_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/planner/fit_crew.h"
#include "server/planner/plan_space.h"
#include "server/planner/search_record.h"
#include "server/planner/search_site.h"
#include "server/planner/sharding_search.h"

namespace sliceplan::planner {

// What a search has counted, and whether it goes on.
struct SearchProgress {
  explicit SearchProgress(const std::function<SearchSignal()>& search_signal) : signal(search_signal) {}

  const std::function<SearchSignal()>& signal;
  int64_t considered_count = 0;
  int64_t evaluated_count = 0;
  std::array<int64_t, kPruneReasonCount> pruned = {};
  absl::Status unknown_figure;
  bool stopped = false;
  bool cancelled = false;

  void Prune(PruneReason reason, int64_t count) { pruned[static_cast<size_t>(reason)] += count; }
  // Asks whether to go on.
  bool Poll();
};

// Bounds groups of shapes cheaply, then shapes, shapes with the recompute that their memory asks for, and so their
// splits, each only while its bound is the least of all that is left; evaluates what is left then. All arguments
// outlive it.
class SiteSearch {
 public:
  SiteSearch(SearchSite& site, const ModelDivisors& divisors, const PlanLimits& limits, SearchRecord& record,
             SearchProgress& progress, FitCrew& crew);

  void Run();

 private:
  // How closely a node has been looked at; its index is of that kind.
  enum class Level { kGroup, kShape, kBoundedShape, kFittedShape, kSplit, kFittedSplit };
  struct Node {
    double bound_seconds = 0;
    Level level = Level::kGroup;
    size_t index = 0;
    int64_t order = 0;  // among equals the first to come

    friend bool operator<(const Node& a, const Node& b) {  // for a heap with the least on top
      if (a.bound_seconds != b.bound_seconds) return a.bound_seconds > b.bound_seconds;
      return a.order > b.order;
    }
  };
  // Shapes that differ only in how many virtual stages a chip runs.
  struct ShapeGroup {
    size_t first = 0;
    size_t count = 0;
    int64_t split_count = 0;  // of each shape
    // Of one microbatch of all layers, shared evenly by the stages.
    double microbatch_seconds = 0;
  };
  struct Split {
    Parallelism plan;
    double bound_seconds = 0;
  };

  void SearchPlans();
  // Follows the best of the best down to one evaluated plan, so that a search cut short has something to say.
  void Dive();
  void Take(const Node& node);
  void ListGroups();
  absl::StatusOr<double> MicrobatchSeconds(const PlanShape& shape);
  // No less than the bubble of the schedule and an even share of every layer.
  double ScheduleSeconds(const ShapeGroup& group, const PlanShape& shape) const;
  void Push(double bound_seconds, Level level, size_t index);
  void Open(const Node& node);
  void BoundShape(size_t index);
  void FitNode(const Node& node);
  FitQuestion FitQuestionOf(const Node& node) const;
  Fit FitFor(const Node& node);
  void OpenShape(const Node& node);
  void Evaluate(const Node& node);
  int64_t PlansOf(const Node& node) const;

  StepPlan FastestPlan(Parallelism parallelism) const;
  // The job whose fastest plan bounds all choices of recompute.
  const TrainingJob& BoundJob() const { return job_without_link_ ? *job_without_link_ : site_.job; }
  bool Unknown(const absl::Status& status, int64_t plan_count);

  SearchSite& site_;
  const ModelDivisors& divisors_;
  const PlanLimits& limits_;
  SearchRecord& record_;
  SearchProgress& progress_;
  FitCrew& crew_;
  std::vector<PlanShape> shapes_;
  std::vector<size_t> group_of_shape_;
  std::vector<ShapeGroup> groups_;
  std::vector<Split> splits_;
  std::vector<Node> heap_;
  std::vector<Node> opened_;  // out of the node looked at
  int64_t pushed_count_ = 0;
  absl::flat_hash_map<std::array<int64_t, 4>, double> microbatch_seconds_;  // by local shape
  absl::flat_hash_map<std::pair<int64_t, int64_t>, int64_t> split_counts_;  // by shards
  // Set where saved activations cross the link to the host: less recompute may take longer there.
  std::optional<TrainingJob> job_without_link_;
  std::vector<PlanLaws> ways_;
  StageSplit stages_;
  StageSplit whole_model_;
  StepDetails details_;
};

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SITE_SEARCH_H_
