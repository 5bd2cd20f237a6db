#include "server/planner/serving/replica_field.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace sliceplan::planner {
namespace {

constexpr int kIterations = 24;
// Points at which the longest output of a static batch is averaged.
constexpr int kLongestPoints = 8;
// Quantiles of outputs over which 1 / length is averaged.
constexpr int kOutputPoints = 32;

}  // namespace

ReplicaField::ReplicaField(const Station& station, const RequestMix& mix, bool reads, bool decodes)
    : station_(station), mix_(mix), reads_(reads), decodes_(decodes) {
  const EngineLimits& limits = station.limits;
  const double prompt = mix.prompt.Mean();
  cached_ = std::min(prompt - 1, prompt * mix.prefix_cache_hit_ratio);
  computed_ = prompt - cached_;
  checked_tokens_ = static_cast<double>(1 + mix.draft_tokens);
  double written = 0;  // of a resident sequence, in the mean over time
  if (decodes) {
    const double output = mix.output.Mean();
    output_tokens_ = output - 1;
    decode_steps_ = mix.MeanDecodeSteps(output_tokens_);
    // Long outputs are resident for longer: E[g^2] / 2 E[g] of the tokens g after the first.
    if (output_tokens_ > 0) {
      const double variance = mix.output.SquaredVariation() * output * output;
      written = (variance + output_tokens_ * output_tokens_) / (2 * output_tokens_);
    }
  }
  decode_context_ = prompt + written + 1;

  const double block = static_cast<double>(limits.kv_block_tokens);
  const double blocks = std::floor(static_cast<double>(limits.kv_capacity_tokens) / block);
  const bool is_static = limits.policy == BatchPolicy::kStatic;
  const double held_tokens = prompt + (is_static ? output_tokens_ : written) + checked_tokens_ - 1;
  const double held = std::max(1.0, held_tokens / block + (block - 1) / (2 * block));
  const double least = prompt + output_tokens_ + checked_tokens_ - 1;
  if (blocks * block < least) {
    limit_ = ServingLimit::kKvCache;
    return;
  }
  // Growth fills what is left free at admission, so that the cache is full in the mean but for that share.
  const double usable = is_static ? blocks : blocks * (1 - limits.admission_reserve_ratio);
  resident_limit_ = static_cast<double>(limits.max_batch_size);
  if (limits.policy == BatchPolicy::kChunkedPrefill && decodes) {
    const double budget = std::floor(static_cast<double>(limits.step_token_budget) / checked_tokens_);
    resident_limit_ = std::min(resident_limit_, std::max(1.0, budget));
  }
  if (usable / held < resident_limit_) {
    resident_limit_ = std::max(1.0, is_static ? std::floor(usable / held) : usable / held);
    limit_ = ServingLimit::kKvCache;
  }
}

double ReplicaField::Seconds(const StepShape& shape) const {
  Memory& slot = memory_[static_cast<size_t>(shape.prefill_tokens * 7 + shape.decode_sequences) % memory_.size()];
  const StepShape& kept = slot.shape;
  // Everything else follows from these.
  if (slot.seconds <= 0 || kept.prefill_tokens != shape.prefill_tokens ||
      kept.decode_sequences != shape.decode_sequences || kept.prefill_sequences != shape.prefill_sequences ||
      kept.prefill_context_tokens != shape.prefill_context_tokens) {
    slot = {shape, station_.timer->Seconds(shape)};
  }
  return slot.seconds;
}

double ReplicaField::TokenShare() const {
  double sum = 0;
  int count = 0;
  for (int i = 0; i < kOutputPoints; ++i) {
    const int64_t tokens = mix_.output.Quantile((i + 0.5) / kOutputPoints) - 1;
    if (tokens == 0) continue;
    sum += 1 / static_cast<double>(tokens);
    ++count;
  }
  return count > 0 ? sum / count : 0;
}

double ReplicaField::DecodeSeconds(double sequences) const {
  const double whole = std::max(1.0, std::floor(sequences));
  StepShape shape;
  shape.decode_sequences = static_cast<int64_t>(whole);
  shape.decode_context_tokens = decode_context_;
  shape.tokens_per_sequence = static_cast<int64_t>(checked_tokens_);
  const double below = Seconds(shape);
  if (sequences <= whole) return below;
  ++shape.decode_sequences;
  return below + (sequences - whole) * (Seconds(shape) - below);
}

double ReplicaField::PromptSeconds(double prompts, double tokens_each, double sequences, double context) const {
  StepShape shape;
  shape.prefill_tokens = std::max<int64_t>(1, std::llround(prompts * tokens_each));
  shape.prefill_context_tokens = context;
  shape.prefill_sequences = std::max<int64_t>(1, std::llround(prompts));
  shape.tokens_per_sequence = static_cast<int64_t>(checked_tokens_);
  shape.decode_sequences = std::llround(sequences);
  if (shape.decode_sequences > 0) shape.decode_context_tokens = decode_context_;
  return Seconds(shape);
}

