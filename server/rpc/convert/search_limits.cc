#include "server/rpc/convert/search_limits.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "google/protobuf/util/time_util.h"
#include "server/rpc/convert/enums.h"
#include "server/rpc/convert/ranges.h"

namespace sliceplan::rpc {
namespace {

using planner::LogicalAxis;

constexpr int32_t kMaxProposals = 100;
constexpr int64_t kMaxChips = int64_t{1} << 20;
constexpr int64_t kMaxDegree = int64_t{1} << 20;
constexpr double kMaxHeadroomRatio = 0.9;
constexpr int kMaxAxes = 64;
constexpr int kMaxTargets = 64;

// Degrees that are given; 0 is free.
planner::AxisDegrees ToFixedDegrees(const v1::AxisDegrees& proto, const FieldPath& path, Violations& violations) {
  planner::AxisDegrees degrees;
  const auto set = [&](LogicalAxis axis, int32_t degree) {
    const absl::string_view name = planner::LogicalAxisName(axis);
    degrees[axis] = CheckRange(int64_t{degree}, 0, kMaxDegree, FieldPath(path, name), violations) ? degree : 0;
  };
  set(LogicalAxis::kData, proto.data());
  set(LogicalAxis::kFsdp, proto.fsdp());
  set(LogicalAxis::kTensor, proto.tensor());
  set(LogicalAxis::kContext, proto.context());
  set(LogicalAxis::kExpert, proto.expert());
  set(LogicalAxis::kPipeline, proto.pipeline());
  return degrees;
}

void ReadForbidden(const v1::Constraints& proto, const FieldPath& path, Violations& violations,
                   planner::SearchConstraints& constraints) {
  if (!CheckCount(proto.forbidden_axes_size(), kMaxAxes, FieldPath(path, "forbidden_axes"), violations)) return;
  for (int i = 0; i < proto.forbidden_axes_size(); ++i) {
    const FieldPath axis_path(path, "forbidden_axes", i);
    if (proto.forbidden_axes(i) == v1::PARALLELISM_AXIS_UNSPECIFIED) AddRequired("an axis", axis_path, violations);
    const auto axis = FromProto(kParallelismAxes, proto.forbidden_axes(i), axis_path, violations);
    if (!axis) continue;
    constraints.forbidden[static_cast<size_t>(*axis)] = true;
    if (constraints.fixed_ici[*axis] > 1 || constraints.fixed_dcn[*axis] > 1) {
      violations.Add(axis_path,
                     absl::StrCat(planner::LogicalAxisName(*axis), " is forbidden and fixed above 1; do one of both."),
                     "CONFLICTING_FIELDS");
    }
  }
}

}  // namespace

void ReadConstraints(const v1::Constraints& proto, const FieldPath& path, Violations& violations,
                     planner::SearchConstraints& constraints) {
  if (proto.has_max_chip_count()) {
    CheckRange(int64_t{proto.max_chip_count()}, 1, kMaxChips, FieldPath(path, "max_chip_count"), violations);
    constraints.max_chip_count = proto.max_chip_count();
  }
  if (proto.has_hbm_headroom_ratio()) {
    CheckRange(proto.hbm_headroom_ratio(), 0, kMaxHeadroomRatio, FieldPath(path, "hbm_headroom_ratio"), violations);
    constraints.hbm_headroom_ratio = proto.hbm_headroom_ratio();
  }
  constraints.fixed_ici = ToFixedDegrees(proto.fixed_ici(), FieldPath(path, "fixed_ici"), violations);
  constraints.fixed_dcn = ToFixedDegrees(proto.fixed_dcn(), FieldPath(path, "fixed_dcn"), violations);
  ReadForbidden(proto, path, violations, constraints);
  constraints.allow_idle_chips = proto.allow_idle_chips();
  constraints.allow_padding = proto.allow_padding();
}

void ReadLimits(const v1::ProposeShardingRequest& request, const FieldPath& path, Violations& violations,
                SearchLimits& limits) {
  if (request.has_top_k() &&
      CheckRange(int64_t{request.top_k()}, 1, kMaxProposals, FieldPath(path, "top_k"), violations)) {
    limits.proposal_count = static_cast<size_t>(request.top_k());
  }
  if (CheckCount(request.render_size(), kMaxTargets, FieldPath(path, "render"), violations)) {
    for (int i = 0; i < request.render_size(); ++i) {
      const FieldPath target_path(path, "render", i);
      if (request.render(i) == v1::RENDER_TARGET_UNSPECIFIED) AddRequired("a target", target_path, violations);
      const auto target = FromProto(kRenderTargets, request.render(i), target_path, violations);
      if (!target || std::find(limits.render.begin(), limits.render.end(), *target) != limits.render.end()) {
        continue;
      }
      limits.render.push_back(*target);
    }
  }
  if (!request.has_search_time_limit()) return;
  using google::protobuf::util::TimeUtil;
  const google::protobuf::Duration& limit = request.search_time_limit();
  const bool in_range = limit.seconds() >= 0 && limit.nanos() >= 0 &&
                        limit.seconds() <= TimeUtil::kDurationMaxSeconds && limit.nanos() < 1'000'000'000 &&
                        (limit.seconds() > 0 || limit.nanos() > 0);
  if (!in_range) {
    violations.Add(FieldPath(path, "search_time_limit"), "must be a time above 0.", "OUT_OF_RANGE");
    return;
  }
  limits.time_limit = absl::Seconds(limit.seconds()) + absl::Nanoseconds(limit.nanos());
}

void ReadMode(const v1::ProposeShardingRequest& request, const FieldPath& path, Violations& violations,
              Assumptions& assumptions, SearchLimits& limits) {
  if (const auto objective = FromProto(kObjectives, request.objective(), FieldPath(path, "objective"), violations)) {
    limits.objective = *objective;
  } else if (!request.has_serving()) {  // of serving it depends on the candidates
    assumptions.Add("objective", "OBJECTIVE_MIN_STEP_TIME", "The shortest step is best.");
  }
  if (const auto mode =
          FromProto(kEstimationModes, request.estimation_mode(), FieldPath(path, "estimation_mode"), violations)) {
    limits.mode = *mode;
  } else {
    assumptions.Add("estimation_mode", "ESTIMATION_MODE_CALIBRATED",
                    "Times as a real runtime reaches them, not the roofline's.");
  }
}

}  // namespace sliceplan::rpc
