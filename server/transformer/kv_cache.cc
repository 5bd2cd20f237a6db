#include "server/transformer/kv_cache.h"

#include <algorithm>
#include <cmath>

#include "server/transformer/linear_attention.h"

namespace sliceplan::transformer {
namespace {

int64_t CeilDivide(int64_t value, int64_t divisor) { return (value + divisor - 1) / divisor; }

int64_t RoundUp(double bytes) { return static_cast<int64_t>(std::ceil(bytes)); }

double Bytes(int64_t elements, hardware::DataType dtype) {
  return static_cast<double>(elements) * hardware::BytesPerElement(dtype);
}

int64_t WindowElements(const KvCache& cache) {
  int64_t elements = 0;
  for (const KvCache::Window& window : cache.windows) elements += window.elements_per_token;
  return elements;
}

void AddWindow(int64_t token_limit, int64_t elements, KvCache& cache) {
  const auto place =
      std::lower_bound(cache.windows.begin(), cache.windows.end(), token_limit,
                       [](const KvCache::Window& window, int64_t limit) { return window.token_limit < limit; });
  if (place != cache.windows.end() && place->token_limit == token_limit) {
    place->elements_per_token += elements;
  } else {
    cache.windows.insert(place, {token_limit, elements});
  }
}

struct Adder {
  int64_t count;
  int64_t context_limit;
  KvCache& cache;

  void operator()(const NoAttention&) const {}
  void operator()(const GroupedQueryAttention& attention) const {
    if (attention.shares_earlier_kv) return;
    const int64_t value_head_dim = attention.value_head_dim > 0 ? attention.value_head_dim : attention.head_dim;
    const int64_t elements = count * attention.kv_head_count * (attention.head_dim + value_head_dim);
    const int64_t limit = std::max(attention.sliding_window, attention.chunked_window);
    if (limit > 0 && (context_limit == 0 || limit < context_limit)) {
      cache.window_layer_count += count;
      AddWindow(limit, elements, cache);
    } else {
      cache.growing_layer_count += count;
      cache.growing_elements_per_token += elements;
    }
  }
  void operator()(const LatentAttention& attention) const {
    cache.growing_layer_count += count;
    cache.growing_elements_per_token += count * (attention.kv_lora_rank + attention.qk_rope_head_dim);
    if (attention.indexer_head_count > 0) cache.indexer_elements_per_token += count * attention.indexer_head_dim;
  }
  void operator()(const CompressedAttention& attention) const {
    // Key and value are one vector.
    AddWindow(attention.sliding_window, count * attention.head_dim, cache);
    if (attention.compression == 0) {
      cache.window_layer_count += count;
      return;
    }
    cache.growing_layer_count += count;
    cache.growing_elements_per_token += CeilDivide(count * attention.head_dim, attention.compression);
    if (attention.indexer_head_count > 0) {
      cache.indexer_elements_per_token += CeilDivide(count * attention.indexer_head_dim, attention.compression);
    }
  }
  void operator()(const LinearAttention& attention) const {
    cache.state_layer_count += count;
    cache.recurrent_state_elements += count * RecurrentStateElements(attention);
    cache.convolution_state_elements += count * ConvolutionStateElements(attention);
  }
};

}  // namespace

KvCache KvCacheOf(const Architecture& architecture) {
  KvCache cache;
  for (const LayerGroup& group : architecture.layer_groups) {
    for (const Layer& layer : group.layers) {
      std::visit(Adder{group.repeat_count, architecture.max_position_count, cache}, layer.attention);
    }
  }
  return cache;
}

int64_t GrowingBytesPerToken(const KvCache& cache, hardware::DataType dtype) {
  return RoundUp(Bytes(cache.growing_elements_per_token, dtype));
}

int64_t ReservedBytesPerToken(const KvCache& cache, hardware::DataType dtype) {
  return RoundUp(Bytes(cache.growing_elements_per_token + WindowElements(cache), dtype));
}

int64_t IndexerBytesPerToken(const KvCache& cache, hardware::DataType dtype) {
  return RoundUp(Bytes(cache.indexer_elements_per_token, dtype));
}

int64_t StateBytes(const KvCache& cache, hardware::DataType dtype) {
  return RoundUp(static_cast<double>(cache.recurrent_state_elements) * kRecurrentStateBytes +
                 Bytes(cache.convolution_state_elements, dtype));
}

double BytesAtContext(const KvCache& cache, int64_t context_tokens, hardware::DataType dtype) {
  double elements = static_cast<double>(cache.growing_elements_per_token + cache.indexer_elements_per_token) *
                    static_cast<double>(context_tokens);
  for (const KvCache::Window& window : cache.windows) {
    elements += static_cast<double>(window.elements_per_token) *
                static_cast<double>(std::min(context_tokens, window.token_limit));
  }
  return std::ceil(elements * hardware::BytesPerElement(dtype)) + static_cast<double>(StateBytes(cache, dtype));
}

double ReservedBytesAtContext(const KvCache& cache, int64_t context_tokens, hardware::DataType dtype) {
  const double elements =
      static_cast<double>(cache.growing_elements_per_token + cache.indexer_elements_per_token + WindowElements(cache)) *
      static_cast<double>(context_tokens);
  return std::ceil(elements * hardware::BytesPerElement(dtype)) + static_cast<double>(StateBytes(cache, dtype));
}

}  // namespace sliceplan::transformer
