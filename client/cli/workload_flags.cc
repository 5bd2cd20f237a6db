#include "client/cli/workload_flags.h"

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "client/cli/choices.h"
#include "client/cli/quantity.h"
#include "client/cli/text.h"

namespace sliceplan::cli {
namespace {

struct ShortPrecision {
  absl::string_view typed;
  absl::string_view field;
};
constexpr ShortPrecision kShortPrecisions[] = {
    {"reduction", "gradient_reduction"}, {"optimizer", "optimizer_state"}, {"master", "master_weights"}};

std::string PrecisionField(absl::string_view typed) {
  for (const ShortPrecision& known : kShortPrecisions) {
    if (known.typed == typed) return std::string(known.field);
  }
  return absl::StrReplaceAll(typed, {{"-", "_"}});
}

// "fp8", or "compute=fp8,gradients=bf16".
absl::Status ReadPrecision(const std::string& text, v1::TrainingPrecision* precision) {
  if (text.find('=') == std::string::npos) return SetField(precision, "compute", text);
  const absl::StatusOr<std::vector<Assignment>> assignments = ParseAssignments(text);
  if (!assignments.ok()) return assignments.status();
  for (const auto& [name, value] : *assignments) {
    const std::string field = PrecisionField(name);
    if (FindField(*precision->GetDescriptor(), field) == nullptr) {
      std::vector<std::string> names;
      for (int i = 0; i < precision->GetDescriptor()->field_count(); ++i) {
        names.push_back(precision->GetDescriptor()->field(i)->name());
      }
      return absl::InvalidArgumentError(absl::StrCat("'", name, "' has no format", Suggestion(name, names)));
    }
    if (absl::Status status = SetField(precision, field, value); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status ReadTensors(const std::string& text, google::protobuf::RepeatedField<int>* tensors) {
  for (const absl::string_view name : absl::StrSplit(text, ',')) {
    const absl::StatusOr<int> tensor = ParseChoice(*v1::LayerTensor_descriptor(), name);
    if (!tensor.ok()) return tensor.status();
    tensors->Add(*tensor);
  }
  return absl::OkStatus();
}

}  // namespace

void AddJobFlags(Flags& flags, const std::string& name, const WorkloadOf& workload) {
  const auto field = [&name](absl::string_view part) { return absl::StrCat(name, ".", part); };
  // Before --batch-tokens, which looks at it.
  flags.Field("--sequence", field("sequence_length"), "tokens of a sequence; default 8192, or the model's limit");
  flags.Custom("--batch-tokens", field("global_batch_tokens"), "TOKENS",
               "tokens of an optimizer step, all chips together; 4M and 4Mi are both 4 x 2^20; default 4Mi",
               [&flags, workload](const std::string& text) {
                 const auto batch = ParseBatchTokens(text, workload()->sequence_length());
                 if (!batch.ok()) return batch.status();
                 workload()->set_global_batch_tokens(batch->tokens);
                 if (!batch->note.empty()) flags.AddNote(absl::StrCat("--batch-tokens ", batch->note, "."));
                 return absl::OkStatus();
               });
  flags.Field("--batch", field("global_batch_size"), "sequences of an optimizer step, instead of --batch-tokens");
  flags.Field("--tokens", field("total_tokens"), "tokens of the whole training: 15T is 15e12");
  flags.Field("--steps", field("step_count"), "optimizer steps of the whole training, instead of --tokens");
}

void AddArithmeticFlags(Flags& flags, const std::string& name, const WorkloadOf& workload) {
  const auto field = [&name](absl::string_view part) { return absl::StrCat(name, ".", part); };
  flags.Group("Memory and arithmetic");
  flags.Field("--remat", field("remat_policy"), "what the backward pass recomputes; default: the cheapest that fits");
  flags.Field("--checkpoints-per-layer", field("checkpoints_per_layer"), "saved tensors per layer, instead of --remat");
  flags.Custom(
      "--save", field("custom_remat.saved"), "NAME,...",
      absl::StrCat("tensors that are saved, all others recomputed: ", AllChoices(*v1::LayerTensor_descriptor())),
      [workload](const std::string& text) {
        workload()->set_remat_policy(v1::REMAT_POLICY_CUSTOM);
        return ReadTensors(text, workload()->mutable_custom_remat()->mutable_saved());
      });
  flags.Custom("--offload", field("custom_remat.offloaded"), "NAME,...", "tensors that are saved in host memory",
               [workload](const std::string& text) {
                 workload()->set_remat_policy(v1::REMAT_POLICY_CUSTOM);
                 return ReadTensors(text, workload()->mutable_custom_remat()->mutable_offloaded());
               });
  flags.Field("--optimizer", field("optimizer"), "optimizer; default adamw");
  flags.Field("--optimizer-offload", field("optimizer_offload"), "optimizer state in host memory");
  flags.Field("--activation-offload", field("activation_offload"), "saved activations in host memory");
  flags.Custom("--precision", field("precision"), "FORMATS",
               absl::StrCat("format of the matmuls, fp8, or several by name, compute=fp8,gradients=bf16: compute, ",
                            "parameters, gradients, reduction, optimizer, master; formats are ",
                            AllChoices(*v1::DataType_descriptor())),
               [workload](const std::string& text) { return ReadPrecision(text, workload()->mutable_precision()); });
  flags.Pairs("--precision", field("precision"), "");
  flags.Field("--attention", field("attention_kernel"), "attention kernel; default flash");
  flags.Field("--mask", field("attention_mask"), "which keys a query sees; default causal");
  flags.Field("--no-causal-skipping", field("causal_skipping"), "the kernel computes what the mask empties");
  flags.Field("--logits-chunks", field("logits_chunk_count"), "parts in which the logits are computed; default 1");
  flags.Field("--capacity-factor", field("expert_capacity_factor"), "of experts; default: the model's");
  flags.Field("--load-imbalance", field("expert_load_imbalance_ratio"), "of experts; default: the model's");
}

void AddReliabilityFlags(Flags& flags) {
  flags.Group("Failures");
  flags.Field("--mtbf", "reliability.mean_seconds_between_failures_per_chip",
              "mean time between failures of one chip: 50000h; default: never");
  flags.Field("--preemptions-per-hour", "reliability.preemptions_per_hour", "of the whole job; default 0");
  flags.Field("--checkpoint-write", "reliability.checkpoint_write_seconds", "pause for a checkpoint; default 60s");
  flags.Field("--restart", "reliability.restart_seconds", "from a failure to the first new step; default 10min");
  flags.Field("--checkpoint-interval", "reliability.checkpoint_interval_seconds", "default: the best one");
}

}  // namespace sliceplan::cli
