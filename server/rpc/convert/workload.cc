#include "server/rpc/convert/workload.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "server/planner/words.h"
#include "server/rpc/convert/enums.h"
#include "server/rpc/convert/ranges.h"
#include "server/rpc/convert/remat.h"

namespace sliceplan::rpc {
namespace {

using hardware::DataType;
using planner::CountWords;

constexpr int32_t kDefaultSequenceLength = 8192;
constexpr int64_t kDefaultBatchTokens = int64_t{4} << 20;

void SetSequenceAndBatch(const v1::TrainingWorkload& proto, const WorkloadSetting& setting, const FieldPath& path,
                         Violations& violations, Assumptions& assumptions, planner::TrainingWorkload& workload) {
  if (proto.has_sequence_length()) {
    workload.sequence_length = proto.sequence_length();
  } else {
    workload.sequence_length = DefaultSequenceLength(setting.max_position_count);
    assumptions.Add("workload.sequence_length", absl::StrCat(workload.sequence_length),
                    absl::StrCat("Sequences of ", CountWords(workload.sequence_length), " tokens",
                                 workload.sequence_length < kDefaultSequenceLength ? ", the model's limit." : "."));
  }
  const int64_t sequence = std::max(workload.sequence_length, 1);
  switch (proto.batch_case()) {
    case v1::TrainingWorkload::kGlobalBatchSize: workload.global_batch_size = proto.global_batch_size(); break;
    case v1::TrainingWorkload::kGlobalBatchTokens: {
      const int64_t tokens = proto.global_batch_tokens();
      const FieldPath tokens_path(path, "global_batch_tokens");
      workload.global_batch_size = 0;
      if (!CheckRange(tokens, 1, kMaxExactInteger, tokens_path, violations)) break;
      workload.global_batch_size = tokens / sequence;
      if (tokens % sequence == 0) break;
      const int64_t below = tokens - tokens % sequence;
      violations.Add(
          tokens_path,
          absl::StrCat(CountWords(tokens), " tokens are no whole number of sequences of ", CountWords(sequence),
                       "; nearest are ", below > 0 ? absl::StrCat(CountWords(below), " and ") : "",
                       CountWords(below + sequence), "."),
          "BATCH_NOT_DIVISIBLE");
      break;
    }
    case v1::TrainingWorkload::BATCH_NOT_SET:
      workload.global_batch_size = std::max<int64_t>(kDefaultBatchTokens / sequence, 1);
      assumptions.Add("workload.global_batch_tokens", absl::StrCat(workload.global_batch_size * sequence),
                      absl::StrCat(CountWords(workload.global_batch_size * sequence),
                                   " tokens a step: ", CountWords(workload.global_batch_size), " sequences."));
      break;
  }
}

void SetDuration(const v1::TrainingWorkload& proto, const FieldPath& path, Violations& violations,
                 planner::TrainingWorkload& workload) {
  if (proto.has_total_tokens()) {
    workload.total_tokens = proto.total_tokens();
  } else if (proto.has_step_count()) {
    const FieldPath steps_path(path, "step_count");
    if (!CheckRange(proto.step_count(), 1, kMaxExactInteger, steps_path, violations)) return;
    // In doubles, because sizes that are not checked yet may be anything.
    const double tokens = static_cast<double>(proto.step_count()) * static_cast<double>(workload.global_batch_size) *
                          workload.sequence_length;
    if (tokens > static_cast<double>(kMaxExactInteger)) {
      violations.Add(steps_path, absl::StrCat("so many steps are more than ", CountWords(kMaxExactInteger), " tokens."),
                     "OUT_OF_RANGE");
    } else if (tokens > 0) {
      workload.total_tokens = proto.step_count() * workload.global_batch_size * workload.sequence_length;
    }
  }
}

// Formats: what is not given follows from what is.
void SetPrecision(const v1::TrainingPrecision& proto, const v1::TrainingWorkload& job, bool is_tpu,
                  const FieldPath& path, Violations& violations, Assumptions& assumptions,
                  planner::TrainingPrecision& precision) {
  const auto read = [&](v1::DataType value, absl::string_view name) {
    return FromProto(kDataTypes, value, FieldPath(path, name), violations);
  };
  precision.compute = read(proto.compute(), "compute").value_or(DataType::kBf16);
  precision.parameters = read(proto.parameters(), "parameters").value_or(is_tpu ? DataType::kFp32 : DataType::kBf16);
  const bool accumulates = job.gradient_accumulation() > 1;
  precision.gradients =
      read(proto.gradients(), "gradients")
          .value_or(precision.parameters == DataType::kFp32 || accumulates ? DataType::kFp32 : DataType::kBf16);
  // XLA reduces a weight gradient as its matmul leaves it, in 16 bits, and widens it afterwards.
  const DataType matmul_output = precision.compute == DataType::kFp32 ? DataType::kFp32 : DataType::kBf16;
  precision.gradient_reduction =
      read(proto.gradient_reduction(), "gradient_reduction").value_or(is_tpu ? matmul_output : precision.gradients);
  const bool open = proto.gradients() == v1::DATA_TYPE_UNSPECIFIED && !job.has_gradient_accumulation();
  if (open && precision.gradients != DataType::kFp32) precision.accumulated_gradients = DataType::kFp32;
  precision.optimizer_state = read(proto.optimizer_state(), "optimizer_state").value_or(DataType::kFp32);
  const DataType master = read(proto.master_weights(), "master_weights").value_or(DataType::kFp32);
  if (master != precision.parameters) precision.master_weights = master;
  if (proto.compute() == v1::DATA_TYPE_UNSPECIFIED || proto.parameters() == v1::DATA_TYPE_UNSPECIFIED) {
    assumptions.Add("workload.precision", "",
                    absl::StrCat("Formats: compute ", DataTypeName(precision.compute), ", parameters ",
                                 DataTypeName(precision.parameters), ", gradients ", DataTypeName(precision.gradients),
                                 ", optimizer state ", DataTypeName(precision.optimizer_state),
                                 precision.master_weights.has_value()
                                     ? absl::StrCat(", master copy ", DataTypeName(*precision.master_weights))
                                     : std::string(", no master copy"),
                                 is_tpu ? ": usual on TPUs." : ": usual on GPUs."));
  }
}

}  // namespace

int32_t DefaultSequenceLength(int64_t max_position_count) {
  return max_position_count > 0 && max_position_count < kDefaultSequenceLength
             ? static_cast<int32_t>(max_position_count)
             : kDefaultSequenceLength;
}

planner::TrainingWorkload ToWorkload(const v1::TrainingWorkload& proto, const WorkloadSetting& setting,
                                     const FieldPath& path, Violations& violations, Assumptions& assumptions) {
  planner::TrainingWorkload workload;
  SetSequenceAndBatch(proto, setting, path, violations, assumptions, workload);
  SetDuration(proto, path, violations, workload);
  SetPrecision(proto.precision(), proto, setting.is_tpu, FieldPath(path, "precision"), violations, assumptions,
               workload.precision);
  if (const auto optimizer = FromProto(kOptimizers, proto.optimizer(), FieldPath(path, "optimizer"), violations)) {
    workload.optimizer = *optimizer;
  } else {
    assumptions.Add("workload.optimizer", "OPTIMIZER_ADAMW", "AdamW: two moments per parameter.");
  }
  SetRemat(proto, path, violations, workload);
  if (proto.has_gradient_accumulation()) workload.gradient_accumulation = proto.gradient_accumulation();
  workload.optimizer_offload = proto.optimizer_offload();
  workload.activation_offload = proto.activation_offload();
  if (const auto kernel =
          FromProto(kAttentionKernels, proto.attention_kernel(), FieldPath(path, "attention_kernel"), violations)) {
    workload.attention_kernel = *kernel;
  }
  if (const auto mask =
          FromProto(kAttentionMasks, proto.attention_mask(), FieldPath(path, "attention_mask"), violations)) {
    workload.attention_mask = *mask;
  }
  if (proto.has_causal_skipping() && !proto.causal_skipping() &&
      workload.attention_mask == planner::AttentionMask::kCausal) {
    // A kernel that skips nothing does the work of a full mask.
    workload.attention_mask = planner::AttentionMask::kFull;
    assumptions.Add("workload.causal_skipping", "false",
                    "Attention is counted in full, model FLOPs included: the kernel skips nothing.");
  }
  if (proto.has_logits_chunk_count()) workload.logits_chunk_count = proto.logits_chunk_count();
  return workload;
}

void ToProto(const planner::TrainingWorkload& workload, v1::TrainingWorkload* proto) {
  proto->set_sequence_length(workload.sequence_length);
  proto->set_global_batch_size(workload.global_batch_size);
  if (workload.total_tokens.has_value()) proto->set_total_tokens(*workload.total_tokens);
  v1::TrainingPrecision* const precision = proto->mutable_precision();
  precision->set_compute(ToProto(kDataTypes, workload.precision.compute));
  precision->set_parameters(ToProto(kDataTypes, workload.precision.parameters));
  precision->set_gradients(ToProto(kDataTypes, workload.precision.gradients));
  precision->set_gradient_reduction(ToProto(kDataTypes, workload.precision.gradient_reduction));
  precision->set_optimizer_state(ToProto(kDataTypes, workload.optimizer == planner::Optimizer::kAdamw8Bit
                                                         ? DataType::kInt8
                                                         : workload.precision.optimizer_state));
  precision->set_master_weights(
      ToProto(kDataTypes, workload.precision.master_weights.value_or(workload.precision.parameters)));
  proto->set_optimizer(ToProto(kOptimizers, workload.optimizer));
  if (workload.remat_policy.has_value()) proto->set_remat_policy(ToProto(kRematPolicies, *workload.remat_policy));
  if (workload.remat_policy == planner::RematPolicy::kCustom) {
    ToProto(workload.custom_remat, proto->mutable_custom_remat());
  }
  if (workload.checkpoints_per_layer > 0) proto->set_checkpoints_per_layer(workload.checkpoints_per_layer);
  if (workload.gradient_accumulation.has_value()) proto->set_gradient_accumulation(*workload.gradient_accumulation);
  proto->set_optimizer_offload(workload.optimizer_offload);
  proto->set_activation_offload(workload.activation_offload);
  proto->set_attention_kernel(ToProto(kAttentionKernels, workload.attention_kernel));
  proto->set_attention_mask(ToProto(kAttentionMasks, workload.attention_mask));
  proto->set_logits_chunk_count(workload.logits_chunk_count);
}

}  // namespace sliceplan::rpc
