// MaxText: a config file over base.yml. Key names as in AI-Hypercomputer/maxtext src/maxtext/configs/base.yml,
// commit 000b810 (2026).
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/planner/render/maxtext_remat.h"
#include "server/planner/render/render_words.h"

namespace sliceplan::planner {
namespace {

using hardware::DataType;

constexpr RenderTarget kTarget = RenderTarget::kMaxText;

absl::string_view MaxTextType(DataType type) {
  switch (type) {
    case DataType::kFp32: return "float32";
    case DataType::kFp16: return "float16";
    case DataType::kBf16: return "bfloat16";
    default: return "";
  }
}

absl::Status AddFormats(const RenderInput& input, std::string& text) {
  const TrainingPrecision& precision = input.workload->precision;
  const DataType weights = precision.master_weights.value_or(precision.parameters);
  for (const DataType type : {weights, precision.gradients, precision.optimizer_state}) {
    if (MaxTextType(type).empty()) {
      return CannotExpress(
          kTarget, absl::StrCat("it keeps no weights, gradients or optimizer state in ", hardware::DataTypeName(type)));
    }
  }
  if (precision.compute == DataType::kFp4 || precision.compute == DataType::kInt4) {
    return CannotExpress(kTarget, absl::StrCat("it does not train in ", hardware::DataTypeName(precision.compute)));
  }
  const absl::string_view compute = MaxTextType(precision.compute);
  absl::StrAppend(&text, "dtype: ", compute.empty() ? "bfloat16" : compute, "\n");
  if (precision.compute == DataType::kInt8) absl::StrAppend(&text, "quantization: int8\n");
  if (precision.compute == DataType::kFp8) {
    // "fp8" is of GPU kernels; torus chips quantise through qwix.
    absl::StrAppend(&text,
                    IsTorus(input) ? "quantization: fp8_full\nuse_qwix_quantization: true\n" : "quantization: fp8\n");
  }
  absl::StrAppend(&text, "weight_dtype: ", MaxTextType(weights), "\ngrad_dtype: ", MaxTextType(precision.gradients),
                  "\nmu_dtype: ", MaxTextType(precision.optimizer_state), "\n");
  if (precision.optimizer_state != weights) {
    absl::StrAppend(&text, "# Not expressed: the second moment keeps the format of the weights.\n");
  }
  return absl::OkStatus();
}

absl::Status AddOptimizer(const RenderInput& input, std::string& text) {
  switch (input.workload->optimizer) {
    case Optimizer::kAdamw: absl::StrAppend(&text, "opt_type: adamw\n"); break;
    case Optimizer::kSgd: absl::StrAppend(&text, "opt_type: sgd\n"); break;
    case Optimizer::kMuon: absl::StrAppend(&text, "opt_type: muon\n"); break;
    case Optimizer::kAdafactor: return CannotExpress(kTarget, "it has no Adafactor");
    case Optimizer::kAdamw8Bit: return CannotExpress(kTarget, "it has no 8-bit AdamW");
  }
  if (input.workload->optimizer_offload) absl::StrAppend(&text, "optimizer_memory_host_offload: true\n");
  return absl::OkStatus();
}

void AddMesh(const RenderInput& input, const DeviceDegrees& degrees, std::string& text) {
  if (degrees.devices_per_chip > 1) {
    absl::StrAppend(&text, "# ", degrees.devices_per_chip, " devices a chip: ", LogicalAxisName(degrees.doubled),
                    " counts both.\n");
  }
  if (degrees.Degree(LogicalAxis::kExpert) > 1) {
    absl::StrAppend(&text, "# MaxText also shards dense weights over expert: less memory than planned.\n");
  }
  for (const LogicalAxis axis : kLogicalAxes) {
    absl::StrAppend(&text, "ici_", LogicalAxisName(axis), "_parallelism: ", degrees.ici[axis], "\n");
  }
  for (const LogicalAxis axis : kLogicalAxes) {
    absl::StrAppend(&text, "dcn_", LogicalAxisName(axis), "_parallelism: ", degrees.dcn[axis], "\n");
  }
  if (input.estimate->parallelism.data_zero_stage == ZeroStage::k1) {
    absl::StrAppend(&text, "shard_optimizer_over_data: true\n");
  }
}

absl::Status AddPipeline(const RenderInput& input, std::string& text) {
  const Parallelism& plan = input.estimate->parallelism;
  const int32_t stages = plan.Degree(LogicalAxis::kPipeline);
  if (stages <= 1) return absl::OkStatus();
  const StageSplit split = StagesOf(input);
  if (plan.schedule == PipelineSchedule::kZeroBubble) {
    return CannotExpress(kTarget, "its pipeline has no zero-bubble schedule");
  }
  if (split.IsUneven()) return CannotExpress(kTarget, "its pipeline stages are all of one size, the plan's are not");
  if (input.estimate->microbatch_count % stages != 0) {
    return CannotExpress(kTarget, absl::StrCat("the microbatches (", input.estimate->microbatch_count,
                                               ") must be a multiple of the pipeline stages (", stages, ")"));
  }
  if (plan.schedule == PipelineSchedule::kOneFOneB) {
    absl::StrAppend(&text, "# MaxText runs all forward microbatches first: it holds more activations than 1F1B.\n");
  }
  absl::StrAppend(&text, "num_layers_per_pipeline_stage: ", split.layers_per_chunk.front(),
                  "\nnum_pipeline_repeats: ", plan.virtual_stage_count,
                  "\nnum_pipeline_microbatches: ", input.estimate->microbatch_count, "\nscan_layers: false\n");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> RenderMaxText(const RenderInput& input) {
  const TrainingEstimate& estimate = *input.estimate;
  const TrainingWorkload& workload = *input.workload;
  if (estimate.idle_chip_count > 0) {
    return CannotExpress(kTarget, "it uses every device of the slices, and some chips stay idle");
  }
  if (estimate.parallelism.data_zero_stage >= ZeroStage::k2) {
    return CannotExpress(kTarget, "its data axis shards the optimizer at most (ZeRO 1); use fsdp for more");
  }
  const DeviceDegrees degrees = DegreesInDevices(input);
  const double devices = static_cast<double>(degrees.ici.Product() * degrees.dcn.Product());
  const double batch = static_cast<double>(workload.global_batch_size) / estimate.gradient_accumulation / devices;
  std::string text =
      absl::StrCat(PlanComment(input),
                   "# Replace the words that begin with YOUR_. Global batch = devices x per_device_batch_size x\n",
                   "# gradient_accumulation_steps.\nbase_config: base.yml\nrun_name: ", DnsLabel(input.model_name, 40),
                   "\nmodel_name: YOUR_MAXTEXT_MODEL_NAME\nmax_target_length: ", workload.sequence_length);
  // Below 1, a sequence spans devices: enough digits that the batch comes out whole.
  absl::StrAppendFormat(&text, "\nper_device_batch_size: %.17g\n", batch);
  absl::StrAppend(&text, "gradient_accumulation_steps: ", estimate.gradient_accumulation, "\n");
  if (workload.total_tokens.has_value() && estimate.tokens_per_step > 0) {
    absl::StrAppend(
        &text, "steps: ",
        static_cast<int64_t>(std::ceil(static_cast<double>(*workload.total_tokens) / estimate.tokens_per_step)), "\n");
  }
  AddMesh(input, degrees, text);
  absl::StrAppend(&text, MaxTextRemat(input));
  for (const absl::Status& status : {AddPipeline(input, text), AddFormats(input, text), AddOptimizer(input, text)}) {
    if (!status.ok()) return status;
  }
  const ModelFacts facts = FactsOf(*input.model);
  if (facts.has_experts) {
    absl::StrAppend(
        &text,
        facts.capacity_factor > 0
            ? absl::StrCat("megablox: false\nsparse_matmul: false\ncapacity_factor: ", facts.capacity_factor, "\n")
            : "megablox: true\nsparse_matmul: true\n");
  }
  const bool flash = workload.attention_kernel != AttentionKernel::kMaterialized;
  absl::StrAppend(&text, "attention: ", flash ? "flash" : "dot_product", "\n");
  if (workload.attention_kernel == AttentionKernel::kFlashFusedBackward) {
    absl::StrAppend(&text, "sa_use_fused_bwd_kernel: true\n");
  }
  if (workload.logits_chunk_count > 1) {
    absl::StrAppend(&text, "num_vocab_tiling: ", workload.logits_chunk_count, "\n");
  }
  return text;
}

}  // namespace sliceplan::planner
