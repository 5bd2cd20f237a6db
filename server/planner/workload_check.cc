#include "server/planner/workload_check.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/planner/legality.h"
#include "server/planner/words.h"

namespace sliceplan::planner {
namespace {

using hardware::DataType;
using hardware::Violation;

constexpr int64_t kMaxSequenceLength = int64_t{1} << 30;
constexpr int64_t kMaxBatch = int64_t{1} << 40;
constexpr int64_t kMaxTokens = int64_t{1} << 53;  // counted exactly by a double
constexpr int64_t kMaxLogitsChunks = int64_t{1} << 20;
constexpr int64_t kMaxCheckpointsPerLayer = 1024;
// One failure a second on each chip is already no machine, and keeps every rate finite.
constexpr double kMinSecondsBetweenFailures = 1;
constexpr double kMaxSecondsBetweenFailures = 1e12;
constexpr double kMaxCheckpointSeconds = 1e6;
constexpr double kMaxRestartSeconds = 1e6;
constexpr double kMaxPreemptionsPerHour = 1e4;
constexpr double kMaxUsdPerChipHour = 1e6;
constexpr double kMaxDeadlineSeconds = 1e12;
constexpr double kMaxBudgetUsd = 1e15;
// What is divided by these stays finite.
constexpr double kLeastPositive = 1e-6;
// Operands of fp32 as a faster unit takes them: one pass of bf16 (JAX's default) or tf32.
constexpr double kTrueFp32Ratio = 1.0 / 3;

class Checker {
 public:
  explicit Checker(std::vector<Violation>& violations) : violations_(violations) {}

  bool Range(absl::string_view field, int64_t value, int64_t low, int64_t high) {
    if (value >= low && value <= high) return true;
    Add(field, "OUT_OF_RANGE",
        absl::StrCat("must be ", CountWords(low), " to ", CountWords(high), "; got ", CountWords(value)));
    return false;
  }
  // NaN is out of every range.
  void Range(absl::string_view field, double value, double low, double high) {
    if (value >= low && value <= high) return;
    Add(field, "OUT_OF_RANGE",
        absl::StrCat("must be ", NumberWords(low), " to ", NumberWords(high), "; got ", Got(value)));
  }
  void PositiveUpTo(absl::string_view field, double value, double high) { Range(field, value, kLeastPositive, high); }
  void Add(absl::string_view field, absl::string_view reason, std::string description) {
    violations_.push_back({std::string(field), std::move(description), std::string(reason), Violation::Kind::kInvalid});
  }

