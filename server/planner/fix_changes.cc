#include "server/planner/fix_changes.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/planner/remat.h"
#include "server/planner/saved_activations.h"
#include "server/planner/words.h"

namespace sliceplan::planner {

int64_t DegreeOf(const Parallelism& parallelism, LogicalAxis axis) {
  return int64_t{parallelism.ici[axis]} * parallelism.dcn[axis];
}

void Say(Change& change, absl::string_view words) {
  absl::StrAppend(&change.fix.sentence, change.fix.sentence.empty() ? "" : " and ", words);
}

void Code(Change& change, absl::string_view code) {
  change.fix.code = change.fix.code.empty() ? std::string(code) : "SEVERAL_CHANGES";
}

void SetField(Change& change, absl::string_view field, std::string value) {
  change.fix.changes.push_back({std::string(field), std::move(value)});
}

bool UsePolicy(Change& change, RematPolicy policy) {
  TrainingWorkload& workload = change.job.workload;
  if (workload.remat_policy == policy && workload.checkpoints_per_layer == 0) return false;
  workload.remat_policy = policy;
  if (workload.checkpoints_per_layer > 0) {
    workload.checkpoints_per_layer = 0;
    SetField(change, "workload.checkpoints_per_layer", "null");
  }
  SetField(change, "workload.remat_policy", RematPolicyField(policy));
  Say(change, absl::StrCat("recompute policy ", RematPolicyName(policy)));
  Code(change, "RECOMPUTE_MORE");
  return true;
}

bool Accumulate(Change& change, int64_t accumulation) {
  change.job.workload.gradient_accumulation = accumulation;
  SetField(change, "workload.gradient_accumulation", absl::StrCat(accumulation));
  Say(change, absl::StrCat("gradient accumulation over ", CountWords(accumulation), " steps"));
  Code(change, "ACCUMULATE_GRADIENTS");
  return true;
}

bool ChunkLogits(Change& change, int64_t chunks) {
  if (change.job.workload.logits_chunk_count >= chunks) return false;
  change.job.workload.logits_chunk_count = static_cast<int32_t>(chunks);
  SetField(change, "workload.logits_chunk_count", absl::StrCat(chunks));
  Say(change, absl::StrCat("the loss in ", CountWords(chunks), " chunks of tokens"));
  Code(change, "CHUNK_LOGITS");
  return true;
}

bool OffloadOptimizer(Change& change) {
  if (change.job.workload.optimizer_offload || !change.job.slice.accelerator.pcie_bytes_per_second) return false;
  change.job.workload.optimizer_offload = true;
  SetField(change, "workload.optimizer_offload", "true");
  Say(change, "optimizer state in host memory");
  Code(change, "OFFLOAD_OPTIMIZER");
  return true;
}

bool OffloadActivations(Change& change) {
  if (change.job.workload.activation_offload || !change.job.slice.accelerator.pcie_bytes_per_second) return false;
  change.job.workload.activation_offload = true;
  SetField(change, "workload.activation_offload", "true");
  Say(change, "saved activations in host memory");
  Code(change, "OFFLOAD_ACTIVATIONS");
  return true;
}

bool KeepOffHost(Change& change) {
  TrainingWorkload& workload = change.job.workload;
  if (!workload.optimizer_offload && !workload.activation_offload) return false;
  if (workload.optimizer_offload) SetField(change, "workload.optimizer_offload", "false");
  if (workload.activation_offload) SetField(change, "workload.activation_offload", "false");
  workload.optimizer_offload = workload.activation_offload = false;
  Say(change, "nothing offloaded to the host");
  Code(change, "NO_OFFLOAD");
  return true;
}

bool UseZeroStage(Change& change, ZeroStage stage) {
  Parallelism& parallelism = *change.job.parallelism;
  if (DegreeOf(parallelism, LogicalAxis::kData) < 2 || parallelism.data_zero_stage >= stage) return false;
  parallelism.data_zero_stage = stage;
  const std::string number = absl::StrCat(static_cast<int>(stage));
  SetField(change, "parallelism.data_zero_stage", absl::StrCat("ZERO_STAGE_", number));
  Say(change, absl::StrCat("ZeRO stage ", number, " over data"));
  Code(change, "SHARD_OVER_DATA");
  return true;
}

bool ShardSequence(Change& change) {
  Parallelism& parallelism = *change.job.parallelism;
  if (DegreeOf(parallelism, LogicalAxis::kTensor) < 2 || parallelism.sequence_parallel) return false;
  parallelism.sequence_parallel = true;
  SetField(change, "parallelism.sequence_parallel", "true");
  Say(change, "sequence_parallel");
  Code(change, "SHARD_SEQUENCE");
  return true;
}

bool MoveDataToFsdp(Change& change) {
  Parallelism& parallelism = *change.job.parallelism;
  const int32_t data = parallelism.ici[LogicalAxis::kData];
  if (data < 2) return false;
  parallelism.ici[LogicalAxis::kData] = 1;
  parallelism.ici[LogicalAxis::kFsdp] *= data;
  parallelism.mapping.clear();
  SetField(change, "parallelism.ici.data", "1");
  SetField(change, "parallelism.ici.fsdp", absl::StrCat(parallelism.ici[LogicalAxis::kFsdp]));
  Say(change,
      absl::StrCat("fsdp ", CountWords(parallelism.ici[LogicalAxis::kFsdp]), " in place of data ", CountWords(data)));
  Code(change, "FSDP_FOR_DATA");
  return true;
}

bool NarrowOptimizerState(Change& change) {
  TrainingPrecision& precision = change.job.workload.precision;
  if (precision.optimizer_state != hardware::DataType::kFp32) return false;
  precision.optimizer_state = hardware::DataType::kBf16;
  SetField(change, "workload.precision.optimizer_state", "DATA_TYPE_BF16");
  Say(change, "optimizer state in bf16");
  Code(change, "NARROWER_OPTIMIZER_STATE");
  return true;
}

bool NarrowGradients(Change& change) {
  TrainingPrecision& precision = change.job.workload.precision;
  if (precision.gradients != hardware::DataType::kFp32) return false;
  precision.gradients = hardware::DataType::kBf16;
  SetField(change, "workload.precision.gradients", "DATA_TYPE_BF16");
  Say(change, "gradients in bf16");
  Code(change, "NARROWER_GRADIENTS");
  return true;
}

}  // namespace sliceplan::planner
