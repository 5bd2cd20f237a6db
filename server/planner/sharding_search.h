// The best plans of a training job among many slices, by branch and bound: every plan is either evaluated by the code
// that answers single estimates, or left out for a reason that is counted. docs/search.md.
#ifndef SLICEPLAN_SERVER_PLANNER_SHARDING_SEARCH_H_
#define SLICEPLAN_SERVER_PLANNER_SHARDING_SEARCH_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/hardware/slice.h"
#include "server/hardware/violation.h"
#include "server/planner/mapping.h"
#include "server/planner/parallelism.h"
#include "server/planner/training_estimate.h"
#include "server/planner/training_job.h"
#include "server/roofline/efficiency.h"
#include "server/transformer/operations.h"

namespace sliceplan::planner {

enum class Objective { kMinStepTime, kMinCost, kMaxThroughputPerChip, kMinChips, kMinTimeToTrain };

// Where the job may run, and what depends on it.
struct SearchCandidate {
  hardware::Slice slice;                                 // slice_count of them, joined over the data-centre network
  TrainingWorkload workload;                             // the job; formats left open may follow the chip
  const roofline::EfficiencyProfile* profile = nullptr;  // outlives the search; required in kCalibrated
  std::optional<double> usd_per_chip_hour;
  double available_after_seconds = 0;
  // Index of the candidate whose slice this is, with the job offloading more. Both count as one place: of the same
  // degrees only the better plan is proposed.
  std::optional<size_t> variant_of = std::nullopt;
};

struct SearchConstraints {
  std::optional<double> deadline_seconds;  // end of training from now, waiting included
  std::optional<double> budget_usd;
  std::optional<int64_t> max_chip_count;         // of all slices
  double hbm_headroom_ratio = 0;                 // of the usable memory, to stay free
  AxisDegrees fixed_ici = {{0, 0, 0, 0, 0, 0}};  // 0: free
  AxisDegrees fixed_dcn = {{0, 0, 0, 0, 0, 0}};
  std::array<bool, kLogicalAxisCount> forbidden = {};  // degree 1 everywhere
  bool allow_idle_chips = false;
  bool allow_padding = false;
};

struct ShardingQuestion {
  const transformer::ModelOperations* model = nullptr;  // outlives the search
  std::vector<SearchCandidate> candidates;              // in the order of the request
  EstimationMode mode = EstimationMode::kCalibrated;
  Reliability reliability;
  Objective objective = Objective::kMinStepTime;
  SearchConstraints constraints;
  size_t proposal_count = 5;
  // Near misses with what would make them fit; otherwise only plans and amounts.
  bool explain_near_misses = true;
  // The caller's and helpers. Answers and counts are the same for every number, as long as time does not run out.
  int thread_count = 1;
};

// The job of one candidate, its plan left open.
TrainingJob JobOf(const ShardingQuestion& question, size_t index);

// The candidate that this one is a variant of, or itself.
size_t PlaceOf(const ShardingQuestion& question, size_t candidate);

// Appends variants of all candidates with the optimizer state, saved activations and both in host memory, as far as
// their jobs do not offload them already. Returns the candidates left out: their host memory or link is not known.
std::vector<size_t> AddOffloadVariants(ShardingQuestion& question);

// One plan in a line.
struct PlanSummary {
  size_t candidate = 0;
  Parallelism parallelism;
  Outcome outcome = Outcome::kFeasible;
  double expected_seconds = 0;
  double tokens_per_second_per_chip = 0;
  std::optional<double> usd_per_million_tokens;
  std::optional<double> total_usd;
  std::optional<double> end_seconds;  // of training from now: waiting and failures included
  int64_t chip_count = 0;
};

struct Proposal {
  size_t candidate = 0;
  TrainingEstimate estimate;
  std::string beats_next_because;  // a sentence with numbers; empty for the last
};

struct NearMiss {
  PlanSummary plan;             // outcome says what it lacks
  double shortfall_amount = 0;  // bytes, seconds or dollars by outcome
  std::string shortfall;        // in words
  bool on_host = false;         // OUT_OF_MEMORY of the host
  std::optional<Fix> smallest_fix;
};

// Why plans were left out, in the order in which they are tried.
enum class PruneReason {
  kNoPrice,        // the objective or the budget needs one, and none is public
  kTooManyChips,   // max_chip_count
  kUnknownFigure,  // a figure of the chip or its network is not public
  kOutOfMemory,    // does not fit with full recompute and the most accumulation
  kComputeFloor,   // of a whole slice: the model's matmuls alone take longer than the worst proposal kept
  kNetworkFloor,   // all its work with its traffic over ideal links does
  kNoPlacement,    // its degrees do not factor over the slice
};
inline constexpr int kPruneReasonCount = 7;
// "OUT_OF_MEMORY", ...
absl::string_view PruneReasonName(PruneReason reason);

// An optimum of the book by formula, on real numbers and without legality.
struct ClosedFormOptimum {
  std::string name;
  std::array<double, kLogicalAxisCount> degrees = {};  // 0: not part of the formula
  std::optional<double> network_seconds;
  std::string sentence;  // how far the first proposal is and why
};

struct ShardingAnswer {
  std::vector<hardware::Violation> violations;  // non-empty: nothing else is filled
  bool cancelled = false;                       // the caller left: nothing else is filled
  std::vector<Proposal> proposals;              // best first, each another (candidate, degrees)
  std::vector<PlanSummary> frontier;            // no other is both faster and cheaper; fastest first
  std::vector<NearMiss> near_misses;            // those that run first, then nearest; at most kMaxNearMisses
  std::vector<ClosedFormOptimum> closed_forms;
  int64_t considered_count = 0;  // legal plans
  int64_t evaluated_count = 0;   // the rest was pruned
  std::array<int64_t, kPruneReasonCount> pruned = {};
  absl::Status unknown_figure;  // says which, when plans were left out for one
  // Whether the first proposal is proven best. False when time ran out, or when a plan has more placements than are
  // looked at.
  bool exhaustive = true;
  double optimality_gap_ratio = 0;  // how much better an unseen plan could be, as a share of the objective
  std::vector<std::string> assumptions;
  std::vector<std::string> warnings;
};
inline constexpr size_t kMaxNearMisses = 5;

// Told before each piece of work, a fraction of a millisecond apart.
enum class SearchSignal { kGoOn, kAnswerNow, kCancel };

// Ties go to the earlier candidate, then to the simpler plan: fewer axes, then smaller pipeline, expert, context,
// tensor and data degrees. The same question gives the same answer, counts included, unless kAnswerNow cut it.
ShardingAnswer ProposeSharding(const ShardingQuestion& question, MappingCache& mappings,
                               const std::function<SearchSignal()>& signal);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SHARDING_SEARCH_H_
