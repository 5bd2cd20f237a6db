// The parts that family builders share.
#ifndef SLICEPLAN_SERVER_TRANSFORMER_HUGGING_FACE_DECODER_H_
#define SLICEPLAN_SERVER_TRANSFORMER_HUGGING_FACE_DECODER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "server/transformer/architecture.h"
#include "server/transformer/hugging_face/config.h"
#include "server/transformer/hugging_face/family.h"

namespace sliceplan::transformer::hugging_face {

// The builder of families that a row of traits describes whole.
void BuildDecoder(Config& config, const DecoderTraits& traits, Architecture& architecture);

bool Read(Config& config, Flag flag);
Norms NormsOf(NormStyle style, int32_t count);

// Width, vocabulary, tying, context limit, final norm.
void ReadFrame(Config& config, const DecoderTraits& traits, Architecture& architecture);

// Layers of the stack, 1 to kMaxLayerCount.
int32_t ReadLayerCount(Config& config);

// Head counts, head dim, biases, norms; no windows.
GroupedQueryAttention ReadGroupedQuery(Config& config, const DecoderTraits& traits, int64_t hidden_dim);

// Latent attention and its indexer.
LatentAttention ReadLatent(Config& config);

// hidden / heads, with a violation of `key` when it does not divide.
int32_t DerivedHeadDim(const Config& config, const char* key, int64_t hidden_dim, int64_t head_count);

// Query heads must divide over KV heads.
void CheckHeads(const Config& config, const GroupedQueryAttention& attention);

DenseFeedForward ReadDense(Config& config, const DecoderTraits& traits);
MixtureOfExperts ReadExperts(Config& config, const DecoderTraits& traits);

// Per layer: does it hold experts? Empty MoE families answer no everywhere.
std::vector<bool> ExpertLayers(Config& config, const MoeTraits& traits, int32_t layer_count);

// Per layer: its window in tokens, 0 for full attention. `layer_types`, when present, wins over the rule. Chunked
// layers are negative: minus the chunk.
std::vector<int32_t> Windows(Config& config, const DecoderTraits& traits, int32_t layer_count);

// Entries of `layer_types`, checked for length; empty when absent.
std::vector<std::string> ReadLayerTypes(Config& config, int32_t layer_count);

// Groups a flat stack into repeated patterns.
std::vector<LayerGroup> GroupLayers(const std::vector<Layer>& layers);

// num_nextn_predict_layers copies of `layer` as multi-token-prediction layers.
void ReadMtp(Config& config, const DecoderTraits& traits, const Layer& layer, Architecture& architecture);

}  // namespace sliceplan::transformer::hugging_face

#endif  // SLICEPLAN_SERVER_TRANSFORMER_HUGGING_FACE_DECODER_H_
