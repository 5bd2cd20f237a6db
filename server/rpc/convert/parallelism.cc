#include "server/rpc/convert/parallelism.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/rpc/convert/enums.h"
#include "server/rpc/convert/ranges.h"

namespace sliceplan::rpc {
namespace {

using planner::LogicalAxis;

constexpr int kMaxStageChunks = 4096;
constexpr int kMaxMappingEntries = 64;

// 0 stands for 1.
planner::AxisDegrees ToDegrees(const v1::AxisDegrees& proto) {
  planner::AxisDegrees degrees;
  const auto set = [&](LogicalAxis axis, int32_t degree) { degrees[axis] = degree == 0 ? 1 : degree; };
  set(LogicalAxis::kData, proto.data());
  set(LogicalAxis::kFsdp, proto.fsdp());
  set(LogicalAxis::kTensor, proto.tensor());
  set(LogicalAxis::kContext, proto.context());
  set(LogicalAxis::kExpert, proto.expert());
  set(LogicalAxis::kPipeline, proto.pipeline());
  return degrees;
}

void ToProto(const planner::AxisDegrees& degrees, v1::AxisDegrees* proto) {
  proto->set_data(degrees[LogicalAxis::kData]);
  proto->set_fsdp(degrees[LogicalAxis::kFsdp]);
  proto->set_tensor(degrees[LogicalAxis::kTensor]);
  proto->set_context(degrees[LogicalAxis::kContext]);
  proto->set_expert(degrees[LogicalAxis::kExpert]);
  proto->set_pipeline(degrees[LogicalAxis::kPipeline]);
}

void ToMapping(const v1::Parallelism& proto, const FieldPath& path, Violations& violations,
               planner::Parallelism& parallelism) {
  if (!CheckCount(proto.mapping_size(), kMaxMappingEntries, FieldPath(path, "mapping"), violations)) return;
  for (int i = 0; i < proto.mapping_size(); ++i) {
    const v1::AxisAssignment& assignment = proto.mapping(i);
    const FieldPath entry_path(path, "mapping", i);
    const FieldPath axis_path(entry_path, "axis");
    const auto axis = FromProto(kParallelismAxes, assignment.axis(), axis_path, violations);
    if (assignment.axis() == v1::PARALLELISM_AXIS_UNSPECIFIED) AddRequired("axis", axis_path, violations);
    if (!axis) continue;
    parallelism.mapping.push_back(
        {*axis, assignment.physical_axis(), assignment.factor(), assignment.has_stride() ? assignment.stride() : 1});
  }
}

// A search chooses these itself, so that beside an absent `ici` they would be passed over in silence.
void RefuseWithoutDegrees(const v1::Parallelism& proto, const FieldPath& path, Violations& violations) {
  const std::pair<bool, absl::string_view> fields[] = {
      {proto.has_dcn(), "dcn"},
      {proto.has_sequence_parallel() && !proto.sequence_parallel(), "sequence_parallel"},
      {proto.data_zero_stage() != v1::ZERO_STAGE_UNSPECIFIED, "data_zero_stage"},
      {proto.schedule() != v1::PIPELINE_SCHEDULE_UNSPECIFIED, "schedule"},
      {proto.has_virtual_stage_count(), "virtual_stage_count"},
      {proto.has_microbatch_count(), "microbatch_count"},
      {proto.layers_per_stage_size() > 0, "layers_per_stage"},
      {proto.mapping_size() > 0, "mapping"}};
  for (const auto& [is_set, name] : fields) {
    if (!is_set) continue;
    violations.Add(FieldPath(path, name),
                   "belongs to a given plan: set ici too, or leave both out to have the best plan found.",
                   "REQUIRES_ICI");
  }
}

// Whether the groups of a placement close into rings inside a slice.
bool ClosesRing(const hardware::Group& group, const hardware::Slice& slice) {
  if (slice.accelerator.fabric != hardware::FabricKind::kTorus || group.pieces.empty()) return false;
  return std::all_of(group.pieces.begin(), group.pieces.end(), [&](const hardware::GroupPiece& piece) {
    const auto axis = static_cast<size_t>(piece.axis);
    return axis < slice.axes.size() && slice.axes[axis].wraps &&
           int64_t{piece.factor} * piece.stride == slice.axes[axis].size;
  });
}

}  // namespace

std::optional<planner::Parallelism> ToParallelism(const v1::Parallelism& proto, int32_t slice_count,
                                                  const FieldPath& path, Violations& violations) {
  planner::Parallelism parallelism;
  if (const auto stage =
          FromProto(kZeroStages, proto.data_zero_stage(), FieldPath(path, "data_zero_stage"), violations)) {
    parallelism.data_zero_stage = *stage;
  }
  parallelism.virtual_stage_count = proto.has_virtual_stage_count() ? proto.virtual_stage_count() : 1;
  if (parallelism.virtual_stage_count > 1) parallelism.schedule = planner::PipelineSchedule::kInterleaved1F1B;
  if (const auto schedule = FromProto(kPipelineSchedules, proto.schedule(), FieldPath(path, "schedule"), violations)) {
    parallelism.schedule = *schedule;
  }
  ToMapping(proto, path, violations, parallelism);
  if (!proto.has_ici()) {
    RefuseWithoutDegrees(proto, path, violations);
    return std::nullopt;
  }
  parallelism.ici = ToDegrees(proto.ici());
  if (proto.has_dcn()) {
    parallelism.dcn = ToDegrees(proto.dcn());
  } else {
    parallelism.dcn[LogicalAxis::kData] = slice_count;
  }
  if (proto.has_sequence_parallel()) parallelism.sequence_parallel = proto.sequence_parallel();
  if (proto.has_microbatch_count()) {
    if (proto.microbatch_count() < 1) {
      violations.Add(FieldPath(path, "microbatch_count"),
                     absl::StrCat("must be at least 1; it is ", proto.microbatch_count(), "."), "OUT_OF_RANGE");
    } else {
      parallelism.microbatch_count = proto.microbatch_count();
    }
  }
  if (CheckCount(proto.layers_per_stage_size(), kMaxStageChunks, FieldPath(path, "layers_per_stage"), violations)) {
    parallelism.layers_per_stage.assign(proto.layers_per_stage().begin(), proto.layers_per_stage().end());
  }
  return parallelism;
}

void ToProto(const planner::Parallelism& parallelism, v1::Parallelism* proto) {
  ToProto(parallelism.ici, proto->mutable_ici());
  ToProto(parallelism.dcn, proto->mutable_dcn());
  proto->set_sequence_parallel(parallelism.sequence_parallel);
  proto->set_data_zero_stage(ToProto(kZeroStages, parallelism.data_zero_stage));
  proto->set_schedule(ToProto(kPipelineSchedules, parallelism.schedule));
  proto->set_virtual_stage_count(parallelism.virtual_stage_count);
  proto->set_microbatch_count(parallelism.microbatch_count);
  for (const int32_t layers : parallelism.layers_per_stage) proto->add_layers_per_stage(layers);
  for (const planner::AxisAssignment& ours : parallelism.mapping) {
    v1::AxisAssignment* const assignment = proto->add_mapping();
    assignment->set_axis(ToProto(kParallelismAxes, ours.logical));
    assignment->set_physical_axis(ours.physical_axis);
    assignment->set_factor(ours.factor);
    assignment->set_stride(ours.stride);
  }
}

void ToProto(const planner::AxisPlacement& placement, const planner::Parallelism& parallelism,
             const hardware::Slice& slice, v1::AxisPlacement* proto) {
  const v1::ParallelismAxis axis = ToProto(kParallelismAxes, placement.axis);
  proto->set_axis(axis);
  proto->set_ici_degree(parallelism.ici[placement.axis]);
  proto->set_dcn_degree(parallelism.dcn[placement.axis]);
  for (const hardware::GroupPiece& piece : placement.group.pieces) {
    v1::AxisAssignment* const assignment = proto->add_pieces();
    assignment->set_axis(axis);
    assignment->set_physical_axis(piece.axis);
    assignment->set_factor(piece.factor);
    assignment->set_stride(piece.stride);
  }
  if (placement.group.SizeInSlice() > 1) {
    if (slice.accelerator.fabric == hardware::FabricKind::kTorus) {
      proto->add_tiers(v1::FABRIC_TIER_ICI);
    } else {
      // Members of one domain are neighbours in the numbering of the GPUs.
      bool inside = false;
      bool outside = false;
      for (const hardware::GroupPiece& piece : placement.group.pieces) {
        inside = inside || piece.stride < slice.domain_size;
        outside = outside || int64_t{piece.factor} * piece.stride > slice.domain_size;
      }
      if (inside) proto->add_tiers(v1::FABRIC_TIER_SCALE_UP);
      if (outside) proto->add_tiers(v1::FABRIC_TIER_NETWORK);
    }
  }
  if (placement.group.slice_count > 1) proto->add_tiers(v1::FABRIC_TIER_DCN);
  proto->set_closes_ring(ClosesRing(placement.group, slice));
}

}  // namespace sliceplan::rpc
