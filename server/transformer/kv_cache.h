// What a sequence keeps in memory while it is generated. Book, chapters 4 and 7; latent attention: DeepSeek-V2,
// section 2.1.
#ifndef SLICEPLAN_SERVER_TRANSFORMER_KV_CACHE_H_
#define SLICEPLAN_SERVER_TRANSFORMER_KV_CACHE_H_

#include <cstdint>
#include <vector>

#include "server/hardware/data_type.h"
#include "server/transformer/architecture.h"

namespace sliceplan::transformer {

// The cache of one sequence of one model, in elements of the cache's format.
struct KvCache {
  // Layers that stop growing at `token_limit` (a sliding or chunked window), together.
  struct Window {
    int64_t token_limit = 0;
    int64_t elements_per_token = 0;
  };
  // Layers that grow with the context.
  int64_t growing_elements_per_token = 0;
  std::vector<Window> windows;  // by ascending limit, each limit once
  // Keys of sparse-attention indexers, kept beside the latents; they too grow.
  int64_t indexer_elements_per_token = 0;
  // Constant state of linear-attention layers: recurrent state (held in fp32) and past inputs of convolutions (held in
  // the cache's format).
  int64_t recurrent_state_elements = 0;
  int64_t convolution_state_elements = 0;
  // Layers that read another layer's cache are not in any of these.
  int64_t growing_layer_count = 0;
  int64_t window_layer_count = 0;
  int64_t state_layer_count = 0;
};

// The recurrent state is accumulated over the whole sequence; engines keep it in fp32.
inline constexpr double kRecurrentStateBytes = 4;

// The architecture must be valid. A window that is not shorter than the model's context limit does not limit anything.
KvCache KvCacheOf(const Architecture& architecture);

// Bytes that one more token adds once every window is full. Rounded up to whole bytes, as are all below.
int64_t GrowingBytesPerToken(const KvCache& cache, hardware::DataType dtype);

// Bytes per token that an engine reserves which pages every layer alike: windows are charged at full length.
int64_t ReservedBytesPerToken(const KvCache& cache, hardware::DataType dtype);

// Indexer keys per token; in neither of the two above.
int64_t IndexerBytesPerToken(const KvCache& cache, hardware::DataType dtype);

// Constant state of one sequence.
int64_t StateBytes(const KvCache& cache, hardware::DataType dtype);

// Bytes of one sequence of `context_tokens` (0 or more): growing layers, windows as far as they are filled, indexer
// keys and constant state. Whole bytes, exact below 2^53.
double BytesAtContext(const KvCache& cache, int64_t context_tokens, hardware::DataType dtype);

// The same with every attention layer kept at full length.
double ReservedBytesAtContext(const KvCache& cache, int64_t context_tokens, hardware::DataType dtype);

}  // namespace sliceplan::transformer

#endif  // SLICEPLAN_SERVER_TRANSFORMER_KV_CACHE_H_
