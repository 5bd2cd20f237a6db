// How far a serving runtime stays below the roofline, and what it does by default. Every value is data
// (server/catalog/data/profiles) with its source; the defaults here are the ideal machine. The formulas that use them:
// docs/serving.md.
#ifndef SLICEPLAN_SERVER_ROOFLINE_SERVING_EFFICIENCY_H_
#define SLICEPLAN_SERVER_ROOFLINE_SERVING_EFFICIENCY_H_

#include <string>

namespace sliceplan::roofline {

// Ratios are in (0, 1] unless said otherwise; times in seconds.
struct ServingEfficiency {
  std::string name;     // "vllm-gpu"
  std::string version;  // "2026-11"

  // Shares of HBM bandwidth that weights, weights of experts and the cache are read at. Four-bit experts on a chip
  // without four-bit units are unpacked on the way: on top.
  double weights_hbm_ratio = 1;
  double expert_hbm_ratio = 1;
  double unpacked_expert_hbm_ratio = 1;
  double weight_only_hbm_ratio = 1;  // integer weights that are widened on the way: on top
  double kv_hbm_ratio = 1;

  // Shares of the peak that matmuls reach: of decode and of prompts, by the operands' bits on top.
  double decode_matmul_ratio = 1;
  double prefill_matmul_ratio = 1;
  double eight_bit_ratio = 1;
  double four_bit_ratio = 1;
  double unpacked_four_bit_ratio = 1;  // of the 16-bit peak
  double prefill_attention_ratio = 1;
  double decode_attention_ratio = 1;
  // Bytes of the kernels between the matmuls of a prompt, as a multiple of one pass over each tensor. 0 or more.
  double activation_passes = 0;

  // Shares of link rate that collectives reach: all-reduces in rings, in one shot (every chip reads all others: tensor
  // / 2 times the ring's bytes, no steps), all-to-alls of decode, and what leaves the scale-up domain.
  double ring_collective_ratio = 1;
  double one_shot_collective_ratio = 0;  // 0: no such kernel
  double exchange_collective_ratio = 1;
  double outer_collective_ratio = 1;
  // What each collective takes at least: a ring, any all-reduce per doubling of its group, on top when it leaves the
  // scale-up domain, an all-to-all.
  double ring_seconds = 0;
  double reduce_seconds_per_doubling = 0;
  double outer_reduce_seconds = 0;
  double exchange_seconds = 0;

  // Launches and host.
  double seconds_per_layer = 0;
  double latent_layer_ratio = 0;                    // more of it in layers with latent attention; 0 or more
  double four_bit_attention_seconds_per_layer = 0;  // quantising the inputs of four-bit projections
  double seconds_per_expert_layer = 0;              // on top
  double unpacked_expert_seconds_per_layer = 0;     // on top, four-bit experts without four-bit units
  double seconds_per_step = 0;
  double seconds_per_sequence = 0;     // resident on a data rank, per step
  double seconds_per_prompt = 0;       // in a step that also decodes
  double eager_seconds_per_layer = 0;  // launches of a prompt outside captured graphs, joined as squares

  // Routing is skewed: a batch meets as many experts as one of this share of its tokens at random.
  double expert_choice_ratio = 1;

  // Taking a request in and sending its first token out.
  double request_seconds = 0;
  // First tokens in a closed loop, in its place: fixed part, steps that a prompt waits for, its own prefill, share of
  // requests that start in a burst, and all of it for latent attention. Ratios above 1 are allowed.
  double first_token_seconds = 0;
  double first_token_steps = 0;
  double prefill_wait_ratio = 1;
  double burst_share = 0;
  double latent_prefill_ratio = 1;
  // Where all requests are alike: the share of the prompts of so many others that a first token waits for on top.
  double cohort_wait_ratio = 0;
  double cohort_requests = 0;
  // true: prompts are read in steps of their own, which pause decodes; each delays them by this share of its time,
  // which may be above 1.
  bool separate_prefill = false;
  double interference_ratio = 1;
  // true: waiting prompts are read before anybody writes on, so that users whose requests are all alike stay in step.
  bool prefill_first = false;

  // What the runtime does where the request leaves it open.
  double prefill_chunk_tokens = 0;  // 0: whole prompts
  double hbm_utilization_ratio = 1;
  bool utilization_of_free_hbm = false;  // of what weights leave, not of all
  bool copies_kv_heads = false;          // tensor beyond the KV heads: copies, not a split of the batch
  bool keeps_windowed_kv = false;        // all layers paged alike
  bool quantizes_head = true;            // false: embedding and output head stay in 16 bits
  // false: four-bit weights leave projections of latent attention in 16 bits.
  bool four_bit_latent_attention = true;
  double four_bit_scale_bytes = 0;  // beside each weight in four-bit floating point
  double int4_scale_bytes = 0;      // beside each four-bit integer
  double max_sequences = 0;         // that a data rank takes in at once; 0: what fits
  double cache_output_share = 1;    // of its output that a resident sequence holds on average when the pool is full

  // Memory beside weights, cache and activations, bytes per chip.
  double reserved_bytes = 0;
  double collective_buffer_bytes = 0;  // with tensor parallelism
  // What a pass keeps alive at its worst moment, 0 or more: in the widest layer what its projections write and so many
  // hidden states of a chunk of prompts; or, where tokens are sampled, so many hidden states of the chunk and fp32
  // logits of `max_sequences`, with log-probabilities of prompts so many of the whole chunk. Both with the scratch
  // space of kernels. 0 copies of hidden states: `reserved_bytes` covers all that.
  double activation_copies = 0;
  double sampling_activation_copies = 0;
  double logit_copies = 0;
  double prompt_logit_copies = 0;
  double kernel_workspace_bytes = 0;
  bool keeps_expert_workspace = false;  // buffers of expert layers stay while tokens are sampled
  bool keeps_absorbed_copy = false;     // 16-bit up projections of latent attention beside those as stored
  bool keeps_rotary_tables = false;     // sines and cosines of every position, 16 bits
  // The pool is sized before activations: they live in what `hbm_utilization_ratio` leaves.
  bool pool_before_activations = false;
  // Indices of cache entries: bytes per position of the longest context for each of so many requests.
  double index_rows = 0;
  double index_bytes_per_position = 0;

  // 90% intervals as ratios to the expected time; 0: none. Of a step and of the time per token, of models with experts
  // in their place, of a prefill alone, and of first tokens that wait for others.
  double decode_low_ratio = 0;
  double decode_high_ratio = 0;
  double expert_decode_low_ratio = 0;  // 0: as of other models
  double expert_decode_high_ratio = 0;
  double prefill_low_ratio = 0;
  double prefill_high_ratio = 0;
  double first_token_low_ratio = 0;
  double first_token_high_ratio = 0;
};

}  // namespace sliceplan::roofline

#endif  // SLICEPLAN_SERVER_ROOFLINE_SERVING_EFFICIENCY_H_
