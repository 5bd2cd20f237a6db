// Megatron-LM: a torchrun command. Flag names as in NVIDIA/Megatron-LM megatron/training/arguments.py, commit 000c4ac
// (core 0.15, 2025).
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/planner/render/megatron_flags.h"
#include "server/planner/render/render_words.h"

namespace sliceplan::planner {
namespace {

constexpr RenderTarget kTarget = RenderTarget::kMegatron;

bool IsSharded(const Parallelism& plan) {
  return plan.Degree(LogicalAxis::kFsdp) > 1 || plan.data_zero_stage >= ZeroStage::k2;
}

absl::Status AddPipeline(const RenderInput& input, MegatronFlags& flags) {
  const Parallelism& plan = input.estimate->parallelism;
  const int32_t stages = plan.Degree(LogicalAxis::kPipeline);
  if (stages <= 1) return absl::OkStatus();
  if (plan.schedule == PipelineSchedule::kZeroBubble) return CannotExpress(kTarget, "it has no zero-bubble schedule");
  if (plan.schedule == PipelineSchedule::kGpipe) {
    return CannotExpress(kTarget, "its pipeline schedules are 1F1B and interleaved 1F1B, not GPipe");
  }
  flags.Add("--pipeline-model-parallel-size", stages);
  const StageSplit split = StagesOf(input);
  if (!split.IsUneven()) {
    if (plan.virtual_stage_count > 1) flags.Add("--num-virtual-stages-per-pipeline-rank", plan.virtual_stage_count);
    return absl::OkStatus();
  }
  // E embedding, t layer, m multi-token prediction, L loss; chunks in the order that they run.
  std::string layout = "E";
  for (size_t chunk = 0; chunk < split.layers_per_chunk.size(); ++chunk) {
    if (chunk > 0) layout += "|";
    absl::StrAppend(&layout, "t*", split.layers_per_chunk[chunk]);
  }
  if (input.model->mtp_layer_count > 0) absl::StrAppend(&layout, "m*", input.model->mtp_layer_count);
  flags.Add("--pipeline-model-parallel-layout", absl::StrCat("'", layout, "L'"));
  return absl::OkStatus();
}

absl::Status AddDataParallelism(const RenderInput& input, MegatronFlags& flags) {
  const Parallelism& plan = input.estimate->parallelism;
  const int32_t data = plan.Degree(LogicalAxis::kData);
  const int32_t replicas = data * plan.Degree(LogicalAxis::kFsdp) * plan.Degree(LogicalAxis::kExpert);
  if (IsSharded(plan)) {
    const bool hybrid = plan.Degree(LogicalAxis::kFsdp) > 1 && data > 1 && plan.data_zero_stage != ZeroStage::k3;
    if (hybrid && plan.data_zero_stage != ZeroStage::k0) {
      return CannotExpress(kTarget, "with FSDP, its data replicas shard everything or nothing");
    }
    flags.Add("--use-megatron-fsdp");
    flags.Add("--use-distributed-optimizer");
    flags.Add("--no-gradient-accumulation-fusion");
    flags.Add("--data-parallel-sharding-strategy",
              plan.Degree(LogicalAxis::kFsdp) > 1 || plan.data_zero_stage == ZeroStage::k3 ? "optim_grads_params"
                                                                                           : "optim_grads");
    if (hybrid) flags.Add("--num-distributed-optimizer-instances", data);
    flags.Add("--ckpt-format", "fsdp_dtensor");
  } else if (plan.data_zero_stage == ZeroStage::k1) {
    flags.Add("--use-distributed-optimizer");
  }
  if (replicas > 1) {
    flags.Add("--overlap-grad-reduce");
    if (IsSharded(plan) || plan.data_zero_stage == ZeroStage::k1) flags.Add("--overlap-param-gather");
  }
  return absl::OkStatus();
}

void AddModelParallelism(const RenderInput& input, const ModelFacts& facts, MegatronFlags& flags) {
  const Parallelism& plan = input.estimate->parallelism;
  const int32_t tensor = plan.Degree(LogicalAxis::kTensor);
  flags.Add("--tensor-model-parallel-size", tensor);
  if (tensor > 1 && plan.sequence_parallel) flags.Add("--sequence-parallel");
  if (const int32_t context = plan.Degree(LogicalAxis::kContext); context > 1) {
    flags.Add("--context-parallel-size", context);
    // The planner gathers keys and values.
    flags.Add("--cp-comm-type", "all_gather");
  }
  if (!facts.has_experts) return;
  flags.Add("--expert-model-parallel-size", plan.Degree(LogicalAxis::kExpert));
  flags.Add("--expert-tensor-parallel-size", tensor);
  flags.Add("--moe-token-dispatcher-type", "alltoall");
  if (facts.capacity_factor > 0) {
    flags.Add("--moe-expert-capacity-factor", absl::StrCat(facts.capacity_factor));
  } else {
    flags.Add("--moe-grouped-gemm");
  }
}

// Megatron numbers ranks tensor, context, expert, data, pipeline, innermost first.
std::string RankOrder(const RenderInput& input, MegatronFlags& flags) {
  const int32_t pipeline = Stride(input, LogicalAxis::kPipeline);
  int32_t data = 0;
  int32_t innermost_other = 0;
  for (const LogicalAxis axis : kLogicalAxes) {
    const int32_t stride = Stride(input, axis);
    if (stride == 0) continue;
    if (axis == LogicalAxis::kData || axis == LogicalAxis::kFsdp || axis == LogicalAxis::kExpert) {
      data = std::max(data, stride);
    }
    if (axis != LogicalAxis::kTensor)
      innermost_other = innermost_other == 0 ? stride : std::min(innermost_other, stride);
  }
  if (pipeline > 0 && data > pipeline) flags.Add("--use-tp-pp-dp-mapping");
  const int32_t tensor = Stride(input, LogicalAxis::kTensor);
  if (tensor > 0 && innermost_other > 0 && tensor > innermost_other) {
    return "# Not expressed: the plan has another axis inside tensor; Megatron has tensor innermost.\n";
  }
  return "";
}

}  // namespace

absl::StatusOr<std::string> RenderMegatron(const RenderInput& input) {
  const TrainingEstimate& estimate = *input.estimate;
  const TrainingWorkload& workload = *input.workload;
  if (IsTorus(input)) return CannotExpress(kTarget, "it runs on GPUs, and the slice is a torus");
  if (estimate.idle_chip_count > 0) {
    return CannotExpress(kTarget, "its ranks fill the machines, and some chips stay idle");
  }
  const int32_t ranks_per_node = ChipsPerHost(input);
  if (ranks_per_node <= 0) return CannotExpress(kTarget, "the GPUs of one machine are not known");
  const int64_t nodes = HostCount(input) * input.slice->slice_count;

  const ModelFacts facts = FactsOf(*input.model);
  MegatronFlags flags;
  AddModelParallelism(input, facts, flags);
  for (const absl::Status& status : {AddPipeline(input, flags), AddDataParallelism(input, flags)}) {
    if (!status.ok()) return status;
  }
  std::string notes = RankOrder(input, flags);
  const bool distributed = IsSharded(estimate.parallelism) || estimate.parallelism.data_zero_stage == ZeroStage::k1;
  flags.Add("--micro-batch-size", estimate.microbatch_size);
  flags.Add("--global-batch-size", workload.global_batch_size);
  flags.Add("--seq-length", workload.sequence_length);
  flags.Add("--max-position-embeddings", workload.sequence_length);
  if (workload.total_tokens.has_value()) {
    flags.Add("--train-samples", *workload.total_tokens / workload.sequence_length);
  }
  for (const absl::Status& status : {AddRecompute(input, facts, flags), AddFormats(workload, flags, notes),
                                     AddOptimizer(workload, distributed, flags)}) {
    if (!status.ok()) return status;
  }
  if (workload.attention_kernel == AttentionKernel::kMaterialized) flags.Add("--attention-backend", "unfused");
  if (workload.logits_chunk_count > 1) absl::StrAppend(&notes, "# Not expressed: logits in chunks.\n");
  if (IsSharded(estimate.parallelism) && estimate.parallelism.Degree(LogicalAxis::kExpert) > 1) {
    absl::StrAppend(&notes, "# Megatron shards dense weights over expert as well: less memory than planned.\n");
  }

  const bool needs_order = !IsSharded(estimate.parallelism) && (estimate.parallelism.Degree(LogicalAxis::kTensor) > 1 ||
                                                                estimate.parallelism.Degree(LogicalAxis::kContext) > 1);
  return absl::StrCat(
      PlanComment(input), notes,
      "# MODEL_ARGS: an array with the flags of the model, its data and its tokenizer. NODE_RANK and MASTER_ADDR: as "
      "the\n"
      "# launcher sets them.\n",
      needs_order ? "export CUDA_DEVICE_MAX_CONNECTIONS=1\n" : "", "torchrun --nnodes ", std::max<int64_t>(1, nodes),
      " --nproc-per-node ", std::min<int64_t>(ranks_per_node, input.slice->chip_count),
      " --node-rank \"${NODE_RANK:-0}\" \\\n  --master-addr \"${MASTER_ADDR:-localhost}\" --master-port 29500 "
      "pretrain_gpt.py \\\n",
      flags.Text(), "  \"${MODEL_ARGS[@]}\"\n");
}

}  // namespace sliceplan::planner
