// Prefill, decode and cost of serving as the book has them in closed form. "How To Scale Your Model", chapters 7 and 8.
// Rates are of one chip; everything is sharded over all chips of a replica. All arguments positive unless said
// otherwise.
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_CLOSED_FORM_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_CLOSED_FORM_H_

#include <cstdint>

namespace sliceplan::planner {

struct DecodeReplica {
  double active_parameter_count = 0;  // in matmuls of one token
  double weight_bytes = 0;            // read in one step
  double kv_bytes_per_sequence = 0;   // at the context that is present
  double batch_size = 0;              // sequences; may be 0: the latency floor
  double chip_count = 1;
  double flops_per_second = 0;
  double hbm_bytes_per_second = 0;
  double hbm_bytes = 0;  // of one chip; 0: not asked
};

// kv + max(compute, weights): attention never overlaps with the matmuls and never is bound by compute.
struct DecodeStep {
  double kv_seconds = 0;
  double weights_seconds = 0;
  double compute_seconds = 0;
  double step_seconds = 0;
  double tokens_per_second = 0;
  double tokens_per_second_per_chip = 0;
  double used_bytes = 0;  // of all chips
  bool fits = true;
};
DecodeStep DecodeStepOf(const DecodeReplica& replica);

// Sequences whose caches fit beside the weights, rounded down; 0 when the weights do not fit.
double MaximumBatch(const DecodeReplica& replica);
// Memory left for caches; negative when the weights do not fit.
double FreeBytes(const DecodeReplica& replica);
// Context from which reading the cache takes longer than the matmuls compute, whatever the batch: (2 P / C) x W / kv.
double KvOverComputeContext(const DecodeReplica& replica, double kv_bytes_per_token);
// Bytes of one gated-less layer's weights over one sequence's keys: how soon a larger batch stops paying. 2DF / (S H
// K).
double WeightToCacheRatio(double hidden_dim, double ffn_dim, double context, double kv_head_count, double head_dim);
// Sequences whose caches outweigh the weights.
double SequencesOutweighingWeights(double weight_bytes, double kv_bytes_per_sequence);

// Forward FLOPs at a share of the peak; attention left out. `mfu_ratio` in (0, 1].
double PrefillSeconds(double parameter_count, double prompt_tokens, double chip_count, double flops_per_second,
                      double mfu_ratio);
// Work left of a prompt whose first tokens are cached, linear in tokens. 0 <= cached <= prompt.
double RemainingPrefillRatio(double prompt_tokens, double cached_tokens);

// Requests finished per second by a full batch that each generate `output_tokens`.
double RequestsPerSecond(double batch_size, double step_seconds, double output_tokens);
// Prefill servers that keep one generate server busy: B x T_prefill / (T_step x output).
double PrefillPerGenerateServers(double prefill_seconds, double batch_size, double step_seconds, double output_tokens);
// A cache sent from slice to slice by all chips at once.
double KvTransferSeconds(double kv_bytes, double chip_count, double dcn_bytes_per_second);
double UsdPerMillionTokens(double usd_per_chip_hour, double chip_count, double step_seconds, double batch_size);
// Tokens that one pass of the target model yields when `draft_tokens` guesses are each accepted with probability
// `acceptance` (0 to 1) until the first refusal. Leviathan et al. 2023, equation 1.
double SpeculativeTokensPerPass(double acceptance, double draft_tokens);

// Model-parallel degree from which moving activations takes longer than reading weights: F / (B x beta), beta = HBM
// rate over the rate of both directions of the axes used.
double DecodeTensorLimit(double ffn_dim, double batch_size, double hbm_to_network_ratio);
// One matmul [B, D] x [D, F / Y] of decode with two-byte elements: its three times.
struct DecodeMatmul {
  double weights_seconds = 0;
  double network_seconds = 0;
  double compute_seconds = 0;
  bool IsWeightsBound() const { return weights_seconds >= network_seconds && weights_seconds >= compute_seconds; }
};
DecodeMatmul DecodeMatmulOf(double batch_size, double hidden_dim, double ffn_dim, double tensor_degree,
                            double flops_per_second, double hbm_bytes_per_second, double network_bytes_per_second);
// Degree above which a shard of the activations is so small that hops take their latency: B x D x b / (W x t_hop).
double LatencyBoundDegree(double batch_size, double hidden_dim, double bytes_per_element, double link_bytes_per_second,
                          double hop_seconds);

// How a cache is split over `degree` chips: KV heads first, whole ones only; the rest over sequences of the batch.
struct CacheSplit {
  int64_t head_degree = 1;
  int64_t batch_degree = 1;
};
CacheSplit CacheSplitOf(int64_t kv_head_count, int64_t degree);

// Weights [D_X, F_YZ] stay, activations move: 2BD / (X W) + 4BF / (YZ W). X = sqrt(n D / (2 F)) at best. Against all
// chips on F over `axis_count` axes: 4BD / (axis_count x W).
struct WeightStationary {
  double hidden_degree = 1;  // X
  double ffn_degree = 1;     // YZ
  double seconds = 0;
  double one_dimensional_seconds = 0;
};
WeightStationary WeightStationaryOf(double batch_size, double hidden_dim, double ffn_dim, double chip_count,
                                    double axis_bytes_per_second, double axis_count);
// Chips from which it wins: 2 x axis_count^2 x F / D.
double WeightStationaryBreakEvenChips(double hidden_dim, double ffn_dim, double axis_count);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SERVING_CLOSED_FORM_H_
