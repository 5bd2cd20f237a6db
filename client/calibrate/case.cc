#include "client/calibrate/case.h"

namespace sliceplan::calibrate {

absl::string_view NameOf(Metric metric) {
  switch (metric) {
    case Metric::kStepSeconds: return "step_seconds";
    case Metric::kPeakMemoryBytes: return "peak_memory_bytes";
    case Metric::kAllocatedMemoryBytes: return "allocated_memory_bytes";
    case Metric::kPrefillSeconds: return "prefill_seconds";
    case Metric::kDecodeStepSeconds: return "decode_step_seconds";
    case Metric::kBatchLatencySeconds: return "batch_latency_seconds";
    case Metric::kTimeToFirstToken: return "ttft_seconds";
    case Metric::kTimePerOutputToken: return "tpot_seconds";
    case Metric::kOutputTokensPerSecond: return "output_tokens_per_second";
  }
  return "";
}

}  // namespace sliceplan::calibrate