 private:
  static std::string Got(double value) { return std::isnan(value) ? std::string("not a number") : absl::StrCat(value); }
  std::vector<Violation>& violations_;
};

bool IsFloatingPoint(DataType type) { return type != DataType::kInt8 && type != DataType::kInt4; }

void CheckPrecision(const TrainingPrecision& precision, Checker& checker) {
  const auto floating = [&](absl::string_view field, DataType type) {
    if (IsFloatingPoint(type)) return;
    checker.Add(
        field, "FORMAT_NOT_TRAINABLE",
        absl::StrCat(hardware::DataTypeName(type), " cannot hold training updates; use a floating-point format"));
  };
  floating("workload.precision.parameters", precision.parameters);
  floating("workload.precision.gradients", precision.gradients);
  if (precision.master_weights) floating("workload.precision.master_weights", *precision.master_weights);
}

bool Offloads(const CustomRemat& remat) {
  const TensorPlacement placements[] = {remat.query,       remat.key_value, remat.context,    remat.out_projection,
                                        remat.mlp_up_gate, remat.mlp_down,  remat.layer_input};
  return std::find(std::begin(placements), std::end(placements), TensorPlacement::kOffloaded) != std::end(placements);
}

// Time over PCIe is part of the answer, so its rate must be known.
void CheckOffload(const TrainingJob& job, Checker& checker) {
  if (job.slice.accelerator.pcie_bytes_per_second.value_or(0) > 0) return;
  const TrainingWorkload& workload = job.workload;
  const absl::string_view spec = job.slice.accelerator_id.empty() ? "slice.custom" : "slice.override";
  const auto refuse = [&](bool offloads, absl::string_view field) {
    if (!offloads) return;
    checker.Add(
        field, "ACCELERATOR_FIGURE_UNKNOWN",
        absl::StrCat("host offload needs pcie_bytes_per_second, which is not public for this chip; set it in ", spec));
  };
  refuse(workload.optimizer_offload, "workload.optimizer_offload");
  refuse(workload.activation_offload, "workload.activation_offload");
  const bool custom = workload.remat_policy == RematPolicy::kCustom;
  refuse(custom && Offloads(workload.custom_remat), "workload.custom_remat");
}

// A unit that multiplies fp32 operands about as fast as bf16 ones rounds them first.
void WarnOfFp32(const TrainingJob& job, std::vector<std::string>& warnings) {
  const hardware::AcceleratorSpec& chip = job.slice.accelerator;
  if (job.workload.precision.compute != DataType::kFp32 || !chip.fp32_flops_per_second || !chip.bf16_flops_per_second) {
    return;
  }
  if (*chip.fp32_flops_per_second < kTrueFp32Ratio * *chip.bf16_flops_per_second) return;
  warnings.push_back(absl::StrCat(
      "Matmuls of fp32 operands are planned at ", NumberWords(*chip.fp32_flops_per_second / 1e12),
      " TFLOP/s, which this chip reaches by rounding them first: one bf16 pass in JAX's default precision, tf32 on "
      "GPUs. Products of full fp32 precision take 3 to 6 such passes."));
}

void CheckRun(const TrainingJob& job, Checker& checker) {
  const bool has_length = job.workload.total_tokens.has_value();
  const auto needs_length = [&](absl::string_view field) {
    if (!has_length) {
      checker.Add(field, "TOTAL_TOKENS_REQUIRED", "needs the length of the training: workload.total_tokens");
    }
  };
  if (job.assumed_mfu_ratio) checker.PositiveUpTo("assumed_mfu_ratio", *job.assumed_mfu_ratio, 1);
  if (job.usd_per_chip_hour) {
    checker.Range("pricing.usd_per_chip_hour", *job.usd_per_chip_hour, 0.0, kMaxUsdPerChipHour);
  }
  if (job.deadline_seconds) {
    checker.PositiveUpTo("job_deadline_seconds", *job.deadline_seconds, kMaxDeadlineSeconds);
    needs_length("job_deadline_seconds");
  }
  if (job.budget_usd) {
    checker.PositiveUpTo("budget_usd", *job.budget_usd, kMaxBudgetUsd);
    needs_length("budget_usd");
  }
  const Reliability& reliability = job.reliability;
  if (reliability.mean_seconds_between_failures_per_chip) {
    checker.Range("reliability.mean_seconds_between_failures_per_chip",
                  *reliability.mean_seconds_between_failures_per_chip, kMinSecondsBetweenFailures,
                  kMaxSecondsBetweenFailures);
  }
  checker.Range("reliability.checkpoint_write_seconds", reliability.checkpoint_write_seconds, 0.0,
                kMaxCheckpointSeconds);
  checker.Range("reliability.restart_seconds", reliability.restart_seconds, 0.0, kMaxRestartSeconds);
  checker.Range("reliability.preemptions_per_hour", reliability.preemptions_per_hour, 0.0, kMaxPreemptionsPerHour);
}

}  // namespace

void CheckWorkload(const TrainingJob& job, std::vector<Violation>& violations, std::vector<std::string>& warnings,
                   int64_t max_position_count) {
  const TrainingWorkload& workload = job.workload;
  Checker checker(violations);
  const int64_t sequence = workload.sequence_length;
  const int64_t batch = workload.global_batch_size;
  const bool sequence_in_range = checker.Range("workload.sequence_length", sequence, 1, kMaxSequenceLength);
  const bool batch_in_range = checker.Range("workload.global_batch_size", batch, 1, kMaxBatch);
  const bool sized = sequence_in_range && batch_in_range;
  if (sized && batch > kMaxTokens / sequence) {
    checker.Add("workload.global_batch_size", "OUT_OF_RANGE",
                absl::StrCat("a step of ", CountWords(batch), " sequences of ", CountWords(sequence),
                             " tokens has more than ", CountWords(kMaxTokens), " tokens"));
  }
  if (workload.total_tokens && checker.Range("workload.total_tokens", *workload.total_tokens, 1, kMaxTokens) && sized &&
      *workload.total_tokens / batch < sequence) {
    warnings.push_back(absl::StrCat("total_tokens ", CountWords(*workload.total_tokens), " is less than one step."));
  }
  if (sequence_in_range && max_position_count > 0 && sequence > max_position_count) {
    warnings.push_back(absl::StrCat("A sequence of ", CountWords(sequence), " tokens is longer than the ",
                                    CountWords(max_position_count), " that the model's configuration allows."));
  }
  if (workload.gradient_accumulation) {
    checker.Range("workload.gradient_accumulation", *workload.gradient_accumulation, 1, kMaxAccumulation);
  }
  checker.Range("workload.logits_chunk_count", int64_t{workload.logits_chunk_count}, 1, kMaxLogitsChunks);
  if (checker.Range("workload.checkpoints_per_layer", int64_t{workload.checkpoints_per_layer}, 0,
                    kMaxCheckpointsPerLayer) &&
      workload.checkpoints_per_layer > 0 && workload.remat_policy) {
    checker.Add("workload.checkpoints_per_layer", "CONFLICT", "replaces a remat_policy; give one of them");
  }
  CheckPrecision(workload.precision, checker);
  CheckOffload(job, checker);
  WarnOfFp32(job, warnings);
  CheckRun(job, checker);
}

}  // namespace sliceplan::planner
