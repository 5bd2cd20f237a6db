#include "server/planner/serving/attention_keys.h"

#include <algorithm>

namespace sliceplan::planner {

double KeysSeen(const PassAttention& attention, double context) {
  double keys = context;
  if (attention.compression > 0) {
    const double entries = context / attention.compression;
    const double window = attention.key_limit > 0 ? std::min(context, attention.key_limit) : 0;
    return window + (attention.selected > 0 ? std::min(entries, attention.selected) : entries);
  }
  if (attention.key_limit > 0) keys = std::min(keys, attention.key_limit);
  if (attention.selected > 0) keys = std::min(keys, attention.selected);
  return keys;
}

double KeysStored(const PassAttention& attention, double context, WindowedKvPolicy policy) {
  const bool limited = attention.key_limit > 0 && policy == WindowedKvPolicy::kFree;
  const double window = limited ? std::min(context, attention.key_limit) : context;
  return attention.compression > 0 ? window + context / attention.compression : window;
}

double KeysSeenByPrompt(const PassAttention& attention, double prior, double tokens) {
  // Keys grow by one per token until a limit: the sum is a trapezoid and a rectangle.
  const auto limited = [&](double limit) {
    if (limit <= 0) return tokens * (prior + tokens / 2);
    const double growing = std::clamp(limit - prior, 0.0, tokens);
    return growing * (prior + growing / 2) + (tokens - growing) * limit;
  };
  if (attention.compression > 0) {
    const double entries = attention.selected > 0 ? attention.selected * attention.compression : 0;
    return limited(attention.key_limit) + limited(entries) / attention.compression;
  }
  double limit = attention.key_limit;
  if (attention.selected > 0) limit = limit > 0 ? std::min(limit, attention.selected) : attention.selected;
  return limited(limit);
}

}  // namespace sliceplan::planner
