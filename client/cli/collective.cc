#include "client/cli/collective.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/cli/choices.h"
#include "client/cli/estimate_text.h"
#include "client/cli/job_flags.h"
#include "client/cli/plan_flags.h"
#include "client/cli/quantity.h"
#include "client/cli/slice_flags.h"
#include "client/cli/text.h"

namespace sliceplan::cli {
namespace {

// The physical axis that stands for the slices.
constexpr int kSlicesAxis = -1;

std::string PieceText(const v1::GroupPiece& piece) {
  std::string text = piece.axis() == kSlicesAxis ? std::string("slices") : absl::StrCat("axis ", piece.axis());
  absl::StrAppend(&text, " x", piece.factor());
  if (piece.has_stride() && piece.stride() > 1) absl::StrAppend(&text, " every ", piece.stride());
  return text;
}

std::string TierText(v1::FabricTier tier) {
  if (tier == v1::FABRIC_TIER_ICI || tier == v1::FABRIC_TIER_DCN) return tier == v1::FABRIC_TIER_ICI ? "ICI" : "DCN";
  return absl::StrReplaceAll(ChoiceName(tier), {{"-", " "}});
}

}  // namespace

void CollectiveQuestion::AddFlags(Flags& flags) {
  v1::AnalyzeCollectiveRequest* const request = this->request();
  flags.Group("Collective");
  flags.Custom("kind,--kind", "kind", "KIND", AllChoices(*v1::CollectiveKind_descriptor()),
               [request](const std::string& text) { return SetField(request, "kind", text); });
  flags.Require("kind");
  flags.Field("--bytes", "bytes",
              "of the full array of one group; all-to-all: held by the group; permute: sent by each chip");
  flags.Require("bytes");
  flags.Custom(
      "--axes", "group_pieces", "AXIS[:N[:STRIDE]],...",
      "physical axes that one group spans, slowest first: 0 (all of it), 0:4 (4 members), 0:4:2 (every second); "
      "-1 is the slices; default: everything",
      [this](const std::string& text) {
        absl::StatusOr<std::vector<v1::GroupPiece>> pieces = ReadPieces(text);
        if (!pieces.ok()) return pieces.status();
        pieces_ = *std::move(pieces);
        return absl::OkStatus();
      });
  flags.Field("--in-network-reduction", "in_network_reduction", "switches reduce");
  flags.Field("--no-in-network-reduction", "in_network_reduction", "switches do not reduce");
  flags.Field("--experts", "ragged.expert_count", "all-to-all: each token goes to some of so many experts");
  flags.Field("--experts-per-token", "ragged.experts_per_token", "all-to-all: how many each token goes to");
  flags.Group("Chips");
  AddSliceFlags(flags, [request] { return request->mutable_slice(); });
  flags.Require("slice");
  AddModeFlags(flags);
}

google::rpc::Status CollectiveQuestion::Complete(Backend& backend) {
  const bool whole_axis =
      std::any_of(pieces_.begin(), pieces_.end(), [](const v1::GroupPiece& piece) { return piece.factor() == 0; });
  v1::AnalyzeCollectiveResponse everything;
  if (whole_axis) {
    v1::AnalyzeCollectiveRequest question = request_;
    question.clear_ragged();
    google::rpc::Status status = backend.Call(method(), question, &everything);
    if (status.code() != 0) return status;
  }
  const v1::SliceUsed& slice = everything.slice();
  for (v1::GroupPiece& piece : pieces_) {
    if (piece.factor() == 0) {
      if (piece.axis() == kSlicesAxis) {
        piece.set_factor(slice.slice_count());
      } else if (piece.axis() >= 0 && piece.axis() < slice.slice().dims_size()) {
        piece.set_factor(slice.slice().dims(piece.axis()));
      }
      // An axis that does not exist keeps 0 and is refused by the call.
    }
    *request_.add_group_pieces() = piece;
  }
  return google::rpc::Status();
}

void CollectiveQuestion::Print(const Flags& flags, Report& report) const {
  const v1::AnalyzeCollectiveResponse& response = response_;
  report.Headline("", Tone::kPlain,
                  absl::StrCat(ChoiceName(request_.kind()), " of ", Bytes(static_cast<double>(request_.bytes())), ": ",
                               Seconds(response.expected_seconds()), " expected, on ", SliceText(response.slice())));
  report.Row("time", absl::StrCat(Seconds(response.seconds()), " at peak: the larger of bandwidth ",
                                  Seconds(response.bandwidth_seconds()), " and latency ",
                                  Seconds(response.latency_seconds()), " (", Plural(response.hops(), "hop"), ")"));
  report.Row("bound by", ResourceText(response.bound()));
  report.Row("rate", WithUnit(response.bytes_per_second(), "B/s"));
  report.Row("groups", absl::StrCat(Grouped(response.group_count()), " of ", Plural(response.group_size(), "chip"),
                                    ", all at once"));
  report.Row("how", response.algorithm());
  if (response.has_ring_ideal_ratio()) {
    report.Row("against rings",
               absl::StrCat(Significant(response.ring_ideal_ratio()), " times the time of as many whole rings"));
  }
  if (!response.pieces().empty()) {
    report.Section("Axes of a group");
    std::vector<std::vector<std::string>> rows;
    for (const v1::PieceCost& piece : response.pieces()) {
      rows.push_back({PieceText(piece.piece()), TierText(piece.tier()), piece.closes_ring() ? "ring" : "line",
                      Grouped(piece.hops()), WithUnit(piece.bytes_per_second(), "B/s")});
    }
    report.Table({{"piece", false}, {"tier", false}, {"shape", false}, {"hops", true}, {"per chip, one way", true}},
                 rows);
  }
  PrintAssumptions(response.assumptions(), flags, report);
  PrintWarnings(response.warnings(), flags, report);
  PrintVersions(response.engine_version(), response.catalog_version(), report);
}

}  // namespace sliceplan::cli
