// Enums of the contract and of the engine, side by side: one table serves both ways.
#ifndef SLICEPLAN_SERVER_RPC_CONVERT_ENUMS_H_
#define SLICEPLAN_SERVER_RPC_CONVERT_ENUMS_H_

#include <cstddef>
#include <optional>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "google/protobuf/generated_enum_reflection.h"
#include "proto/sliceplan/v1/collective.pb.h"
#include "proto/sliceplan/v1/data_type.pb.h"
#include "proto/sliceplan/v1/estimate.pb.h"
#include "proto/sliceplan/v1/model.pb.h"
#include "proto/sliceplan/v1/model_description.pb.h"
#include "proto/sliceplan/v1/parallelism.pb.h"
#include "proto/sliceplan/v1/pricing.pb.h"
#include "proto/sliceplan/v1/sharding.pb.h"
#include "proto/sliceplan/v1/training.pb.h"
#include "server/hardware/data_type.h"
#include "server/hardware/price_table.h"
#include "server/planner/parallelism.h"
#include "server/planner/render/rendering.h"
#include "server/planner/sharding_search.h"
#include "server/planner/training_estimate.h"
#include "server/planner/training_job.h"
#include "server/roofline/bound.h"
#include "server/roofline/collective.h"
#include "server/rpc/enum_names.h"
#include "server/rpc/field_path.h"
#include "server/rpc/violations.h"
#include "server/transformer/architecture.h"
#include "server/transformer/operations.h"
#include "server/transformer/parameter_count.h"

