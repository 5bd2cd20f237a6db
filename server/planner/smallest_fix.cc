#include "server/planner/smallest_fix.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/planner/fix_changes.h"
#include "server/planner/plan_fields.h"
#include "server/planner/words.h"

namespace sliceplan::planner {
namespace {

constexpr int64_t kMaxLogitsChunks = 64;
constexpr int32_t kMaxSliceFactor = 4096;
constexpr int32_t kSliceFactors = 32;  // from the least that can do
constexpr int32_t kSliceSteps = 8;     // between one that is too few and one that is enough
// A job with fewer of its tokens than this is another one.
constexpr double kLeastTokensRatio = 0.5;
// More accumulation than this is another job.
constexpr int64_t kMaxAccumulation = 4096;

// Least recompute first; the last two keep least.
constexpr std::array<RematPolicy, 7> kPolicies = {RematPolicy::kMinimalFlash, RematPolicy::kSaveDotWithContextExceptMlp,
                                                  RematPolicy::kMinimal,      RematPolicy::kSaveDotExceptMlp,
                                                  RematPolicy::kSaveQkvProj,  RematPolicy::kSaveAttention,
                                                  RematPolicy::kFull};

class Finder {
 public:
  Finder(const TrainingJob& job, const TrainingEstimate& estimate, TryJob try_job)
      : job_(job), estimate_(estimate), try_job_(try_job), has_plan_(estimate.outcome != Outcome::kNoLegalPlan) {}

  // The estimate's plan, with free choices of recompute and accumulation left free.
  Change Start() const {
    Change change{job_, {}};
    if (has_plan_ && !job_.parallelism) change.job.parallelism = estimate_.parallelism;
    if (change.job.parallelism && !job_.parallelism) {
      change.job.parallelism->mapping.clear();
      change.job.parallelism->microbatch_count = 0;
    }
    return change;
  }
  // The job as asked, nothing else fixed.
  Change StartFree() const { return Change{job_, {}}; }

  // Whether it is feasible. Of several, the fastest is kept.
  bool Try(Change change) {
    const std::optional<Trial> trial = Feasible(change);
    if (!trial) return false;
    const double seconds = trial->wall_seconds > 0 ? trial->wall_seconds : trial->expected_seconds;
    if (best_ && seconds >= best_seconds_) return true;
    best_seconds_ = seconds;
    change.fix.expected_seconds = trial->expected_seconds;
    best_ = std::move(change.fix);
    return true;
  }
  // The same for a change that is smaller than what was found: it is kept though it is slower.
  bool TrySmaller(Change change) {
    const std::optional<Trial> trial = Feasible(change);
    if (!trial) return false;
    change.fix.expected_seconds = trial->expected_seconds;
    best_ = std::move(change.fix);
    return true;
  }
  // One change, which may not apply.
  template <typename Apply>
  bool TryOne(Apply&& apply) {
    Change change = Start();
    return apply(change) && Try(std::move(change));
  }

  bool found() const { return best_.has_value(); }
  bool has_plan() const { return has_plan_; }
  // Accumulation steps that split the microbatch further, ascending doublings.
  std::vector<int64_t> Accumulations() const {
    std::vector<int64_t> counts;
    int64_t size = estimate_.microbatch_size;
    for (int64_t count = estimate_.gradient_accumulation; size % 2 == 0 && 2 * count <= kMaxAccumulation; size /= 2) {
      count *= 2;
      counts.push_back(count);
    }
    return counts;
  }

  std::optional<Fix> Finish() {
    if (!best_) return std::nullopt;
    if (has_plan_ && !job_.parallelism) {
      Parallelism plan = estimate_.parallelism;
      plan.microbatch_count = 0;
      CompletePlan(plan, best_->changes);
    }
    best_->sentence = absl::StrCat("With ", best_->sentence, " it works");
    if (best_->expected_seconds.value_or(0) > 0) {
      absl::StrAppend(&best_->sentence, ", at ", SecondsWords(*best_->expected_seconds), " a step");
    }
    absl::StrAppend(&best_->sentence, ".");
    return best_;
  }

 private:
  std::optional<Trial> Feasible(const Change& change) const {
    const std::optional<Trial> trial = try_job_(change.job);
    return trial && trial->outcome == Outcome::kFeasible ? trial : std::nullopt;
  }

