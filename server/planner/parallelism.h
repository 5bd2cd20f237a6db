// How a job is spread over chips. Axis names and meaning: proto/sliceplan/v1/parallelism.proto.
#ifndef SLICEPLAN_SERVER_PLANNER_PARALLELISM_H_
#define SLICEPLAN_SERVER_PLANNER_PARALLELISM_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"

namespace sliceplan::planner {

// In the order of the contract; also the order in which axes are listed.
enum class LogicalAxis { kData, kFsdp, kTensor, kContext, kExpert, kPipeline };
inline constexpr int kLogicalAxisCount = 6;
inline constexpr std::array<LogicalAxis, kLogicalAxisCount> kLogicalAxes = {
    LogicalAxis::kData,    LogicalAxis::kFsdp,   LogicalAxis::kTensor,
    LogicalAxis::kContext, LogicalAxis::kExpert, LogicalAxis::kPipeline};

// "data", "fsdp", ...
constexpr absl::string_view LogicalAxisName(LogicalAxis axis) {
  switch (axis) {
    case LogicalAxis::kData: return "data";
    case LogicalAxis::kFsdp: return "fsdp";
    case LogicalAxis::kTensor: return "tensor";
    case LogicalAxis::kContext: return "context";
    case LogicalAxis::kExpert: return "expert";
    case LogicalAxis::kPipeline: return "pipeline";
  }
  return "";
}

// Degrees of each logical axis, at least 1.
struct AxisDegrees {
  std::array<int32_t, kLogicalAxisCount> degree = {1, 1, 1, 1, 1, 1};

  int32_t& operator[](LogicalAxis axis) { return degree[static_cast<size_t>(axis)]; }
  int32_t operator[](LogicalAxis axis) const { return degree[static_cast<size_t>(axis)]; }
  // Up to 2^63: each degree is at most 2^20 and validated before.
  int64_t Product() const {
    int64_t product = 1;
    for (int32_t d : degree) product *= d;
    return product;
  }
  friend bool operator==(const AxisDegrees&, const AxisDegrees&) = default;
};

// What the data axis shards beyond the batch: nothing, optimizer state, also gradients, also parameters.
enum class ZeroStage { k0, k1, k2, k3 };

enum class PipelineSchedule { kGpipe, kOneFOneB, kInterleaved1F1B, kZeroBubble };

// One logical axis takes `factor` of a physical axis, members `stride` apart.
struct AxisAssignment {
  LogicalAxis logical = LogicalAxis::kData;
  int32_t physical_axis = 0;
  int32_t factor = 1;
  int32_t stride = 1;
};

struct Parallelism {
  AxisDegrees ici;  // within a slice
  AxisDegrees dcn;  // across slices
  bool sequence_parallel = true;
  ZeroStage data_zero_stage = ZeroStage::k0;
  PipelineSchedule schedule = PipelineSchedule::kOneFOneB;
  int32_t virtual_stage_count = 1;
  int32_t microbatch_count = 0;           // 0: one sequence each when pipelined, else 1
  std::vector<int32_t> layers_per_stage;  // one entry per stage chunk; empty: as even as it goes
  std::vector<AxisAssignment> mapping;    // empty: the best

  int32_t Degree(LogicalAxis axis) const { return ici[axis] * dcn[axis]; }
};

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_PARALLELISM_H_
