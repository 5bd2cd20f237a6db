// FLOPs, time, money and memory of a training run from a handful of numbers. "How To Scale Your Model", chapters 4
// to 6. The full estimate (estimate_training.h) replaces every rule of thumb here; these bound it, price
// `assumed_mfu_ratio` and say how many chips a model needs at least. All arguments positive unless said otherwise.
#ifndef SLICEPLAN_SERVER_PLANNER_BUDGET_H_
#define SLICEPLAN_SERVER_PLANNER_BUDGET_H_

#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "server/hardware/slice.h"

namespace sliceplan::planner {

inline constexpr double kSecondsPerHour = 3600;
inline constexpr double kSecondsPerDay = 24 * kSecondsPerHour;
inline constexpr double kSecondsPerYear = 365 * kSecondsPerDay;
inline constexpr double kTokensPerMillion = 1e6;  // of prices
inline constexpr double kJoulesPerKilowattHour = 3.6e6;

// FLOPs for each active parameter and token: a multiply and an add forward, twice that backward.
inline constexpr double kForwardFlopsPerParameter = 2;
inline constexpr double kTrainingFlopsPerParameter = 6;
// Every layer's forward pass repeated in the backward pass.
inline constexpr double kFullRecomputeFlopsPerParameter = 8;

double ForwardFlops(double active_parameter_count, double tokens);
double TrainingFlops(double active_parameter_count, double tokens);
double FullRecomputeFlops(double active_parameter_count, double tokens);

// flops / (chips x peak x mfu_ratio). `mfu_ratio` in (0, 1].
double SecondsAtMfu(double flops, double chip_count, double flops_per_second, double mfu_ratio);
double ChipHoursAtMfu(double flops, double flops_per_second, double mfu_ratio);
// Share of the peak that a run reached.
double MfuRatio(double flops, double seconds, double chip_count, double flops_per_second);
// What a dollar buys at peak.
double FlopsPerUsd(double flops_per_second, double usd_per_chip_hour);
double CostUsd(double chip_hours, double usd_per_chip_hour);

struct BatchShare {
  double global_tokens = 0;
  double tokens_per_chip = 0;
};
BatchShare BatchShareOf(double sequences, double tokens_per_sequence, double chip_count);

// Bytes of one parameter's weights and optimizer state. Book: bf16 weights, two fp32 moments of Adam.
struct StateBytes {
  double weights = 2;
  double optimizer = 8;
  double Total() const { return weights + optimizer; }
};

// `saved_elements_per_token` is summed over what one layer keeps: D for its input, n * D for n checkpoints, D + 2 * F
// for the outputs of a gated MLP's matmuls.
double SavedActivationBytes(double tokens, double layer_count, double saved_elements_per_token,
                            double bytes_per_element);

// Chips' worth of memory, everything sharded: bytes / memory of a chip; MinimumChips rounds up.
double ChipsOfMemory(double bytes, double chip_bytes);
double MinimumChips(double bytes, double chip_bytes);
// The smallest of `slice_sizes` (ascending) whose memory holds `bytes`; unset when none does.
std::optional<int64_t> SmallestSliceFor(double bytes, double chip_bytes, absl::Span<const int64_t> slice_sizes);
// Largest model whose state fits one chip: pure data parallelism.
double MaximumParametersPerChip(double chip_bytes, double bytes_per_parameter);

// Everything of one slice taken together; unset where a figure is not public.
struct SliceTotals {
  std::optional<double> flops_per_second;  // bf16
  std::optional<double> hbm_bytes;
  std::optional<double> hbm_bytes_per_second;
  std::optional<int64_t> tensorcore_count;
  std::optional<int64_t> host_count;  // from chips_per_host, rounded up
};
SliceTotals TotalsOf(const hardware::Slice& slice);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_BUDGET_H_
