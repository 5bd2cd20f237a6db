#include "server/rpc/handlers/analysis_handlers.h"

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/rpc/convert/assumptions.h"
#include "server/rpc/convert/collective.h"
#include "server/rpc/convert/enums.h"
#include "server/rpc/convert/model.h"
#include "server/rpc/convert/model_description.h"
#include "server/rpc/convert/operation.h"
#include "server/rpc/convert/profile.h"
#include "server/rpc/convert/ranges.h"
#include "server/rpc/convert/slice.h"
#include "server/rpc/convert/workload.h"
#include "server/rpc/errors.h"
#include "server/rpc/field_path.h"
#include "server/rpc/version.h"
#include "server/rpc/violations.h"

namespace sliceplan::rpc {
namespace {

template <typename Response>
void SetVersions(const catalog::Catalog& catalog, Response* response) {
  response->set_engine_version(EngineVersion());
  response->set_catalog_version(catalog.version());
}

// The profile that a calibrated answer uses; nullptr in ROOFLINE mode, or with a violation.
template <typename Request>
ProfileHandle ToProfile(const Request& request, const std::optional<catalog::ResolvedSlice>& slice,
                        const catalog::Catalog& catalog, ProfileCache& profiles, const FieldPath& path,
                        Violations& violations, Assumptions& assumptions) {
  const FieldPath profile_path(path, "calibration_profile");
  const auto mode =
      FromProto(kEstimationModes, request.estimation_mode(), FieldPath(path, "estimation_mode"), violations);
  if (mode == planner::EstimationMode::kRoofline || !slice.has_value()) {
    CheckProfileName(request.calibration_profile(), catalog, profile_path, violations);
    return nullptr;
  }
  ProfileHandle profile = ToTrainingProfile(request.calibration_profile(), *slice, catalog, profiles, profile_path,
                                            violations, assumptions);
  if (profile != nullptr && !mode.has_value()) {
    assumptions.Add("estimation_mode", "ESTIMATION_MODE_CALIBRATED",
                    absl::StrCat("expected_seconds is calibrated with ", profile->name, "."));
  }
  return profile;
}

// A figure of the chip that is not public is the request's to give; anything else that the engine says is about
// `field`.
void AddStatus(const absl::Status& status, const FieldPath& path, absl::string_view field, Violations& violations) {
  const bool figure = absl::IsFailedPrecondition(status);
  violations.Add(FieldPath(path, figure ? absl::string_view("slice") : field),
                 AsSentence(figure ? absl::StrCat(status.message(), "; set it in slice.override or slice.custom")
                                   : std::string(status.message())),
                 figure ? "ACCELERATOR_FIGURE_UNKNOWN" : "INVALID_FIELD");
}

}  // namespace

Result AnalysisHandlers::DescribeModel(const v1::DescribeModelRequest& request, v1::DescribeModelResponse* response,
                                       const CallContext&) {
  const auto catalog = engine_.catalogs.Snapshot();
  const FieldPath path;
  Violations violations;
  Assumptions assumptions;
  const ModelHandle model = ToModel(request.model(), *catalog, engine_.models, FieldPath(path, "model"), violations);
  DescriptionSetting setting;
  if (request.has_sequence_length()) {
    CheckRange(int64_t{request.sequence_length()}, 1, kMaxTokensOfSequence, FieldPath(path, "sequence_length"),
               violations);
    setting.sequence_length = request.sequence_length();
  } else if (model != nullptr) {
    setting.sequence_length = DefaultSequenceLength(model->architecture.max_position_count);
    assumptions.Add("sequence_length", absl::StrCat(setting.sequence_length),
                    absl::StrCat("A sequence of ", setting.sequence_length, " tokens."));
  }
  const FieldPath mask_path(path, "attention_mask");
  if (const auto mask = FromProto(kAttentionMasks, request.attention_mask(), mask_path, violations)) {
    setting.mask = *mask;
  }
  const FieldPath dtype_path(path, "kv_cache_dtype");
  if (const auto dtype = FromProto(kDataTypes, request.kv_cache_dtype(), dtype_path, violations)) {
    setting.kv_cache_dtype = *dtype;
  }
  if (!violations.empty()) return violations.ToResult();

  response->set_name(ModelName(request.model(), *catalog, *model));
  ToProto(*model, setting, response);
  assumptions.ToProto(response->mutable_assumptions());
  SetVersions(*catalog, response);
  return Result();
}

Result AnalysisHandlers::AnalyzeOperation(const v1::AnalyzeOperationRequest& request,
                                          v1::AnalyzeOperationResponse* response, const CallContext&) {
  const auto catalog = engine_.catalogs.Snapshot();
  const FieldPath path;
  Violations violations;
  Assumptions assumptions;
  const auto slice = ToSlice(request.slice(), *catalog, MissingShape::kOneChip, FieldPath(path, "slice"), violations);
  roofline::OperationQuestion question;
  ToOperation(request, path, question, violations);
  const ProfileHandle profile = ToProfile(request, slice, *catalog, engine_.profiles, path, violations, assumptions);
  std::vector<hardware::Violation> found;
  if (slice.has_value()) {
    question.slice = slice->slice;
    for (const std::string& note : slice->notes) assumptions.Add(note);
    if (profile != nullptr) {
      const bool is_attention = std::holds_alternative<roofline::AttentionOp>(question.operation);
      question.efficiency = EfficiencyFor(*profile, slice->slice.accelerator, is_attention);
    }
    if (!violations.empty()) AddRestOfViolations(question, found);
  }
  violations.AddMissing(path, found);
  if (!violations.empty()) return violations.ToResult();

  const absl::StatusOr<roofline::OperationAnalysis> analysis = roofline::AnalyzeOperation(question, found);
  violations.AddMissing(path, found);
  if (!analysis.ok() && violations.empty()) AddStatus(analysis.status(), path, "", violations);
  if (!violations.empty()) return violations.ToResult();

  ToProto(*analysis, question.mesh_axes, response);
  ToProto(*slice, response->mutable_slice());
  assumptions.ToProto(response->mutable_assumptions());
  SetVersions(*catalog, response);
  return Result();
}

Result AnalysisHandlers::AnalyzeCollective(const v1::AnalyzeCollectiveRequest& request,
                                           v1::AnalyzeCollectiveResponse* response, const CallContext&) {
  const auto catalog = engine_.catalogs.Snapshot();
  const FieldPath path;
  Violations violations;
  Assumptions assumptions;
  const FieldPath slice_path(path, "slice");
  std::optional<catalog::ResolvedSlice> slice;
  if (request.has_slice()) {
    slice = ToSlice(request.slice(), *catalog, MissingShape::kRefused, slice_path, violations);
  } else {
    AddRequired("slice", slice_path, violations);
  }
  const CollectiveQuestion question =
      ToCollective(request, slice.has_value() ? &slice->slice : nullptr, path, violations, assumptions);
  const ProfileHandle profile = ToProfile(request, slice, *catalog, engine_.profiles, path, violations, assumptions);
  if (!violations.empty()) return violations.ToResult();

  const double network_ratio = profile == nullptr ? 1 : profile->collective_ratio;
  const absl::Status status = rpc::AnalyzeCollective(question, slice->slice, network_ratio, response);
  if (!status.ok()) {
    AddStatus(status, path, "group_pieces", violations);
    return violations.ToResult();
  }
  ToProto(*slice, response->mutable_slice());
  for (const std::string& note : slice->notes) assumptions.Add(note);
  assumptions.ToProto(response->mutable_assumptions());
  SetVersions(*catalog, response);
  return Result();
}

Result AnalysisHandlers::CompareMeasurement(const v1::CompareMeasurementRequest&, v1::CompareMeasurementResponse*,
                                            const CallContext&) {
  return Unimplemented("sliceplan.v1.AnalysisService/CompareMeasurement",
                       "Comparing a measured run with the model comes in a later release. Meanwhile "
                       "PlannerService/EstimateTraining gives the expected step with its interval, its bounds and its "
                       "breakdown, to put beside the measurement.");
}

Effort AnalysisHandlers::EffortOf(const v1::DescribeModelRequest& request) const {
  return IsQuicklyRead(request.model(), engine_.models) ? Effort::kShort : Effort::kLong;
}

Effort AnalysisHandlers::EffortOf(const v1::AnalyzeOperationRequest& request) const {
  return request.mesh_axes().empty() ? Effort::kShort : Effort::kLong;
}

}  // namespace sliceplan::rpc
