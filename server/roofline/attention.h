// Scores and context of softmax attention on one chip. A fused kernel reads Q, K, V once, writes the output once and
// keeps scores out of HBM. Chapters 4 and 7 of "How To Scale Your Model".
#ifndef SLICEPLAN_SERVER_ROOFLINE_ATTENTION_H_
#define SLICEPLAN_SERVER_ROOFLINE_ATTENTION_H_

#include <cstdint>
#include <optional>

#include "server/hardware/data_type.h"
#include "server/roofline/op_cost.h"

namespace sliceplan::roofline {

enum class AttentionMask { kCausal, kFull };

// Counts positive; kv_head_count divides query_head_count. Under kCausal the queries are the last positions of the
// keys, so query_length is at most key_length.
struct AttentionOp {
  int64_t batch_size = 1;
  int64_t query_length = 1;  // T; 1 in decode
  int64_t key_length = 1;    // S
  int64_t query_head_count = 1;
  int64_t kv_head_count = 1;
  int64_t head_dim = 1;
  AttentionMask mask = AttentionMask::kFull;
  hardware::DataType type = hardware::DataType::kBf16;     // of Q and the output
  hardware::DataType kv_type = hardware::DataType::kBf16;  // of K and V
  // Not fused: all T x S scores of every head are written, normalised in a pass of their own and read again, and a
  // causal mask saves nothing.
  bool materializes_scores = false;
};

// Query-key pairs per head of one sequence that the kernel computes. Causal: T * S - T * T / 2, the book's half when T
// = S; one query sees every key. Materialised: T * S.
double AttendedPairs(const AttentionOp& op);

// 4 x batch x pairs x heads x head_dim.
double AttentionFlops(const AttentionOp& op);

struct AttentionBytes {
  double query = 0;
  double key_value = 0;
  double output = 0;
  double scores = 0;
  double Total() const { return query + key_value + output + scores; }
};
AttentionBytes BytesOf(const AttentionOp& op);

OpCost CostOf(const AttentionOp& op);

// Padding of head_dim to the matrix unit, at least 1.
double PaddedOverUseful(const AttentionOp& op, int64_t mxu_dim);

// The query length from which this op, other sizes kept and under a full mask, computes longer than it reads:
// T = a * b_kv * S / (G * (2 * S - a * b)). Unset when no length does: S too short.
std::optional<double> CriticalQueryLength(const AttentionOp& op, double flops_per_byte);

// Prefill, T = S, full mask, two-byte elements: T = a * (G + 1) / G.
double CriticalPromptLength(double flops_per_byte, double queries_per_kv_head);

}  // namespace sliceplan::roofline

#endif  // SLICEPLAN_SERVER_ROOFLINE_ATTENTION_H_