double ReplicaField::PrefillBound() const {
  const double budget = static_cast<double>(station_.limits.step_token_budget);
  return decode_steps_ > 0 ? budget / (computed_ / decode_steps_ + checked_tokens_) : 0;
}

PromptReading ReplicaField::Read(double sequences) const {
  PromptReading reading;
  if (!reads_) return reading;
  const double budget = static_cast<double>(station_.limits.step_token_budget);
  const double beside = decodes_ ? std::max(0.0, sequences - 1) : 0;
  // Prompts that come in one step of the decodes when each makes room for the next.
  const double arriving = decode_steps_ > 0 ? sequences / decode_steps_ : sequences;
  if (station_.limits.policy == BatchPolicy::kWholePrefill) {
    const double together = std::max(1.0, std::min(arriving, budget / computed_));
    const double seconds = PromptSeconds(together, computed_, 0, cached_);
    reading = {1 / together, seconds, seconds, seconds / together};
    return reading;
  }
  const double room = std::max(1.0, budget - beside * checked_tokens_);
  const double chunks = std::max(1.0, std::ceil(computed_ / room));
  const double context = cached_ + computed_ / 2 * (1 - 1 / chunks);
  const double tokens = std::max(computed_ / chunks, std::min(room, arriving * computed_));
  const double prompts = std::max(1.0, tokens / computed_);
  const double seconds = PromptSeconds(prompts, tokens / prompts, beside, context);
  reading = {computed_ / tokens, seconds, chunks * seconds, computed_ / room * seconds};
  return reading;
}

double ReplicaField::SecondsPerRequest(double sequences) const {
  const PromptReading reading = Read(sequences);
  const double steps = decode_steps_ / sequences;
  if (station_.limits.policy == BatchPolicy::kWholePrefill) {
    return steps * DecodeSeconds(sequences) + reading.server_seconds;
  }
  // Decodes go on beside the prompts of others.
  const double beside = reading.steps * std::max(0.0, sequences - 1) / sequences;
  return reading.steps * reading.seconds + std::max(0.0, steps - beside) * DecodeSeconds(sequences);
}

double ReplicaField::DecodingOf(double resident, double& seconds) const {
  if (decode_steps_ <= 0) {
    seconds = Read(1).server_seconds;
    return 0;
  }
  double most = resident;
  if (reads_ && station_.limits.policy == BatchPolicy::kChunkedPrefill) {
    most = std::max(std::min(1.0, resident), std::min(resident, PrefillBound()));
  }
  double sequences = most;
  for (int i = 0; i < kIterations; ++i) {
    seconds = SecondsPerRequest(sequences);
    const double reading = Read(sequences).residence_seconds / seconds;
    // Halfway, so that it does not swing.
    sequences = (sequences + std::clamp(resident - reading, std::min(1.0, most), most)) / 2;
  }
  return std::min(most, std::max(0.0, resident - Read(sequences).residence_seconds / seconds));
}

double ReplicaField::StepSeconds(double rate, double sequences) const {
  const double plain = DecodeSeconds(1 + sequences);
  if (!reads_) return plain;
  const PromptReading reading = Read(1 + sequences);
  const double busy = std::min(1.0, rate * reading.steps * reading.seconds);
  if (station_.limits.policy == BatchPolicy::kWholePrefill) return busy < 1 ? plain / (1 - busy) : plain * 1e6;
  return 1 / (rate * reading.steps + (1 - busy) / plain);
}

double ReplicaField::ResidualSeconds(double rate, double sequences) const {
  const double plain = DecodeSeconds(1 + sequences);
  const PromptReading reading = Read(1 + sequences);
  const double busy = std::min(1.0, rate * reading.steps * reading.seconds);
  const double has_decodes = -std::expm1(-sequences);
  // The rest of a step that only reads prompts belongs to their queue.
  const double mixed = station_.limits.policy == BatchPolicy::kChunkedPrefill ? busy * reading.seconds : 0;
  return (mixed + (1 - busy) * has_decodes * plain) / 2;
}

double ReplicaField::PromptsBeside() const {
  return std::max(0.0, static_cast<double>(station_.limits.step_token_budget) / computed_ - 1);
}

double ReplicaField::StaticReadSeconds(double resident) const {
  return reads_ ? PromptSeconds(resident, computed_, 0, cached_) : 0;
}

double ReplicaField::StaticBatchSeconds(double resident) const {
  double longest = 0;
  if (decodes_) {
    for (int i = 0; i < kLongestPoints; ++i) {
      const double p = std::pow((i + 0.5) / kLongestPoints, 1 / std::max(1.0, resident));
      const double tokens = static_cast<double>(mix_.output.Quantile(p)) - 1;
      longest += mix_.MeanDecodeSteps(tokens) / kLongestPoints;
    }
  }
  const double decode = longest > 0 ? longest * DecodeSeconds(resident) : 0;
  return StaticReadSeconds(resident) + decode;
}

}  // namespace sliceplan::planner
