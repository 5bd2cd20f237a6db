#include "server/planner/plan_space.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "server/planner/legality.h"

namespace sliceplan::planner {
namespace {

std::vector<int64_t> DivisorsUpTo(int64_t number, int64_t limit) {
  std::vector<int64_t> divisors;
  for (int64_t d = 1; d <= std::min(number, limit); ++d) {
    if (number % d == 0) divisors.push_back(d);
  }
  return divisors;
}

// Degrees of one axis that divide `rest`: the given one, only 1 when forbidden, or all up to `limit`.
std::vector<int64_t> DegreesOf(LogicalAxis axis, const AxisDegrees& fixed, const PlanLimits& limits, int64_t rest,
                               int64_t limit) {
  const int64_t given = fixed[axis];
  if (given > 0) return rest % given == 0 ? std::vector<int64_t>{given} : std::vector<int64_t>{};
  if (limits.forbidden[static_cast<size_t>(axis)]) return {1};
  return DivisorsUpTo(rest, limit);
}

// Axes other than data, FSDP and pipeline cross slices only where the caller says so.
std::vector<int64_t> DcnDegreesOf(LogicalAxis axis, const PlanLimits& limits, int64_t rest) {
  const bool crosses = axis == LogicalAxis::kPipeline;
  return DegreesOf(axis, limits.fixed_dcn, limits, rest, crosses ? kLargestPipelineDegree : 1);
}

// Numbers of chips that a plan may use: all, or with idle ones blocks of powers of two and whole axes.
std::vector<int64_t> UsableCounts(const hardware::Slice& slice, bool allow_idle_chips) {
  std::vector<int64_t> counts = {slice.chip_count};
  if (!allow_idle_chips) return counts;
  std::vector<int64_t> products = {1};
  for (const hardware::TorusAxis& axis : slice.axes) {
    std::vector<int64_t> sizes = {axis.size};
    for (int64_t size = 1; size < axis.size; size *= 2) sizes.push_back(size);
    std::vector<int64_t> next;
    for (int64_t product : products) {
      for (int64_t size : sizes) next.push_back(product * size);
    }
    products = std::move(next);
  }
  const double smallest = kSmallestPart * static_cast<double>(slice.chip_count);
  for (int64_t product : products) {
    if (product < slice.chip_count && static_cast<double>(product) >= smallest) counts.push_back(product);
  }
  std::sort(counts.begin(), counts.end(), std::greater<>());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  if (counts.size() > kMostParts) counts.resize(kMostParts);
  return counts;
}

// Whether some chips hold the same weights.
bool HasReplicas(const Parallelism& plan) {
  return plan.Degree(LogicalAxis::kData) > 1 || plan.Degree(LogicalAxis::kExpert) > 1 ||
         (plan.Degree(LogicalAxis::kContext) > 1 && plan.Degree(LogicalAxis::kFsdp) == 1);
}

// Ways to share `shards` between data and FSDP, by data.
std::vector<int64_t> DataDegrees(const AxisDegrees& fixed, const PlanLimits& limits, int64_t shards) {
  std::vector<int64_t> degrees = DegreesOf(LogicalAxis::kData, fixed, limits, shards, shards);
  const int64_t fsdp = fixed[LogicalAxis::kFsdp];
  const bool no_fsdp = limits.forbidden[static_cast<size_t>(LogicalAxis::kFsdp)];
  degrees.erase(
      std::remove_if(degrees.begin(), degrees.end(),
                     [&](int64_t data) { return (fsdp > 0 && shards / data != fsdp) || (no_fsdp && data != shards); }),
      degrees.end());
  return degrees;
}

class ShapeList {
 public:
  ShapeList(const ModelDivisors& divisors, const hardware::Slice& slice, const TrainingWorkload& workload,
            const PlanLimits& limits)
      : divisors_(divisors),
        slice_(slice),
        workload_(workload),
        limits_(limits),
        legality_{limits.allow_idle_chips, limits.allow_padding} {
    for (int32_t count : divisors.expert_counts)
      largest_expert_count_ = std::max<int64_t>(largest_expert_count_, count);
  }

  void AddAll(int64_t chips) {
    const AxisDegrees& fixed = limits_.fixed_ici;
    for (int64_t tensor : DegreesOf(LogicalAxis::kTensor, fixed, limits_, chips, kLargestTensorDegree)) {
      const int64_t beside_tensor = chips / tensor;
      for (int64_t context : DegreesOf(LogicalAxis::kContext, fixed, limits_, beside_tensor, kLargestContextDegree)) {
        const int64_t beside_context = beside_tensor / context;
        for (int64_t expert : DegreesOf(LogicalAxis::kExpert, fixed, limits_, beside_context, largest_expert_count_)) {
          const int64_t beside_expert = beside_context / expert;
          for (int64_t pipeline : DegreesOf(LogicalAxis::kPipeline, fixed, limits_, beside_expert,
                                            std::min<int64_t>(kLargestPipelineDegree, divisors_.layer_count))) {
            PlanShape shape;
            AxisDegrees& ici = shape.parallelism.ici;
            ici[LogicalAxis::kTensor] = static_cast<int32_t>(tensor);
            ici[LogicalAxis::kContext] = static_cast<int32_t>(context);
            ici[LogicalAxis::kExpert] = static_cast<int32_t>(expert);
            ici[LogicalAxis::kPipeline] = static_cast<int32_t>(pipeline);
            shape.shards_ici = beside_expert / pipeline;
            AddAcrossSlices(shape);
          }
        }
      }
    }
  }

