#include "server/planner/site_search.h"

#include <algorithm>
#include <utility>

#include "server/planner/pipeline_schedule.h"

namespace sliceplan::planner {
namespace {

constexpr size_t kGroupsPerPoll = 64;
// Nodes at the front of the heap that helpers are told of.
constexpr size_t kLookAhead = 15;
// A dive may end at a plan that does not fit or has no placement.
constexpr int kMostDives = 8;

Parallelism MostSharded(const PlanShape& shape) {
  Parallelism plan = shape.parallelism;
  plan.ici[LogicalAxis::kFsdp] = static_cast<int32_t>(shape.shards_ici);
  plan.dcn[LogicalAxis::kFsdp] = static_cast<int32_t>(shape.shards_dcn);
  plan.data_zero_stage = ZeroStage::k1;
  return plan;
}

bool DifferInVirtualStagesOnly(const PlanShape& a, const PlanShape& b) {
  return a.parallelism.ici == b.parallelism.ici && a.parallelism.dcn == b.parallelism.dcn &&
         a.parallelism.microbatch_count == b.parallelism.microbatch_count && a.shards_ici == b.shards_ici;
}

}  // namespace

bool SearchProgress::Poll() {
  if (stopped) return false;
  if (signal == nullptr) return true;
  const SearchSignal answer = signal();
  cancelled = answer == SearchSignal::kCancel;
  stopped = answer != SearchSignal::kGoOn;
  return !stopped;
}

SiteSearch::SiteSearch(SearchSite& site, const ModelDivisors& divisors, const PlanLimits& limits, SearchRecord& record,
                       SearchProgress& progress, FitCrew& crew)
    : site_(site), divisors_(divisors), limits_(limits), record_(record), progress_(progress), crew_(crew) {
  SplitStages(*site.job.model, Parallelism(), whole_model_);
  if (site.job.workload.activation_offload) {
    job_without_link_ = site.job;
    job_without_link_->slice.accelerator.pcie_bytes_per_second.reset();
  }
}

void SiteSearch::Run() {
  if (!crew_.empty()) crew_.MoveTo(site_.index);
  SearchPlans();
  site_.loads.Clear();
}

void SiteSearch::SearchPlans() {
  ListGroups();
  const int64_t evaluated = progress_.evaluated_count;
  for (int dive = 0; dive < kMostDives && progress_.evaluated_count == evaluated; ++dive) Dive();
  while (!heap_.empty()) {
    const Node node = heap_.front();
    if (!record_.Wants(site_.index, node.bound_seconds)) {
      // Nor is anything else, which is bounded by no less.
      for (const Node& left : heap_) progress_.Prune(PruneReason::kNetworkFloor, PlansOf(left));
      return;
    }
    if (!progress_.Poll()) {
      record_.AddUnseen(site_.index, node.bound_seconds);
      return;
    }
    std::pop_heap(heap_.begin(), heap_.end());
    heap_.pop_back();
    Open(node);
    for (const Node& child : opened_) Take(child);
  }
}

void SiteSearch::Dive() {
  if (heap_.empty()) return;
  std::pop_heap(heap_.begin(), heap_.end());
  Node node = heap_.back();
  heap_.pop_back();
  while (true) {
    if (!record_.Wants(site_.index, node.bound_seconds) || !progress_.Poll()) return Take(node);
    Open(node);
    if (opened_.empty()) return;
    const auto best = std::max_element(opened_.begin(), opened_.end());
    node = *best;
    opened_.erase(best);
    for (const Node& child : opened_) Take(child);
  }
}

void SiteSearch::Push(double bound_seconds, Level level, size_t index) {
  opened_.push_back({bound_seconds, level, index, pushed_count_++});
}

void SiteSearch::Take(const Node& node) {
  heap_.push_back(node);
  std::push_heap(heap_.begin(), heap_.end());
}

void SiteSearch::Open(const Node& node) {
  opened_.clear();
  switch (node.level) {
    case Level::kGroup: {
      const ShapeGroup& group = groups_[node.index];
      for (size_t i = 0; i < group.count; ++i) {
        const size_t index = group.first + i;
        Push(ScheduleSeconds(group, shapes_[index]), Level::kShape, index);
      }
      return;
    }
    case Level::kShape: return BoundShape(node.index);
    case Level::kBoundedShape:
    case Level::kSplit: return FitNode(node);
    case Level::kFittedShape: return OpenShape(node);
    case Level::kFittedSplit: return Evaluate(node);
  }
}

int64_t SiteSearch::PlansOf(const Node& node) const {
  switch (node.level) {
    case Level::kGroup: return groups_[node.index].split_count * static_cast<int64_t>(groups_[node.index].count);
    case Level::kShape:
    case Level::kBoundedShape:
    case Level::kFittedShape: return groups_[group_of_shape_[node.index]].split_count;
    case Level::kSplit:
    case Level::kFittedSplit: return 1;
  }
  return 0;
}

bool SiteSearch::Unknown(const absl::Status& status, int64_t plan_count) {
  if (status.ok()) return false;
  progress_.unknown_figure = status;
  progress_.Prune(PruneReason::kUnknownFigure, plan_count);
  return true;
}

StepPlan SiteSearch::FastestPlan(Parallelism parallelism) const {
  const TrainingWorkload& workload = site_.job.workload;
  return site_.evaluator.PlanOf(std::move(parallelism), workload.remat_policy.value_or(RematPolicy::kNone),
                                workload.gradient_accumulation.value_or(1));
}

void SiteSearch::ListGroups() {
  shapes_ = ShapesOf(divisors_, site_.job.slice, site_.job.workload, limits_);
  group_of_shape_.resize(shapes_.size());
  for (size_t i = 0; i < shapes_.size(); ++i) {
    if (i == 0 || !DifferInVirtualStagesOnly(shapes_[i - 1], shapes_[i])) groups_.push_back({i, 0, 0, 0});
    ++groups_.back().count;
    group_of_shape_[i] = groups_.size() - 1;
  }
  for (size_t g = 0; g < groups_.size(); ++g) {
    if (g % kGroupsPerPoll == 0 && !progress_.Poll()) {
      record_.AddUnseen(site_.index, FloorSeconds(site_.job));
      opened_.clear();
      return;
    }
    ShapeGroup& group = groups_[g];
    const PlanShape& shape = shapes_[group.first];
    int64_t& split_count = split_counts_[{shape.shards_ici, shape.shards_dcn}];
    if (split_count == 0) split_count = SplitCount(shape, limits_);
    group.split_count = split_count;
    const int64_t plans = group.split_count * static_cast<int64_t>(group.count);
    progress_.considered_count += plans;
    const absl::StatusOr<double> seconds = MicrobatchSeconds(shape);
    if (Unknown(seconds.status(), plans)) continue;
    group.microbatch_seconds = *seconds;
    double least = ScheduleSeconds(group, shape);
    for (size_t i = 1; i < group.count; ++i) {
      least = std::min(least, ScheduleSeconds(group, shapes_[group.first + i]));
    }
    Push(least, Level::kGroup, g);
  }
  heap_ = std::move(opened_);
  std::make_heap(heap_.begin(), heap_.end());
}

// The layers of all stages in a row take no longer than in their stages: traffic hides best behind all compute. Nothing
// that shares weights or stages out counts here, so few shapes differ.
absl::StatusOr<double> SiteSearch::MicrobatchSeconds(const PlanShape& shape) {
  const roofline::EfficiencyProfile* const profile = site_.job.profile;
  if (profile != nullptr && profile->fsdp_hidden_cost_ratio > 1) return 0;  // hiding costs more than it saves
  const StepPlan plan = FastestPlan(MostSharded(shape));
  const Parallelism& parallelism = plan.parallelism;
  const std::array<int64_t, 4> key = {parallelism.Degree(LogicalAxis::kTensor),
                                      parallelism.Degree(LogicalAxis::kContext),
                                      parallelism.Degree(LogicalAxis::kExpert), plan.microbatch_size};
  if (const auto found = microbatch_seconds_.find(key); found != microbatch_seconds_.end()) return found->second;
  Parallelism local;
  for (LogicalAxis axis : {LogicalAxis::kTensor, LogicalAxis::kContext, LogicalAxis::kExpert}) {
    local.ici[axis] = parallelism.ici[axis];
    local.dcn[axis] = parallelism.dcn[axis];
  }
  const absl::StatusOr<PlanLaws> laws = site_.ideal.OfShape(local);
  if (!laws.ok()) return laws.status();
  TimeStep(site_.job, plan, site_.loads.Of(site_.job, plan), *laws, whole_model_, details_, TimeTerms::kExpected);
  return microbatch_seconds_[key] = details_.stages.front().expected_seconds;
}

double SiteSearch::ScheduleSeconds(const ShapeGroup& group, const PlanShape& shape) const {
  const Parallelism& parallelism = shape.parallelism;
  const int64_t stages = parallelism.Degree(LogicalAxis::kPipeline);
  const double accumulation = site_.job.workload.gradient_accumulation.value_or(1);
  const double microbatches = std::max(1, parallelism.microbatch_count);
  const double waits =
      BubbleTime({parallelism.schedule, stages, parallelism.microbatch_count, parallelism.virtual_stage_count}, {}) /
      StageWork().Total();
  return accumulation * (microbatches + waits) * group.microbatch_seconds / static_cast<double>(stages);
}

void SiteSearch::BoundShape(size_t index) {
  const PlanShape& shape = shapes_[index];
  const absl::StatusOr<PlanLaws> laws = site_.ideal.OfShape(shape.parallelism);
  if (Unknown(laws.status(), groups_[group_of_shape_[index]].split_count)) return;
  const StepPlan plan = FastestPlan(MostSharded(shape));
  SplitStages(*site_.job.model, plan.parallelism, stages_);
  Push(TimeStep(BoundJob(), plan, site_.loads.Of(site_.job, plan), *laws, stages_, details_).expected_seconds,
       Level::kBoundedShape, index);
}

FitQuestion SiteSearch::FitQuestionOf(const Node& node) const {
  if (node.level == Level::kSplit) return {splits_[node.index].plan, std::nullopt};
  // No split holds less than the one that shards most, so none has more choices that fit.
  return {MostSharded(shapes_[node.index]), shapes_[node.index].parallelism};
}

Fit SiteSearch::FitFor(const Node& node) {
  if (!crew_.empty()) {
    // The least of what is left lies near the front.
    for (size_t i = 0; i < std::min(kLookAhead, heap_.size()); ++i) {
      const Level level = heap_[i].level;
      if (level != Level::kBoundedShape && level != Level::kSplit) continue;
      if (!crew_.IsKnown(heap_[i].order)) crew_.Suggest(heap_[i].order, FitQuestionOf(heap_[i]));
    }
    if (std::optional<Fit> fit = crew_.Take(node.order)) return *std::move(fit);
  }
  return FitOf(site_, FitQuestionOf(node), ways_);
}

void SiteSearch::FitNode(const Node& node) {
  const Fit fit = FitFor(node);
  if (fit.floor_seconds) {
    const Level fitted = node.level == Level::kSplit ? Level::kFittedSplit : Level::kFittedShape;
    Push(std::max(*fit.floor_seconds, node.bound_seconds), fitted, node.index);
    return;
  }
  progress_.Prune(PruneReason::kOutOfMemory, PlansOf(node));
  record_.AddTooLarge(site_.index, FitQuestionOf(node).plan, *fit.least);
}

void SiteSearch::OpenShape(const Node& node) {
  const PlanShape& shape = shapes_[node.index];
  SplitStages(*site_.job.model, shape.parallelism, stages_);
  const StepLoad& load = site_.loads.Of(site_.job, FastestPlan(MostSharded(shape)));
  for (Parallelism& split : SplitsOf(shape, limits_)) {
    const absl::StatusOr<PlanLaws> laws = site_.ideal.Of(split);
    if (Unknown(laws.status(), 1)) continue;
    const StepPlan plan = FastestPlan(split);
    const double bound =
        std::max(node.bound_seconds, TimeStep(BoundJob(), plan, load, *laws, stages_, details_).expected_seconds);
    splits_.push_back({std::move(split), bound});
    Push(bound, Level::kSplit, splits_.size() - 1);
  }
}

void SiteSearch::Evaluate(const Node& node) {
  EvaluatedPlan evaluated;
  const double limit = record_.UnwantedFrom(site_.index, node.bound_seconds);
  const Split& split = splits_[node.index];
  const absl::StatusOr<PlanLaws> laws = site_.ideal.Of(split.plan);
  const absl::StatusOr<bool> below = site_.evaluator.EvaluateBelow(limit, split.plan, *laws, evaluated);
  if (absl::IsFailedPrecondition(below.status())) {
    Unknown(below.status(), 1);
  } else if (!below.ok()) {
    progress_.Prune(PruneReason::kNoPlacement, 1);
  } else if (!*below) {
    progress_.Prune(PruneReason::kNetworkFloor, 1);
  } else {
    ++progress_.evaluated_count;
    if (evaluated.mappings->truncated) record_.AddUnseen(site_.index, node.bound_seconds);
    record_.Add(site_.index, std::move(evaluated));
  }
}

}  // namespace sliceplan::planner
