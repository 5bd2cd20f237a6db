#include "server/planner/budget.h"

#include <cmath>

namespace sliceplan::planner {

double ForwardFlops(double active_parameter_count, double tokens) {
  return kForwardFlopsPerParameter * active_parameter_count * tokens;
}

double TrainingFlops(double active_parameter_count, double tokens) {
  return kTrainingFlopsPerParameter * active_parameter_count * tokens;
}

double FullRecomputeFlops(double active_parameter_count, double tokens) {
  return kFullRecomputeFlopsPerParameter * active_parameter_count * tokens;
}

double SecondsAtMfu(double flops, double chip_count, double flops_per_second, double mfu_ratio) {
  return flops / (chip_count * flops_per_second * mfu_ratio);
}

double ChipHoursAtMfu(double flops, double flops_per_second, double mfu_ratio) {
  return SecondsAtMfu(flops, /*chip_count=*/1, flops_per_second, mfu_ratio) / kSecondsPerHour;
}

double MfuRatio(double flops, double seconds, double chip_count, double flops_per_second) {
  return flops / (seconds * chip_count * flops_per_second);
}

double FlopsPerUsd(double flops_per_second, double usd_per_chip_hour) {
  return flops_per_second * kSecondsPerHour / usd_per_chip_hour;
}

double CostUsd(double chip_hours, double usd_per_chip_hour) { return chip_hours * usd_per_chip_hour; }

BatchShare BatchShareOf(double sequences, double tokens_per_sequence, double chip_count) {
  const double tokens = sequences * tokens_per_sequence;
  return {tokens, tokens / chip_count};
}

double SavedActivationBytes(double tokens, double layer_count, double saved_elements_per_token,
                            double bytes_per_element) {
  return tokens * layer_count * saved_elements_per_token * bytes_per_element;
}

double ChipsOfMemory(double bytes, double chip_bytes) { return bytes / chip_bytes; }

double MinimumChips(double bytes, double chip_bytes) { return std::ceil(ChipsOfMemory(bytes, chip_bytes)); }

std::optional<int64_t> SmallestSliceFor(double bytes, double chip_bytes, absl::Span<const int64_t> slice_sizes) {
  for (const int64_t chips : slice_sizes) {
    if (static_cast<double>(chips) * chip_bytes >= bytes) return chips;
  }
  return std::nullopt;
}

double MaximumParametersPerChip(double chip_bytes, double bytes_per_parameter) {
  return chip_bytes / bytes_per_parameter;
}

SliceTotals TotalsOf(const hardware::Slice& slice) {
  const double chips = static_cast<double>(slice.chip_count);
  const hardware::AcceleratorSpec& accelerator = slice.accelerator;
  SliceTotals totals;
  if (accelerator.bf16_flops_per_second) totals.flops_per_second = chips * *accelerator.bf16_flops_per_second;
  if (accelerator.hbm_bytes) totals.hbm_bytes = chips * static_cast<double>(*accelerator.hbm_bytes);
  if (accelerator.hbm_bytes_per_second) totals.hbm_bytes_per_second = chips * *accelerator.hbm_bytes_per_second;
  if (accelerator.tensorcore_count) totals.tensorcore_count = slice.chip_count * *accelerator.tensorcore_count;
  if (slice.chips_per_host > 0) {
    totals.host_count = (slice.chip_count + slice.chips_per_host - 1) / slice.chips_per_host;
  }
  return totals;
}

}  // namespace sliceplan::planner
