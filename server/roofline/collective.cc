#include "server/roofline/collective.h"

#include <cmath>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/roofline/switched_collective.h"
#include "server/roofline/torus_collective.h"

namespace sliceplan::roofline {
namespace {

using hardware::FabricKind;
using hardware::Group;
using hardware::Slice;
using hardware::TorusAxis;

absl::Status MissingFigure(absl::string_view field, absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat("the accelerator has no ", field, ", which ", why, " needs"));
}

bool IsRate(const std::optional<double>& rate) { return rate.has_value() && *rate > 0 && std::isfinite(*rate); }

absl::Status CheckFillRatio(const CollectiveOptions& options) {
  if (options.all_to_all_fill_ratio >= 0 && options.all_to_all_fill_ratio <= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("all_to_all_fill_ratio must be from 0 to 1, not ", options.all_to_all_fill_ratio));
}

absl::Status CheckSlices(const Slice& slice, const Group& group) {
  if (group.slice_count >= 1 && slice.slice_count >= 1 && slice.slice_count % group.slice_count == 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("a group of ", group.slice_count, " slices does not divide the ",
                                                 slice.slice_count, " slices of the job"));
}

// What happens inside each slice of a group that spans several: reduce-scatter, then all-gather around the data-centre
// phase, and of an all-to-all only the part that stays in the slice. docs/collectives.md section 6.
struct InsidePhase {
  CollectiveOptions options;
  double scale = 1;
};

InsidePhase InsideOf(CollectiveKind kind, int32_t slice_count, const CollectiveOptions& options) {
  InsidePhase inside{options, 1};
  if (slice_count == 1) return inside;
  inside.options.optimal_all_reduce = false;
  inside.options.in_network_reduction = false;
  if (kind == CollectiveKind::kAllToAll) inside.scale = 1.0 / slice_count;
  return inside;
}

double Latency(const std::optional<double>& own, double otherwise) {
  return own.has_value() && *own >= 0 && std::isfinite(*own) ? *own : otherwise;
}

absl::Status AddTorus(CollectiveKind kind, const Slice& slice, absl::Span<const TorusAxis> axes, bool twisted,
                      const AxisSpans& spans, const InsidePhase& inside, CollectiveLaw& law) {
  if (spans.count == 0) return absl::OkStatus();
  if (!IsRate(slice.accelerator.ici_link_bytes_per_second)) {
    return MissingFigure("ici_link_bytes_per_second", "a group of several chips of a slice");
  }
  const TorusCost cost = TorusCollective(kind, axes, twisted, spans, inside.options);
  law.ici_seconds_per_byte = cost.units * inside.scale / *slice.accelerator.ici_link_bytes_per_second;
  law.hops = cost.hops;
  law.latency_seconds = static_cast<double>(cost.hops) * Latency(slice.accelerator.ici_hop_seconds, kDefaultHopSeconds);
  return absl::OkStatus();
}

absl::Status AddSwitched(CollectiveKind kind, const Slice& slice, const DomainOccupancy& occupancy,
                         const InsidePhase& inside, CollectiveLaw& law) {
  const SwitchedCost cost = SwitchedCollective(kind, occupancy, inside.options);
  if (cost.scale_up_units > 0) {
    if (!IsRate(slice.accelerator.scale_up_bytes_per_second)) {
      return MissingFigure("scale_up_bytes_per_second", "a group of several chips of a scale-up domain");
    }
    law.scale_up_seconds_per_byte = cost.scale_up_units * inside.scale / *slice.accelerator.scale_up_bytes_per_second;
  }
  if (cost.scale_out_units > 0) {
    if (!IsRate(slice.accelerator.network_bytes_per_second)) {
      return MissingFigure("network_bytes_per_second", "a group across scale-up domains");
    }
    law.scale_out_seconds_per_byte = cost.scale_out_units * inside.scale / *slice.accelerator.network_bytes_per_second;
  }
  law.hops = cost.scale_up_hops + cost.scale_out_hops;
  law.latency_seconds = static_cast<double>(cost.scale_up_hops) *
                            Latency(slice.accelerator.scale_up_latency_seconds, kDefaultScaleUpSeconds) +
                        static_cast<double>(cost.scale_out_hops) *
                            Latency(slice.accelerator.network_latency_seconds, kDefaultNetworkSeconds);
  return absl::OkStatus();
}

// Groups that take r chips of each slice: each sends through the r chips' own shares of the data-centre network.
absl::Status AddDcn(CollectiveKind kind, const Slice& slice, double slices, double chips,
                    const CollectiveOptions& options, CollectiveLaw& law) {
  if (slices == 1) return absl::OkStatus();
  if (!IsRate(slice.accelerator.dcn_bytes_per_second)) {
    return MissingFigure("dcn_bytes_per_second", "a group of several slices");
  }
  const double gather_units = (slices - 1) / slices / chips;
  double units = 0;
  switch (kind) {
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter: units = gather_units; break;
    case CollectiveKind::kAllReduce: units = 2 * gather_units; break;
    case CollectiveKind::kAllToAll: units = gather_units / slices * options.all_to_all_fill_ratio; break;
    case CollectiveKind::kCollectivePermute: units = 1; break;
  }
  law.dcn_seconds_per_byte = units / *slice.accelerator.dcn_bytes_per_second;
  const int crossings = kind == CollectiveKind::kAllReduce ? 2 : 1;
  law.latency_seconds += crossings * Latency(slice.accelerator.dcn_latency_seconds, 0);
  return absl::OkStatus();
}

void Finish(CollectiveLaw& law) {
  const auto consider = [&law](double seconds_per_byte, Tier tier) {
    if (seconds_per_byte > law.pipelined_seconds_per_byte) {
      law.pipelined_seconds_per_byte = seconds_per_byte;
      law.slowest_tier = tier;
    }
  };
  consider(law.ici_seconds_per_byte, Tier::kIci);
  consider(law.scale_up_seconds_per_byte, Tier::kScaleUp);
  consider(law.scale_out_seconds_per_byte, Tier::kScaleOut);
  consider(law.dcn_seconds_per_byte, Tier::kDcn);
}

// A checked group, read once for all kinds.
struct GroupShape {
  AxisSpans spans;            // torus
  DomainOccupancy occupancy;  // switched
};

absl::Status ShapeOf(const Slice& slice, const Group& group, const CollectiveOptions& options, GroupShape& shape) {
  if (absl::Status status = CheckFillRatio(options); !status.ok()) return status;
  if (absl::Status status = CheckSlices(slice, group); !status.ok()) return status;
  if (slice.accelerator.fabric == FabricKind::kTorus) {
    return SpansOf(slice.axes, slice.twisted, group.pieces, shape.spans);
  }
  return OccupancyOf(slice.chip_count, slice.domain_size, group.pieces, shape.occupancy);
}

absl::Status LawOfShape(CollectiveKind kind, const Slice& slice, const Group& group, const GroupShape& shape,
                        const CollectiveOptions& options, CollectiveLaw& law) {
  const InsidePhase inside = InsideOf(kind, group.slice_count, options);
  absl::Status status = slice.accelerator.fabric == FabricKind::kTorus
                            ? AddTorus(kind, slice, slice.axes, slice.twisted, shape.spans, inside, law)
                            : AddSwitched(kind, slice, shape.occupancy, inside, law);
  if (status.ok())
    status = AddDcn(kind, slice, group.slice_count, static_cast<double>(group.SizeInSlice()), options, law);
  if (status.ok()) Finish(law);
  return status;
}

}  // namespace

