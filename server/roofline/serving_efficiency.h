// How far a serving runtime stays below the roofline, and what it does by default. Every value is data
// (server/catalog/data/profiles) with its source; the defaults here are the ideal machine.
#ifndef SLICEPLAN_SERVER_ROOFLINE_SERVING_EFFICIENCY_H_
#define SLICEPLAN_SERVER_ROOFLINE_SERVING_EFFICIENCY_H_

#include <string>

namespace sliceplan::roofline {

// Ratios are in (0, 1] unless said otherwise; times in seconds.
struct ServingEfficiency {
  std::string name;     // "vllm-gpu"
  std::string version;  // "2026-11"

  // Shares of HBM bandwidth that weights, weights of experts and the cache are read at.
  double weights_hbm_ratio = 1;
  double expert_hbm_ratio = 1;
  double kv_hbm_ratio = 1;

  // Share of the matrix unit's peak that large matmuls and prefill attention reach.
  double matmul_ratio = 1;
  double low_precision_ratio = 1;  // of the low-precision peak, on top
  double attention_ratio = 1;
  // Matmul time and weight loading join as (a^p + b^p)^(1/p): 1 adds them, infinity (0 here) takes the larger.
  double overlap_exponent = 0;

  // Collectives: share of link rate for large messages, and what each one takes at least.
  double collective_ratio = 1;
  double collective_seconds = 0;

  // Launch and host overheads, seconds.
  double seconds_per_step = 0;
  double seconds_per_layer = 0;
  double seconds_per_expert_layer = 0;  // on top
  double seconds_per_sequence = 0;      // resident, per step
  double seconds_per_prefill = 0;       // per prompt

  // Share of a prompt's prefill by which it delays the others' next token.
  double interference_ratio = 1;

  // What the runtime does where the request leaves it open.
  double prefill_chunk_tokens = 0;  // 0: whole prompts
  double hbm_utilization_ratio = 1;
  double max_batch_size = 0;       // sequences per data rank; 0: no limit of its own
  bool copies_kv_heads = false;    // tensor beyond the KV heads: copies, not a split of the batch
  bool keeps_windowed_kv = false;  // all layers paged alike
  bool quantizes_head = true;      // false: embedding and output head stay in 16 bits

  // Memory beside weights and cache, bytes per chip.
  double reserved_bytes = 0;
  double activation_copies = 1;  // of the widest layer's intermediates alive at once

  // 90% intervals as ratios to the expected time; 0: none.
  double decode_low_ratio = 0;
  double decode_high_ratio = 0;
  double prefill_low_ratio = 0;
  double prefill_high_ratio = 0;
};

}  // namespace sliceplan::roofline

#endif  // SLICEPLAN_SERVER_ROOFLINE_SERVING_EFFICIENCY_H_
