// How far a runtime stays below the roofline: the named constants of a calibration profile. Every value is data
// (server/catalog/data/profiles) with its source; the defaults here are the ideal machine.
#ifndef SLICEPLAN_SERVER_ROOFLINE_EFFICIENCY_H_
#define SLICEPLAN_SERVER_ROOFLINE_EFFICIENCY_H_

#include <string>

namespace sliceplan::roofline {

// Terms of the expected step time. Ratios are in (0, 1] unless said otherwise; times in seconds.
struct EfficiencyProfile {
  std::string name;     // "maxtext-tpu"
  std::string version;  // "2026-11"

  // Matmul time = FLOPs / peak x (matmul_inverse_ratio / sustained + matmul_hbm_sensitivity x (peak / HBM rate) / 1000)
  //             + matmul_operand_bytes_ratio x operand bytes / HBM rate.
  double matmul_inverse_ratio = 1;        // >= 1
  double matmul_hbm_sensitivity = 0;      // >= 0
  double matmul_operand_bytes_ratio = 0;  // 0 to 1: the part of operand traffic that does not hide
  double quantize_bytes_ratio = 0;        // extra passes over operands of low-precision matmuls
  double low_precision_ratio = 1;         // of the low-precision peak
  double default_sustained_ratio = 1;     // for chips without a measured share of peak

  // Softmax attention kernel: share of the (head-padded) peak, backward cost in forwards, block sizes in tokens.
  double attention_ratio = 1;
  bool attention_uses_sustained_rate = false;
  double attention_backward_forwards = 2.5;
  double attention_block_tokens = 0;         // added to a causal row's keys
  double attention_window_block_tokens = 0;  // added to a window
  double attention_materialized_bytes = 40;  // score traffic per query-key pair and head when not fused

  // Memory-bound work.
  double elementwise_hbm_ratio = 1;
  double elementwise_passes = 3;        // forward and backward
  double elementwise_remat_passes = 1;  // more with any recompute
  double logits_bytes_per_element = 20;
  double optimizer_hbm_ratio = 1;

  // Mixture of experts.
  double expert_inverse_ratio = 1;   // dropless grouped matmuls against dense ones
  double expert_permute_passes = 0;  // of routed activations through HBM per layer and step
  double expert_dispatch_ratio = 0;  // share of one-hot dispatch and combine einsums that shows (capacity factor)
  double expert_tile = 1;            // grouped matmul tiles pad rows and both weight dimensions to this

  // Collectives: share of link rate reached, and how much of each shows beside compute.
  double collective_ratio = 1;
  double gathered_weights_passes = 0;  // through HBM of every gathered weight, per microbatch
  double gathered_weights_hbm_ratio = 1;
  double fsdp_hideable_compute_ratio = 1;  // at most this share of compute can hide FSDP traffic
  double fsdp_hidden_cost_ratio = 0;       // part of the hidden traffic that shows all the same
  double tensor_exposed_ratio = 0;
  double context_exposed_ratio = 0;
  double expert_exposed_ratio = 0;
  double pipeline_exposed_ratio = 0;
  double data_exposed_ratio = 0;
  double dcn_exposed_ratio = 0;
  double dcn_jitter_ratio_per_doubling = 0;  // of compute, per doubling of the slice count

  // Host and launch.
  double launch_seconds_per_layer = 0;  // per layer and microbatch
  double host_seconds_per_layer = 0;    // floor: (device^4 + host^4)^(1/4)
  double host_seconds_per_expert_layer = 0;
  double accumulation_bytes_per_parameter = 0;  // gradient accumulation, per microbatch
  // true: the weight-gradient matmul reads and writes the accumulated gradient as one more operand; false: a pass over
  // memory of its own.
  bool fused_gradient_accumulation = false;

  // true: weights outside experts are sharded over the expert axis too; false: copied over it.
  bool expert_axis_shards_dense_weights = false;
  bool whole_layer_recompute = false;  // true: checkpointing re-runs the whole layer (PyTorch); false: per tensor (XLA)

  // 90% interval as ratios to the expected time; 0: none.
  double dense_low_ratio = 0;
  double dense_high_ratio = 0;
  double expert_low_ratio = 0;
  double expert_high_ratio = 0;

  // Memory: layers whose gathered weights are alive at once, logits, and what the runtime keeps, a share of HBM and a
  // fixed part.
  double gathered_layer_count = 1;
  double logits_memory_bytes_per_element = 4;  // logits and what the loss keeps beside them at its worst moment
  double reserved_hbm_ratio = 0;
  double reserved_hbm_bytes = 0;
};

}  // namespace sliceplan::roofline

#endif  // SLICEPLAN_SERVER_ROOFLINE_EFFICIENCY_H_