absl::StatusOr<CollectiveLaw> LawOf(CollectiveKind kind, const Slice& slice, const Group& group,
                                    const CollectiveOptions& options) {
  GroupShape shape;
  if (absl::Status status = ShapeOf(slice, group, options, shape); !status.ok()) return status;
  CollectiveLaw law;
  if (absl::Status status = LawOfShape(kind, slice, group, shape, options, law); !status.ok()) return status;
  return law;
}

absl::StatusOr<CollectiveLaws> LawsOfGroup(const Slice& slice, const Group& group, const CollectiveOptions& options) {
  GroupShape shape;
  if (absl::Status status = ShapeOf(slice, group, options, shape); !status.ok()) return status;
  CollectiveLaws laws;
  for (int kind = 0; kind < kCollectiveKindCount; ++kind) {
    absl::Status status =
        LawOfShape(static_cast<CollectiveKind>(kind), slice, group, shape, options, laws[static_cast<size_t>(kind)]);
    if (!status.ok()) return status;
  }
  return laws;
}

absl::Status LawOfSpans(CollectiveKind kind, const Slice& slice, const AxisSpans& spans, int32_t slice_count,
                        const CollectiveOptions& options, CollectiveLaw& law) {
  law = CollectiveLaw();
  absl::Status status =
      AddTorus(kind, slice, slice.axes, /*twisted=*/false, spans, InsideOf(kind, slice_count, options), law);
  if (status.ok()) status = AddDcn(kind, slice, slice_count, spans.members, options, law);
  if (status.ok()) Finish(law);
  return status;
}

absl::StatusOr<CollectiveLaw> RingIdealLawOf(CollectiveKind kind, const Slice& slice, const Group& group,
                                             const CollectiveOptions& options) {
  if (slice.accelerator.fabric != FabricKind::kTorus) {
    return absl::UnimplementedError("only a torus has rings");
  }
  if (absl::Status status = CheckFillRatio(options); !status.ok()) return status;
  if (absl::Status status = CheckSlices(slice, group); !status.ok()) return status;
  AxisSpans spans;
  if (absl::Status status = SpansOf(slice.axes, slice.twisted, group.pieces, spans); !status.ok()) return status;
  TorusAxis rings[kMaxTorusAxes];
  hardware::GroupPiece whole[kMaxTorusAxes];
  for (int i = 0; i < spans.count; ++i) {
    rings[i] = TorusAxis{static_cast<int32_t>(spans.span[i].members), true};
    whole[i] = hardware::GroupPiece{i, rings[i].size, 1};
  }
  const absl::Span<const TorusAxis> axes(rings, static_cast<size_t>(spans.count));
  AxisSpans ideal;
  if (absl::Status status = SpansOf(axes, false, absl::MakeConstSpan(whole, axes.size()), ideal); !status.ok())
    return status;
  CollectiveLaw law;
  absl::Status status = AddTorus(kind, slice, axes, false, ideal, InsideOf(kind, group.slice_count, options), law);
  if (status.ok())
    status = AddDcn(kind, slice, group.slice_count, static_cast<double>(group.SizeInSlice()), options, law);
  if (!status.ok()) return status;
  Finish(law);
  return law;
}

double RaggedFillRatio(double choices_per_token, double shard_count) {
  if (!(shard_count > 0) || !(choices_per_token >= 0)) return 1;
  return std::clamp(choices_per_token / shard_count, 0.0, 1.0);
}

double RandomRoutingFillRatio(double choices_per_token, double shard_count) {
  if (!(shard_count > 1) || !(choices_per_token >= 0)) return 1;
  return 1 - std::pow((shard_count - 1) / shard_count, choices_per_token);
}

}  // namespace sliceplan::roofline
