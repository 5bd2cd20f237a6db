// Every plan of a job on one slice, in two levels: shapes decide what a chip computes, splits of a shape only who
// shares its weights. docs/search.md section 1.
#ifndef SLICEPLAN_SERVER_PLANNER_PLAN_SPACE_H_
#define SLICEPLAN_SERVER_PLANNER_PLAN_SPACE_H_

#include <array>
#include <cstdint>
#include <tuple>
#include <vector>

#include "server/hardware/slice.h"
#include "server/planner/model_divisors.h"
#include "server/planner/parallelism.h"
#include "server/planner/training_job.h"

namespace sliceplan::planner {

// Beyond these degrees no published run goes.
inline constexpr int64_t kLargestTensorDegree = 64;
inline constexpr int64_t kLargestContextDegree = 64;
inline constexpr int64_t kLargestPipelineDegree = 64;
// Layers of one stage are dealt out in at most so many virtual stages, and microbatches have at most so many sequences.
inline constexpr int32_t kLargestVirtualStageCount = 16;
inline constexpr int64_t kLargestMicrobatchSize = 8;
// Parts of a slice that are planned for when chips may idle: at least this share of it, the largest ones.
inline constexpr double kSmallestPart = 0.25;
inline constexpr size_t kMostParts = 16;

struct PlanLimits {
  AxisDegrees fixed_ici = {{0, 0, 0, 0, 0, 0}};  // 0: free
  AxisDegrees fixed_dcn = {{0, 0, 0, 0, 0, 0}};
  std::array<bool, kLogicalAxisCount> forbidden = {};
  bool allow_idle_chips = false;
  bool allow_padding = false;
};

// A plan whose data and FSDP degrees are still 1, and the chips and slices that they will share out.
struct PlanShape {
  Parallelism parallelism;
  int64_t shards_ici = 1;
  int64_t shards_dcn = 1;
};

// All shapes with at least one legal split; those that differ only in their virtual stages follow each other. Pipelines
// run 1F1B, plain or interleaved: GPipe takes as long and holds more, and no public TPU runtime has a zero-bubble
// schedule.
std::vector<PlanShape> ShapesOf(const ModelDivisors& divisors, const hardware::Slice& slice,
                                const TrainingWorkload& workload, const PlanLimits& limits);

// All splits of a shape over data and FSDP, inside and between slices, FSDP alone first. Replicas share out the
// optimizer state (ZeRO 1); ZeRO 2 reduces gradients in every microbatch, which is left to callers who ask for it.
std::vector<Parallelism> SplitsOf(const PlanShape& shape, const PlanLimits& limits);
// How many those are.
int64_t SplitCount(const PlanShape& shape, const PlanLimits& limits);

// The order of ties: fewer axes, then smaller degrees; fewer virtual stages; larger microbatches; less sharding.
using Simplicity = std::tuple<int, int32_t, int32_t, int32_t, int32_t, int32_t, int32_t, int32_t, int>;
Simplicity SimplicityOf(const Parallelism& parallelism);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_PLAN_SPACE_H_
