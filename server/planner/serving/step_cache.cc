#include "server/planner/serving/step_cache.h"

#include <cstddef>
#include <cstring>

namespace sliceplan::planner {
namespace {

// Slots of the two direct-mapped tables: powers of two, together small enough for a core's second cache.
constexpr uint64_t kNodes = 4096;
constexpr uint64_t kEntries = 256;
// A node's context is a double whose fraction has only its two top bits.
constexpr int kDroppedBits = 50;

uint64_t BitsOf(double value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

double ContextOf(uint64_t node) {
  const uint64_t bits = node << kDroppedBits;
  double value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

uint64_t Scatter(uint64_t key) { return (key * 0x9e3779b97f4a7c15) >> 32; }

}  // namespace

StepCache::StepCache(const StepTimer& timer, int64_t tokens_per_sequence)
    : timer_(timer), tokens_per_sequence_(tokens_per_sequence), nodes_(kNodes), entries_(kEntries) {}

double StepCache::AtNode(int64_t sequences, uint64_t node) {
  // The node takes 14 bits: never 0, so that no key is.
  const uint64_t key = static_cast<uint64_t>(sequences) << 14 | node;
  Node& slot = nodes_[Scatter(key) % kNodes];
  if (slot.key != key) {
    slot.key = key;
    slot.seconds = timer_.Seconds({.decode_sequences = sequences,
                                   .decode_context_tokens = ContextOf(node),
                                   .tokens_per_sequence = tokens_per_sequence_});
  }
  return slot.seconds;
}

double StepCache::DecodeSeconds(int64_t sequences, double context_tokens) {
  const uint64_t node = BitsOf(context_tokens) >> kDroppedBits;
  const double below = ContextOf(node);
  const double below_seconds = AtNode(sequences, node);
  if (context_tokens == below) return below_seconds;
  const double share = (context_tokens - below) / (ContextOf(node + 1) - below);
  return below_seconds + share * (AtNode(sequences, node + 1) - below_seconds);
}

double StepCache::Seconds(StepShape shape) {
  shape.tokens_per_sequence = tokens_per_sequence_;
  // The low bits of contexts are noise, or zero.
  constexpr int kNoiseBits = 24;
  uint64_t key = static_cast<uint64_t>(shape.prefill_tokens);
  for (const uint64_t part :
       {static_cast<uint64_t>(shape.decode_sequences), BitsOf(shape.prefill_context_tokens) >> kNoiseBits,
        BitsOf(shape.decode_context_tokens) >> kNoiseBits}) {
    key = Scatter(key) ^ part;
  }
  Entry& slot = entries_[Scatter(key) % kEntries];
  const StepShape& kept = slot.shape;
  if (kept.prefill_tokens != shape.prefill_tokens || kept.decode_sequences != shape.decode_sequences ||
      kept.prefill_context_tokens != shape.prefill_context_tokens ||
      kept.decode_context_tokens != shape.decode_context_tokens || kept.prefill_sequences != shape.prefill_sequences) {
    slot.shape = shape;
    slot.seconds = timer_.Seconds(shape);
  }
  return slot.seconds;
}

}  // namespace sliceplan::planner