  std::vector<PlanShape> Take() { return std::move(shapes_); }

 private:
  void AddAcrossSlices(PlanShape shape) {
    AxisDegrees& dcn = shape.parallelism.dcn;
    int64_t rest = slice_.slice_count;
    for (LogicalAxis axis : {LogicalAxis::kTensor, LogicalAxis::kContext, LogicalAxis::kExpert}) {
      const std::vector<int64_t> degrees = DcnDegreesOf(axis, limits_, rest);
      if (degrees.empty()) return;
      dcn[axis] = static_cast<int32_t>(degrees.front());
      rest /= degrees.front();
    }
    for (int64_t pipeline : DcnDegreesOf(LogicalAxis::kPipeline, limits_, rest)) {
      dcn[LogicalAxis::kPipeline] = static_cast<int32_t>(pipeline);
      shape.shards_dcn = rest / pipeline;
      AddSchedules(shape);
    }
  }

  void AddSchedules(PlanShape shape) {
    if (!IsLegalSplit(shape)) return;
    Parallelism& plan = shape.parallelism;
    const int32_t stages = plan.Degree(LogicalAxis::kPipeline);
    if (stages == 1) {
      shapes_.push_back(shape);
      return;
    }
    const int64_t shards = shape.shards_ici * shape.shards_dcn * plan.Degree(LogicalAxis::kExpert) *
                           workload_.gradient_accumulation.value_or(1);
    const int64_t sequences = workload_.global_batch_size / shards;
    for (int64_t size = 1; size <= std::min(sequences, kLargestMicrobatchSize); size *= 2) {
      if (sequences % size != 0 || sequences / size > kMaxMicrobatches) continue;
      plan.microbatch_count = static_cast<int32_t>(sequences / size);
      for (int32_t chunks = 1; chunks <= kLargestVirtualStageCount; chunks *= 2) {
        plan.virtual_stage_count = chunks;
        plan.schedule = chunks > 1 ? PipelineSchedule::kInterleaved1F1B : PipelineSchedule::kOneFOneB;
        if (IsLegalSplit(shape)) shapes_.push_back(shape);
      }
    }
  }

  // Whether the shape is legal with all that is left to FSDP; how it is split further decides nothing.
  bool IsLegalSplit(const PlanShape& shape) const {
    Parallelism plan = shape.parallelism;
    plan.ici[LogicalAxis::kFsdp] = static_cast<int32_t>(shape.shards_ici);
    plan.dcn[LogicalAxis::kFsdp] = static_cast<int32_t>(shape.shards_dcn);
    return IsLegal(divisors_, slice_, workload_, plan, legality_);
  }

  const ModelDivisors& divisors_;
  const hardware::Slice& slice_;
  const TrainingWorkload& workload_;
  const PlanLimits& limits_;
  const LegalityOptions legality_;
  int64_t largest_expert_count_ = 1;
  std::vector<PlanShape> shapes_;
};

}  // namespace

Simplicity SimplicityOf(const Parallelism& parallelism) {
  int axes = 0;
  for (LogicalAxis axis : kLogicalAxes) axes += parallelism.Degree(axis) > 1 ? 1 : 0;
  return {axes,
          parallelism.Degree(LogicalAxis::kPipeline),
          parallelism.Degree(LogicalAxis::kExpert),
          parallelism.Degree(LogicalAxis::kContext),
          parallelism.Degree(LogicalAxis::kTensor),
          parallelism.Degree(LogicalAxis::kData),
          parallelism.virtual_stage_count,
          parallelism.microbatch_count,
          static_cast<int>(parallelism.data_zero_stage)};
}

std::vector<PlanShape> ShapesOf(const ModelDivisors& divisors, const hardware::Slice& slice,
                                const TrainingWorkload& workload, const PlanLimits& limits) {
  ShapeList list(divisors, slice, workload, limits);
  for (int64_t chips : UsableCounts(slice, limits.allow_idle_chips)) list.AddAll(chips);
  return list.Take();
}

std::vector<Parallelism> SplitsOf(const PlanShape& shape, const PlanLimits& limits) {
  std::vector<Parallelism> plans;
  const std::vector<int64_t> dcn_degrees = DataDegrees(limits.fixed_dcn, limits, shape.shards_dcn);
  for (int64_t data : DataDegrees(limits.fixed_ici, limits, shape.shards_ici)) {
    for (int64_t data_dcn : dcn_degrees) {
      Parallelism plan = shape.parallelism;
      plan.ici[LogicalAxis::kData] = static_cast<int32_t>(data);
      plan.ici[LogicalAxis::kFsdp] = static_cast<int32_t>(shape.shards_ici / data);
      plan.dcn[LogicalAxis::kData] = static_cast<int32_t>(data_dcn);
      plan.dcn[LogicalAxis::kFsdp] = static_cast<int32_t>(shape.shards_dcn / data_dcn);
      // Sharding the optimizer state over replicas costs nothing: the all-reduce is a reduce-scatter and a gather.
      if (HasReplicas(plan)) plan.data_zero_stage = ZeroStage::k1;
      plans.push_back(std::move(plan));
    }
  }
  return plans;
}

int64_t SplitCount(const PlanShape& shape, const PlanLimits& limits) {
  return static_cast<int64_t>(DataDegrees(limits.fixed_ici, limits, shape.shards_ici).size() *
                              DataDegrees(limits.fixed_dcn, limits, shape.shards_dcn).size());
}

}  // namespace sliceplan::planner