namespace sliceplan::rpc {

template <typename Proto, typename Engine>
struct EnumPair {
  Proto proto;
  Engine engine;
};

inline constexpr EnumPair<v1::DataType, hardware::DataType> kDataTypes[] = {
    {v1::DATA_TYPE_BF16, hardware::DataType::kBf16}, {v1::DATA_TYPE_FP16, hardware::DataType::kFp16},
    {v1::DATA_TYPE_FP32, hardware::DataType::kFp32}, {v1::DATA_TYPE_FP8, hardware::DataType::kFp8},
    {v1::DATA_TYPE_FP4, hardware::DataType::kFp4},   {v1::DATA_TYPE_INT8, hardware::DataType::kInt8},
    {v1::DATA_TYPE_INT4, hardware::DataType::kInt4},
};

inline constexpr EnumPair<v1::EstimationMode, planner::EstimationMode> kEstimationModes[] = {
    {v1::ESTIMATION_MODE_ROOFLINE, planner::EstimationMode::kRoofline},
    {v1::ESTIMATION_MODE_CALIBRATED, planner::EstimationMode::kCalibrated},
};

inline constexpr EnumPair<v1::Optimizer, planner::Optimizer> kOptimizers[] = {
    {v1::OPTIMIZER_ADAMW, planner::Optimizer::kAdamw},
    {v1::OPTIMIZER_ADAFACTOR, planner::Optimizer::kAdafactor},
    {v1::OPTIMIZER_SGD, planner::Optimizer::kSgd},
    {v1::OPTIMIZER_MUON, planner::Optimizer::kMuon},
    {v1::OPTIMIZER_ADAMW_8BIT, planner::Optimizer::kAdamw8Bit},
};

inline constexpr EnumPair<v1::RematPolicy, planner::RematPolicy> kRematPolicies[] = {
    {v1::REMAT_POLICY_NONE, planner::RematPolicy::kNone},
    {v1::REMAT_POLICY_FULL, planner::RematPolicy::kFull},
    {v1::REMAT_POLICY_BLOCK, planner::RematPolicy::kBlock},
    {v1::REMAT_POLICY_SAVE_MATMUL_OUTPUTS, planner::RematPolicy::kSaveMatmulOutputs},
    {v1::REMAT_POLICY_SAVE_ATTENTION, planner::RematPolicy::kSaveAttention},
    {v1::REMAT_POLICY_MINIMAL, planner::RematPolicy::kMinimal},
    {v1::REMAT_POLICY_MINIMAL_FLASH, planner::RematPolicy::kMinimalFlash},
    {v1::REMAT_POLICY_SAVE_QKV_PROJ, planner::RematPolicy::kSaveQkvProj},
    {v1::REMAT_POLICY_SAVE_DOT_EXCEPT_MLP, planner::RematPolicy::kSaveDotExceptMlp},
    {v1::REMAT_POLICY_SAVE_DOT_EXCEPT_MLPWI, planner::RematPolicy::kSaveDotExceptMlpWi},
    {v1::REMAT_POLICY_SAVE_DOT_WITH_CONTEXT_EXCEPT_MLP, planner::RematPolicy::kSaveDotWithContextExceptMlp},
    {v1::REMAT_POLICY_CUSTOM, planner::RematPolicy::kCustom},
};

inline constexpr EnumPair<v1::AttentionKernel, planner::AttentionKernel> kAttentionKernels[] = {
    {v1::ATTENTION_KERNEL_FLASH, planner::AttentionKernel::kFlash},
    {v1::ATTENTION_KERNEL_MATERIALIZED, planner::AttentionKernel::kMaterialized},
    {v1::ATTENTION_KERNEL_FLASH_FUSED_BACKWARD, planner::AttentionKernel::kFlashFusedBackward},
};

inline constexpr EnumPair<v1::AttentionMask, planner::AttentionMask> kAttentionMasks[] = {
    {v1::ATTENTION_MASK_CAUSAL, planner::AttentionMask::kCausal},
    {v1::ATTENTION_MASK_FULL, planner::AttentionMask::kFull},
};

inline constexpr EnumPair<v1::ZeroStage, planner::ZeroStage> kZeroStages[] = {
    {v1::ZERO_STAGE_0, planner::ZeroStage::k0},
    {v1::ZERO_STAGE_1, planner::ZeroStage::k1},
    {v1::ZERO_STAGE_2, planner::ZeroStage::k2},
    {v1::ZERO_STAGE_3, planner::ZeroStage::k3},
};

inline constexpr EnumPair<v1::PipelineSchedule, planner::PipelineSchedule> kPipelineSchedules[] = {
    {v1::PIPELINE_SCHEDULE_GPIPE, planner::PipelineSchedule::kGpipe},
    {v1::PIPELINE_SCHEDULE_ONE_F_ONE_B, planner::PipelineSchedule::kOneFOneB},
    {v1::PIPELINE_SCHEDULE_INTERLEAVED_1F1B, planner::PipelineSchedule::kInterleaved1F1B},
    {v1::PIPELINE_SCHEDULE_ZERO_BUBBLE, planner::PipelineSchedule::kZeroBubble},
};

inline constexpr EnumPair<v1::ParallelismAxis, planner::LogicalAxis> kParallelismAxes[] = {
    {v1::PARALLELISM_AXIS_DATA, planner::LogicalAxis::kData},
    {v1::PARALLELISM_AXIS_FSDP, planner::LogicalAxis::kFsdp},
    {v1::PARALLELISM_AXIS_TENSOR, planner::LogicalAxis::kTensor},
    {v1::PARALLELISM_AXIS_CONTEXT, planner::LogicalAxis::kContext},
    {v1::PARALLELISM_AXIS_EXPERT, planner::LogicalAxis::kExpert},
    {v1::PARALLELISM_AXIS_PIPELINE, planner::LogicalAxis::kPipeline},
};

inline constexpr EnumPair<v1::PriceModel, hardware::PriceModel> kPriceModels[] = {
    {v1::PRICE_MODEL_ON_DEMAND, hardware::PriceModel::kOnDemand},
    {v1::PRICE_MODEL_SPOT, hardware::PriceModel::kSpot},
    {v1::PRICE_MODEL_COMMITTED_1Y, hardware::PriceModel::kCommitted1Y},
    {v1::PRICE_MODEL_COMMITTED_3Y, hardware::PriceModel::kCommitted3Y},
    {v1::PRICE_MODEL_FLEX_START, hardware::PriceModel::kFlexStart},
    {v1::PRICE_MODEL_CALENDAR, hardware::PriceModel::kCalendar},
};

inline constexpr EnumPair<v1::CollectiveKind, roofline::CollectiveKind> kCollectiveKinds[] = {
    {v1::COLLECTIVE_KIND_ALL_GATHER, roofline::CollectiveKind::kAllGather},
    {v1::COLLECTIVE_KIND_REDUCE_SCATTER, roofline::CollectiveKind::kReduceScatter},
    {v1::COLLECTIVE_KIND_ALL_REDUCE, roofline::CollectiveKind::kAllReduce},
    {v1::COLLECTIVE_KIND_ALL_TO_ALL, roofline::CollectiveKind::kAllToAll},
    {v1::COLLECTIVE_KIND_COLLECTIVE_PERMUTE, roofline::CollectiveKind::kCollectivePermute},
};

inline constexpr EnumPair<v1::Component, transformer::Component> kComponents[] = {
    {v1::COMPONENT_EMBEDDING, transformer::Component::kEmbedding},
    {v1::COMPONENT_OUTPUT_HEAD, transformer::Component::kOutputHead},
    {v1::COMPONENT_ATTENTION_PROJECTIONS, transformer::Component::kAttentionProjections},
    {v1::COMPONENT_ATTENTION_SCORES, transformer::Component::kAttentionScores},
    {v1::COMPONENT_FEED_FORWARD, transformer::Component::kFeedForward},
    {v1::COMPONENT_ROUTER, transformer::Component::kRouter},
    {v1::COMPONENT_NORM, transformer::Component::kNorm},
    {v1::COMPONENT_MTP, transformer::Component::kMtp},
    {v1::COMPONENT_OTHER, transformer::Component::kOther},
};

inline constexpr EnumPair<v1::WeightClass, transformer::WeightClass> kWeightClasses[] = {
    {v1::WEIGHT_CLASS_ATTENTION, transformer::WeightClass::kAttention},
    {v1::WEIGHT_CLASS_DENSE_FEED_FORWARD, transformer::WeightClass::kDenseFeedForward},
    {v1::WEIGHT_CLASS_EXPERT, transformer::WeightClass::kExpert},
    {v1::WEIGHT_CLASS_SHARED_EXPERT, transformer::WeightClass::kSharedExpert},
    {v1::WEIGHT_CLASS_ROUTER, transformer::WeightClass::kRouter},
    {v1::WEIGHT_CLASS_HEAD, transformer::WeightClass::kHead},
    {v1::WEIGHT_CLASS_EMBEDDING, transformer::WeightClass::kEmbedding},
    {v1::WEIGHT_CLASS_MTP_PROJECTION, transformer::WeightClass::kMtpProjection},
    {v1::WEIGHT_CLASS_PER_LAYER_INPUT, transformer::WeightClass::kPerLayerInput},
};

inline constexpr EnumPair<v1::QkNorm, transformer::GroupedQueryAttention::QkNorm> kQkNorms[] = {
    {v1::QK_NORM_NONE, transformer::GroupedQueryAttention::QkNorm::kNone},
    {v1::QK_NORM_PER_HEAD_DIM, transformer::GroupedQueryAttention::QkNorm::kPerHeadDim},
    {v1::QK_NORM_ALL_HEADS, transformer::GroupedQueryAttention::QkNorm::kAllHeads},
};

inline constexpr EnumPair<v1::LinearAttentionKind, transformer::LinearAttention::Kind> kLinearAttentionKinds[] = {
    {v1::LINEAR_ATTENTION_KIND_GATED_DELTA, transformer::LinearAttention::Kind::kGatedDelta},
    {v1::LINEAR_ATTENTION_KIND_KIMI_DELTA, transformer::LinearAttention::Kind::kKimiDelta},
    {v1::LINEAR_ATTENTION_KIND_LIGHTNING, transformer::LinearAttention::Kind::kLightning},
    {v1::LINEAR_ATTENTION_KIND_MAMBA1, transformer::LinearAttention::Kind::kMamba1},
    {v1::LINEAR_ATTENTION_KIND_MAMBA2, transformer::LinearAttention::Kind::kMamba2},
};

inline constexpr EnumPair<v1::StoredExtraKind, transformer::StoredExtra::Kind> kStoredExtraKinds[] = {
    {v1::STORED_EXTRA_KIND_BUFFERS, transformer::StoredExtra::Kind::kBuffer},
    {v1::STORED_EXTRA_KIND_QUANTIZATION_SCALES, transformer::StoredExtra::Kind::kQuantizationScales},
    {v1::STORED_EXTRA_KIND_MTP_LAYERS, transformer::StoredExtra::Kind::kMtpLayers},
    {v1::STORED_EXTRA_KIND_MTP_TABLE_COPIES, transformer::StoredExtra::Kind::kMtpTableCopies},
    {v1::STORED_EXTRA_KIND_TIED_TABLE_COPY, transformer::StoredExtra::Kind::kTiedTableCopy},
};

inline constexpr EnumPair<v1::Resource, planner::StepResource> kStepResources[] = {
    {v1::RESOURCE_MATRIX_UNIT, planner::StepResource::kMatrixUnit},
    {v1::RESOURCE_VECTOR_UNIT, planner::StepResource::kVectorUnit},
    {v1::RESOURCE_HBM, planner::StepResource::kHbm},
    {v1::RESOURCE_ICI, planner::StepResource::kIci},
    {v1::RESOURCE_SCALE_UP, planner::StepResource::kScaleUp},
    {v1::RESOURCE_NETWORK, planner::StepResource::kScaleOut},
    {v1::RESOURCE_DCN, planner::StepResource::kDcn},
    {v1::RESOURCE_PCIE, planner::StepResource::kPcie},
    {v1::RESOURCE_PIPELINE_BUBBLE, planner::StepResource::kBubble},
    {v1::RESOURCE_HOST, planner::StepResource::kHost},
};

inline constexpr EnumPair<v1::Resource, roofline::Resource> kResources[] = {
    {v1::RESOURCE_UNSPECIFIED, roofline::Resource::kNone},
    {v1::RESOURCE_MATRIX_UNIT, roofline::Resource::kMatrixUnit},
    {v1::RESOURCE_VECTOR_UNIT, roofline::Resource::kVectorUnit},
    {v1::RESOURCE_VMEM, roofline::Resource::kVmem},
    {v1::RESOURCE_HBM, roofline::Resource::kHbm},
    {v1::RESOURCE_ICI, roofline::Resource::kIci},
    {v1::RESOURCE_SCALE_UP, roofline::Resource::kScaleUp},
    {v1::RESOURCE_NETWORK, roofline::Resource::kScaleOut},
    {v1::RESOURCE_DCN, roofline::Resource::kDcn},
    {v1::RESOURCE_PCIE, roofline::Resource::kPcie},
};

inline constexpr EnumPair<v1::Phase, planner::Phase> kPhases[] = {
    {v1::PHASE_FORWARD, planner::Phase::kForward},
    {v1::PHASE_BACKWARD, planner::Phase::kBackward},
    {v1::PHASE_RECOMPUTE, planner::Phase::kRecompute},
    {v1::PHASE_GRADIENT_REDUCTION, planner::Phase::kGradientReduction},
    {v1::PHASE_OPTIMIZER, planner::Phase::kOptimizer},
    {v1::PHASE_PIPELINE, planner::Phase::kSchedule},
    {v1::PHASE_HOST, planner::Phase::kHost},
};

inline constexpr EnumPair<v1::Outcome, planner::Outcome> kOutcomes[] = {
    {v1::OUTCOME_FEASIBLE, planner::Outcome::kFeasible},
    {v1::OUTCOME_OUT_OF_MEMORY, planner::Outcome::kOutOfMemory},
    {v1::OUTCOME_MISSES_DEADLINE, planner::Outcome::kMissesDeadline},
    {v1::OUTCOME_OVER_BUDGET, planner::Outcome::kOverBudget},
    {v1::OUTCOME_NO_LEGAL_PLAN, planner::Outcome::kNoLegalPlan},
};

inline constexpr EnumPair<v1::FabricTier, roofline::Tier> kFabricTiers[] = {
    {v1::FABRIC_TIER_UNSPECIFIED, roofline::Tier::kNone}, {v1::FABRIC_TIER_ICI, roofline::Tier::kIci},
    {v1::FABRIC_TIER_SCALE_UP, roofline::Tier::kScaleUp}, {v1::FABRIC_TIER_NETWORK, roofline::Tier::kScaleOut},
    {v1::FABRIC_TIER_DCN, roofline::Tier::kDcn},
};

inline constexpr EnumPair<v1::Objective, planner::Objective> kObjectives[] = {
    {v1::OBJECTIVE_MIN_STEP_TIME, planner::Objective::kMinStepTime},
    {v1::OBJECTIVE_MIN_COST, planner::Objective::kMinCost},
    {v1::OBJECTIVE_MAX_THROUGHPUT_PER_CHIP, planner::Objective::kMaxThroughputPerChip},
    {v1::OBJECTIVE_MIN_CHIPS, planner::Objective::kMinChips},
    {v1::OBJECTIVE_MIN_TIME_TO_TRAIN, planner::Objective::kMinTimeToTrain},
};

inline constexpr EnumPair<v1::RenderTarget, planner::RenderTarget> kRenderTargets[] = {
    {v1::RENDER_TARGET_JAX, planner::RenderTarget::kJax},
    {v1::RENDER_TARGET_MAXTEXT, planner::RenderTarget::kMaxText},
    {v1::RENDER_TARGET_MEGATRON, planner::RenderTarget::kMegatron},
    {v1::RENDER_TARGET_VLLM, planner::RenderTarget::kVllm},
    {v1::RENDER_TARGET_XPK, planner::RenderTarget::kXpk},
    {v1::RENDER_TARGET_GKE_JOBSET, planner::RenderTarget::kGkeJobSet},
    {v1::RENDER_TARGET_KUEUE, planner::RenderTarget::kKueue},
    {v1::RENDER_TARGET_CLOUD_TPU, planner::RenderTarget::kCloudTpu},
};

// The engine's value. nullopt for the unspecified one, and, with a violation that lists the legal names, for numbers
// that the enum does not have.
template <typename Proto, typename Engine, size_t N>
std::optional<Engine> FromProto(const EnumPair<Proto, Engine> (&table)[N], std::common_type_t<Proto> value,
                                const FieldPath& path, Violations& violations) {
  for (const auto& pair : table) {
    if (pair.proto == value) return pair.engine;
  }
  if (static_cast<int>(value) != 0) {
    const auto& type = *google::protobuf::GetEnumDescriptor<Proto>();
    violations.Add(
        path, absl::StrCat(static_cast<int>(value), " is no ", type.name(), "; legal are ", LegalEnumNames(type), "."),
        "UNKNOWN_ENUM_VALUE");
  }
  return std::nullopt;
}

// The contract's value. Every engine value is in its table (a test says so).
template <typename Proto, typename Engine, size_t N>
Proto ToProto(const EnumPair<Proto, Engine> (&table)[N], std::common_type_t<Engine> value) {
  for (const auto& pair : table) {
    if (pair.engine == value) return pair.proto;
  }
  return static_cast<Proto>(0);
}

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_CONVERT_ENUMS_H_