  const TrainingJob& job_;
  const TrainingEstimate& estimate_;
  TryJob try_job_;
  const bool has_plan_;
  std::optional<Fix> best_;
  double best_seconds_ = 0;
};

// What the job leaves open has been chosen to fit already.
bool FixesPolicy(const TrainingWorkload& workload) {
  return workload.remat_policy.has_value() || workload.checkpoints_per_layer > 0;
}

void TrySingles(const TrainingWorkload& workload, Finder& finder) {
  if (FixesPolicy(workload)) {
    for (const RematPolicy policy : kPolicies) {
      finder.TryOne([policy](Change& change) { return UsePolicy(change, policy); });
    }
  }
  if (workload.gradient_accumulation) {
    // The first that fits accumulates least.
    bool fits = false;
    for (const int64_t accumulation : finder.Accumulations()) {
      if (fits) break;
      fits = finder.TryOne([accumulation](Change& change) { return Accumulate(change, accumulation); });
    }
  }
  for (int64_t chunks = 2; chunks <= kMaxLogitsChunks; chunks *= 2) {
    finder.TryOne([chunks](Change& change) { return ChunkLogits(change, chunks); });
  }
  for (const ZeroStage stage : {ZeroStage::k1, ZeroStage::k2, ZeroStage::k3}) {
    finder.TryOne([stage](Change& change) { return UseZeroStage(change, stage); });
  }
  finder.TryOne([](Change& change) { return ShardSequence(change); });
  finder.TryOne([](Change& change) { return OffloadOptimizer(change); });
  finder.TryOne([](Change& change) { return OffloadActivations(change); });
  finder.TryOne([](Change& change) { return KeepOffHost(change); });
}

// What frees most, one after the other.
void TryTogether(const TrainingWorkload& workload, Finder& finder) {
  Change change = finder.Start();
  const auto also = [&](bool applied) {
    if (applied && !finder.found()) finder.Try(change);
  };
  if (FixesPolicy(workload)) UsePolicy(change, RematPolicy::kFull);
  const std::vector<int64_t> accumulations = finder.Accumulations();
  if (workload.gradient_accumulation && !accumulations.empty()) also(Accumulate(change, accumulations.back()));
  also(UseZeroStage(change, ZeroStage::k1));
  also(ChunkLogits(change, kMaxLogitsChunks));
  also(ShardSequence(change));
  also(MoveDataToFsdp(change));
  also(OffloadOptimizer(change));
  also(OffloadActivations(change));
}

void TryFormats(Finder& finder) {
  finder.TryOne([](Change& change) { return NarrowOptimizerState(change); });
  finder.TryOne([](Change& change) { return NarrowGradients(change); });
}

void TryOtherPlans(const TrainingJob& job, Finder& finder) {
  if (finder.has_plan()) {
    finder.TryOne([](Change& change) { return MoveDataToFsdp(change); });
  }
  if (job.parallelism) {
    Change change = finder.StartFree();
    change.job.parallelism.reset();
    SetField(change, "parallelism", "null");
    Say(change, "the plan left to the search");
    Code(change, "LEAVE_PLAN_OPEN");
    finder.Try(std::move(change));
  }
  if (finder.has_plan()) return;
  if (!job.allow_padding) {
    Change change = finder.StartFree();
    change.job.allow_padding = true;
    SetField(change, "parallelism.allow_padding", "true");
    Say(change, "allow_padding");
    Code(change, "ALLOW_PADDING");
    finder.Try(std::move(change));
  }
  if (!job.allow_idle_chips) {
    Change change = finder.StartFree();
    change.job.allow_idle_chips = true;
    SetField(change, "parallelism.allow_idle_chips", "true");
    Say(change, "allow_idle_chips");
    Code(change, "ALLOW_IDLE_CHIPS");
    finder.Try(std::move(change));
  }
}

// A batch that the chips divide: the nearest multiples of their count, and of its part that is no power of two.
void TryBatches(const TrainingJob& job, Finder& finder) {
  int64_t odd = job.slice.chip_count;
  while (odd > 1 && odd % 2 == 0) odd /= 2;
  for (const int64_t unit : {odd, odd * 2, odd * 8, odd * 64, job.slice.chip_count}) {
    const int64_t batch = std::max<int64_t>(1, (job.workload.global_batch_size + unit / 2) / unit) * unit;
    if (batch == job.workload.global_batch_size) continue;
    Change change = finder.StartFree();
    change.job.workload.global_batch_size = batch;
    SetField(change, "workload.global_batch_size", absl::StrCat(batch));
    Say(change, absl::StrCat("a batch of ", CountWords(batch), " sequences"));
    Code(change, "OTHER_BATCH");
    finder.Try(std::move(change));
    if (finder.found()) return;
  }
}

Change SetSlices(Change change, int32_t count) {
  change.job.slice.slice_count = count;
  SetField(change, "slice.slice_count", absl::StrCat(count));
  return change;
}

// Without a plan of its own the search joins the slices: any count may do, the least is wanted.
void TryFewestSlices(int32_t fails, int32_t passes, Finder& finder) {
  // Not every count divides the job, so that halving alone could miss: the few smallest steps are all tried.
  while (passes - fails > 1) {
    const int32_t step = std::max(1, (passes - fails) / kSliceSteps);
    int32_t count = fails + step;
    for (; count < passes; count += step) {
      Change change = SetSlices(finder.StartFree(), count);
      Say(change, absl::StrCat(CountWords(count), " slices"));
      Code(change, "MORE_SLICES");
      if (finder.TrySmaller(std::move(change))) break;
      fails = count;
    }
    if (step == 1) return;
    passes = std::min(passes, count);
  }
}

void TrySlices(const TrainingJob& job, const TrainingEstimate& estimate, Finder& finder) {
  // So many times as late takes at least so many times the slices.
  int32_t factor = 2;
  if (estimate.outcome == Outcome::kMissesDeadline && job.deadline_seconds) {
    const double ratio = 1 + estimate.shortfall_amount / *job.deadline_seconds;
    while (factor < ratio && factor <= kMaxSliceFactor) factor *= 2;
  }
  for (int32_t last = factor * kSliceFactors; factor <= std::min(last, kMaxSliceFactor) && !finder.found();
       factor *= 2) {
    if (job.slice.slice_count > (1 << 20) / factor) return;
    for (const LogicalAxis axis : {LogicalAxis::kFsdp, LogicalAxis::kData, LogicalAxis::kPipeline}) {
      if (!job.parallelism && axis != LogicalAxis::kFsdp) break;
      Change change = SetSlices(finder.StartFree(), job.slice.slice_count * factor);
      std::string words = absl::StrCat(CountWords(change.job.slice.slice_count), " slices");
      if (change.job.parallelism) {
        AxisDegrees& dcn = change.job.parallelism->dcn;
        dcn[axis] *= factor;
        SetField(change, absl::StrCat("parallelism.dcn.", LogicalAxisName(axis)), absl::StrCat(dcn[axis]));
        absl::StrAppend(&words, " joined by ", LogicalAxisName(axis));
      }
      Say(change, words);
      Code(change, "MORE_SLICES");
      finder.Try(std::move(change));
    }
    if (finder.found() && !job.parallelism) {
      TryFewestSlices(job.slice.slice_count * (factor / 2), job.slice.slice_count * factor, finder);
    }
  }
}

// Fewer slices cost less where they wait less for each other.
void TryFewerSlices(const TrainingJob& job, Finder& finder) {
  if (job.parallelism) return;
  for (int32_t count = job.slice.slice_count / 2; count >= 1; count /= 2) {
    Change change = SetSlices(finder.StartFree(), count);
    Say(change, absl::StrCat(CountWords(count), count == 1 ? " slice" : " slices"));
    Code(change, "FEWER_SLICES");
    if (finder.Try(std::move(change))) return;
  }
}

// Time and money grow with the tokens, so what lacks says how many there may be.
void TryFewerTokens(const TrainingJob& job, const TrainingEstimate& estimate, Finder& finder) {
  if (!job.workload.total_tokens || estimate.tokens_per_step <= 0) return;
  const bool late = estimate.outcome == Outcome::kMissesDeadline;
  const double allowed = late ? job.deadline_seconds.value_or(0) : job.budget_usd.value_or(0);
  const double needed = allowed + estimate.shortfall_amount;
  if (allowed <= 0 || needed <= allowed || allowed < kLeastTokensRatio * needed) return;
  const double steps =
      std::floor(static_cast<double>(*job.workload.total_tokens) * allowed / needed / estimate.tokens_per_step);
  // Whole steps, and one less where rounding is against them.
  for (const double count : {steps, steps - 1}) {
    if (count < 1 || finder.found()) continue;
    Change change = finder.Start();
    change.job.workload.total_tokens = static_cast<int64_t>(count * estimate.tokens_per_step);
    SetField(change, "workload.total_tokens", absl::StrCat(*change.job.workload.total_tokens));
    Say(change, absl::StrCat(NumberWords(static_cast<double>(*change.job.workload.total_tokens)), " tokens"));
    Code(change, "FEWER_TOKENS");
    finder.Try(std::move(change));
  }
}

}  // namespace

std::optional<Fix> SmallestFix(const TrainingJob& job, const TrainingEstimate& estimate, TryJob try_job) {
  if (estimate.outcome == Outcome::kFeasible) return std::nullopt;
  Finder finder(job, estimate, try_job);
  if (estimate.outcome == Outcome::kOutOfMemory) {
    TrySingles(job.workload, finder);
    if (!finder.found()) TryTogether(job.workload, finder);
    if (!finder.found()) TryFormats(finder);
  }
  if (!finder.found()) TryOtherPlans(job, finder);
  if (!finder.found() && !finder.has_plan()) TryBatches(job, finder);
  // A job that never finishes fails more often on more chips.
  if (!finder.found() && estimate.outcome != Outcome::kOverBudget && estimate.goodput.finishes)
    TrySlices(job, estimate, finder);
  if (!finder.found() && estimate.outcome == Outcome::kOverBudget) TryFewerSlices(job, finder);
  if (!finder.found()) TryFewerTokens(job, estimate, finder);
  return finder.Finish();
}

}  // namespace sliceplan::planner
