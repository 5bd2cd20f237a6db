#include "server/roofline/attention.h"

#include "server/roofline/tile_padding.h"

namespace sliceplan::roofline {
namespace {

using hardware::BytesPerElement;

// Scores and context: a multiply and an add each.
constexpr double kFlopsPerPairAndElement = 4;
// Scores written, read and written by the softmax, read by the context matmul.
constexpr double kScorePasses = 4;

double Real(int64_t count) { return static_cast<double>(count); }

}  // namespace

double AttendedPairs(const AttentionOp& op) {
  const double queries = Real(op.query_length);
  const double keys = Real(op.key_length);
  if (op.mask == AttentionMask::kFull || op.query_length == 1 || op.materializes_scores) return queries * keys;
  return queries * (keys - queries / 2);
}

double AttentionFlops(const AttentionOp& op) {
  return kFlopsPerPairAndElement * Real(op.batch_size) * AttendedPairs(op) * Real(op.query_head_count) *
         Real(op.head_dim);
}

AttentionBytes BytesOf(const AttentionOp& op) {
  const double query_elements =
      Real(op.batch_size) * Real(op.query_length) * Real(op.query_head_count) * Real(op.head_dim);
  const double key_elements = Real(op.batch_size) * Real(op.key_length) * Real(op.kv_head_count) * Real(op.head_dim);
  return {.query = query_elements * BytesPerElement(op.type),
          .key_value = 2 * key_elements * BytesPerElement(op.kv_type),
          .output = query_elements * BytesPerElement(op.type),
          .scores = op.materializes_scores ? kScorePasses * Real(op.batch_size) * Real(op.query_head_count) *
                                                 AttendedPairs(op) * BytesPerElement(op.type)
                                           : 0};
}

OpCost CostOf(const AttentionOp& op) {
  OpCost cost;
  cost.MatrixFlops(op.type) = AttentionFlops(op);
  cost.hbm_bytes = BytesOf(op).Total();
  return cost;
}

double PaddedOverUseful(const AttentionOp& op, int64_t mxu_dim) { return 1 / UsefulRatio(op.head_dim, mxu_dim); }

std::optional<double> CriticalQueryLength(const AttentionOp& op, double flops_per_byte) {
  const double keys = Real(op.key_length);
  const double group = Real(op.query_head_count) / Real(op.kv_head_count);
  // Per query: bytes that its FLOPs can wait for, less its own.
  const double spare = 2 * keys - flops_per_byte * BytesPerElement(op.type);
  if (spare <= 0) return std::nullopt;
  return flops_per_byte * BytesPerElement(op.kv_type) * keys / (group * spare);
}

double CriticalPromptLength(double flops_per_byte, double queries_per_kv_head) {
  return flops_per_byte * (queries_per_kv_head + 1) / queries_per_kv_head;
}

}  // namespace sliceplan::roofline
