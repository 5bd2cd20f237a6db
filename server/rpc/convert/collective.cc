#include "server/rpc/convert/collective.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "server/hardware/topology.h"
#include "server/rpc/convert/enums.h"
#include "server/rpc/convert/ranges.h"

namespace sliceplan::rpc {
namespace {

using hardware::FabricKind;
using hardware::Group;
using hardware::GroupPiece;
using hardware::Slice;
using roofline::CollectiveLaw;

constexpr int kMaxPieces = 16;
constexpr int64_t kMaxExperts = 1 << 16;
// Stands for the slices in GroupPiece.axis.
constexpr int32_t kSlicesAxis = -1;

// A piece of a physical axis, checked alone; overlaps are the engine's to find.
void AddPiece(const v1::GroupPiece& proto, const Slice& slice, const FieldPath& path, Violations& violations,
              Group& group) {
  const int32_t stride = proto.has_stride() ? proto.stride() : 1;
  if (proto.factor() < 1) {
    CheckRange(int64_t{proto.factor()}, 1, hardware::kMaxAxisSize, FieldPath(path, "factor"), violations);
    return;
  }
  if (stride < 1) {
    CheckRange(int64_t{stride}, 1, hardware::kMaxAxisSize, FieldPath(path, "stride"), violations);
    return;
  }
  if (proto.axis() == kSlicesAxis) {
    if (slice.slice_count % proto.factor() != 0 || group.slice_count != 1) {
      violations.Add(FieldPath(path, "factor"),
                     group.slice_count != 1 ? std::string("axis -1, the slices, is listed twice.")
                                            : absl::StrCat(proto.factor(), " does not divide the ", slice.slice_count,
                                                           slice.slice_count == 1 ? " slice." : " slices."),
                     "NOT_DIVISIBLE");
      return;
    }
    group.slice_count = proto.factor();
    return;
  }
  const auto axis_count = static_cast<int64_t>(slice.axes.size());
  if (proto.axis() < 0 || proto.axis() >= axis_count) {
    violations.Add(FieldPath(path, "axis"),
                   absl::StrCat("must be 0 to ", axis_count - 1, ", or -1 for the slices; it is ", proto.axis(), "."),
                   "OUT_OF_RANGE");
    return;
  }
  const int32_t length = slice.axes[static_cast<size_t>(proto.axis())].size;
  if (length % (int64_t{proto.factor()} * stride) != 0) {
    violations.Add(FieldPath(path, "factor"),
                   absl::StrCat(proto.factor(), " members at distance ", stride, " do not divide axis ", proto.axis(),
                                ", which has ", length, " chips."),
                   "NOT_DIVISIBLE");
    return;
  }
  group.pieces.push_back({proto.axis(), proto.factor(), stride});
}

Group AllChips(const Slice& slice) {
  Group group;
  for (size_t axis = 0; axis < slice.axes.size(); ++axis) {
    if (slice.axes[axis].size > 1) group.pieces.push_back({static_cast<int32_t>(axis), slice.axes[axis].size, 1});
  }
  group.slice_count = slice.slice_count;
  return group;
}

// Whether a group of GPUs leaves its scale-up domain.
bool LeavesDomain(const Slice& slice, const Group& group) {
  return std::any_of(group.pieces.begin(), group.pieces.end(),
                     [&](const GroupPiece& piece) { return int64_t{piece.factor} * piece.stride > slice.domain_size; });
}

void SetGroup(const v1::AnalyzeCollectiveRequest& request, const Slice& slice, const FieldPath& path,
              Violations& violations, Assumptions& assumptions, CollectiveQuestion& question) {
  if (request.group_pieces().empty()) {
    question.group = AllChips(slice);
    assumptions.Add("group_pieces", "",
                    absl::StrCat("The group is all ", question.group.Size(), " chips of all slices."));
  } else if (CheckCount(request.group_pieces_size(), kMaxPieces, FieldPath(path, "group_pieces"), violations)) {
    for (int i = 0; i < request.group_pieces_size(); ++i) {
      AddPiece(request.group_pieces(i), slice, FieldPath(path, "group_pieces", i), violations, question.group);
    }
  }
  const bool catalog_says = LeavesDomain(slice, question.group) ? slice.accelerator.network_in_network_reduction
                                                                : slice.accelerator.in_network_reduction;
  question.options.in_network_reduction =
      request.has_in_network_reduction() ? request.in_network_reduction() : catalog_says;
}

void SetRagged(const v1::RaggedTraffic& ragged, const FieldPath& path, Violations& violations,
               CollectiveQuestion& question) {
  if (question.kind != roofline::CollectiveKind::kAllToAll) {
    violations.Add(path, "belongs to COLLECTIVE_KIND_ALL_TO_ALL.", "CONFLICT");
    return;
  }
  if (!CheckRange(int64_t{ragged.expert_count()}, 1, kMaxExperts, FieldPath(path, "expert_count"), violations) ||
      !CheckRange(int64_t{ragged.experts_per_token()}, 1, ragged.expert_count(), FieldPath(path, "experts_per_token"),
                  violations)) {
    return;
  }
  // A token crosses once for each place that holds one of its k experts: of an array padded to one place per token and
  // place, min(k / places, 1) is full. "How To Scale Your Model", chapter 12.
  const int64_t places = std::min<int64_t>(question.group.Size(), ragged.expert_count());
  question.copies = static_cast<double>(std::min<int64_t>(ragged.experts_per_token(), places));
}

v1::FabricTier TierOf(const Slice& slice, const GroupPiece& piece) {
  if (slice.accelerator.fabric == FabricKind::kTorus) return v1::FABRIC_TIER_ICI;
  return int64_t{piece.factor} * piece.stride > slice.domain_size ? v1::FABRIC_TIER_NETWORK : v1::FABRIC_TIER_SCALE_UP;
}

// One chip's rate over a piece, one way: both links of a ring, one of a line.
double RateOf(const Slice& slice, const GroupPiece& piece, bool closes) {
  const hardware::AcceleratorSpec& chip = slice.accelerator;
  switch (TierOf(slice, piece)) {
    case v1::FABRIC_TIER_ICI: return chip.ici_link_bytes_per_second.value_or(0) * (closes ? 2 : 1);
    case v1::FABRIC_TIER_SCALE_UP: return chip.scale_up_bytes_per_second.value_or(0);
    default: return chip.network_bytes_per_second.value_or(0);
  }
}

void AddPieces(const CollectiveQuestion& question, const Slice& slice, v1::AnalyzeCollectiveResponse* response) {
  for (const GroupPiece& piece : question.group.pieces) {
    v1::PieceCost* const cost = response->add_pieces();
    cost->mutable_piece()->set_axis(piece.axis);
    cost->mutable_piece()->set_factor(piece.factor);
    cost->mutable_piece()->set_stride(piece.stride);
    cost->set_tier(TierOf(slice, piece));
    const bool torus = slice.accelerator.fabric == FabricKind::kTorus;
    const hardware::TorusAxis& axis = slice.axes[static_cast<size_t>(piece.axis)];
    const bool closes = torus && axis.wraps && int64_t{piece.factor} * piece.stride == axis.size;
    cost->set_closes_ring(closes);
    cost->set_bytes_per_second(RateOf(slice, piece, closes));
    // The farthest member: half way round a ring, the far end of a line, one crossing of a switch.
    cost->set_hops(!torus ? 1 : closes ? piece.factor / 2 * piece.stride : (piece.factor - 1) * piece.stride);
  }
  if (question.group.slice_count > 1) {
    v1::PieceCost* const cost = response->add_pieces();
    cost->mutable_piece()->set_axis(kSlicesAxis);
    cost->mutable_piece()->set_factor(question.group.slice_count);
    cost->mutable_piece()->set_stride(1);
    cost->set_tier(v1::FABRIC_TIER_DCN);
    cost->set_bytes_per_second(slice.accelerator.dcn_bytes_per_second.value_or(0));
    cost->set_hops(1);
  }
}

std::string AlgorithmOf(const CollectiveQuestion& question, const Slice& slice) {
  const size_t axes = question.group.pieces.size();
  std::string text;
  if (axes == 0) {
    text = question.group.slice_count > 1 ? "" : "nothing to exchange";
  } else if (slice.accelerator.fabric == FabricKind::kTorus) {
    text = axes == 1 ? "ring or line on 1 axis" : absl::StrCat("rotated rings and lines on ", axes, " pieces");
  } else {
    text = LeavesDomain(slice, question.group) ? "hierarchical: scale-up domain, then leaf and spine network"
                                               : "inside one scale-up domain";
    if (question.options.in_network_reduction) text += ", reduced in the switches";
  }
  if (question.group.slice_count > 1) {
    text +=
        absl::StrCat(text.empty() ? "" : "; ", "data-centre network between ", question.group.slice_count, " slices");
  }
  return text;
}

}  // namespace

CollectiveQuestion ToCollective(const v1::AnalyzeCollectiveRequest& request, const Slice* slice, const FieldPath& path,
                                Violations& violations, Assumptions& assumptions) {
  CollectiveQuestion question;
  const FieldPath kind_path(path, "kind");
  if (const auto kind = FromProto(kCollectiveKinds, request.kind(), kind_path, violations)) {
    question.kind = *kind;
  } else if (request.kind() == v1::COLLECTIVE_KIND_UNSPECIFIED) {
    AddRequired(absl::StrCat("kind (", LegalEnumNames(*v1::CollectiveKind_descriptor()), ")"), kind_path, violations);
  }
  if (CheckRange(request.bytes(), 1, kMaxExactInteger, FieldPath(path, "bytes"), violations)) {
    question.bytes = static_cast<double>(request.bytes());
  }
  if (slice != nullptr) SetGroup(request, *slice, path, violations, assumptions, question);
  if (request.has_ragged()) SetRagged(request.ragged(), FieldPath(path, "ragged"), violations, question);
  return question;
}

absl::Status AnalyzeCollective(const CollectiveQuestion& question, const Slice& slice, double network_ratio,
                               v1::AnalyzeCollectiveResponse* response) {
  const absl::StatusOr<CollectiveLaw> law = LawOf(question.kind, slice, question.group, question.options);
  if (!law.ok()) return law.status();
  const double sent_bytes = question.bytes * question.copies;
  const double bandwidth_seconds = law->BandwidthSeconds(sent_bytes);
  const double seconds = law->Seconds(sent_bytes);
  response->set_seconds(seconds);
  response->set_bandwidth_seconds(bandwidth_seconds);
  response->set_latency_seconds(law->latency_seconds);
  response->set_expected_seconds(std::max(bandwidth_seconds / network_ratio, law->latency_seconds));
  response->set_hops(static_cast<int32_t>(std::min<int64_t>(law->hops, hardware::kMaxAxisSize)));
  response->set_algorithm(AlgorithmOf(question, slice));
  AddPieces(question, slice, response);
  const auto ideal = RingIdealLawOf(question.kind, slice, question.group, question.options);
  if (ideal.ok() && ideal->BandwidthSeconds(sent_bytes) > 0) {
    response->set_ring_ideal_ratio(bandwidth_seconds / ideal->BandwidthSeconds(sent_bytes));
  }
  const int64_t group_size = question.group.Size();
  response->set_group_size(static_cast<int32_t>(group_size));
  response->set_group_count(static_cast<int32_t>(slice.TotalChips() / group_size));
  if (seconds > 0) response->set_bytes_per_second(question.bytes / seconds);
  if (question.kind == roofline::CollectiveKind::kAllReduce) {
    roofline::CollectiveOptions optimal = question.options;
    optimal.optimal_all_reduce = true;
    const auto best = LawOf(question.kind, slice, question.group, optimal);
    if (best.ok() && best->BandwidthSeconds(question.bytes) < bandwidth_seconds) {
      response->set_optimum_bandwidth_seconds(best->BandwidthSeconds(question.bytes));
    }
  }
  // The tier's resource; latency binds on the same links.
  switch (law->slowest_tier) {
    case roofline::Tier::kNone: break;
    case roofline::Tier::kIci: response->set_bound(v1::RESOURCE_ICI); break;
    case roofline::Tier::kScaleUp: response->set_bound(v1::RESOURCE_SCALE_UP); break;
    case roofline::Tier::kScaleOut: response->set_bound(v1::RESOURCE_NETWORK); break;
    case roofline::Tier::kDcn: response->set_bound(v1::RESOURCE_DCN); break;
  }
  return absl::OkStatus();
}

}  // namespace sliceplan::rpc
