// Layers of early decoders: one kind throughout, plain MLPs that widen four times, positions in a table.
#ifndef SLICEPLAN_SERVER_TRANSFORMER_HUGGING_FACE_PLAIN_LAYER_H_
#define SLICEPLAN_SERVER_TRANSFORMER_HUGGING_FACE_PLAIN_LAYER_H_

#include <cstdint>

#include "server/transformer/architecture.h"
#include "server/transformer/hugging_face/config.h"
#include "server/transformer/hugging_face/family.h"

namespace sliceplan::transformer::hugging_face {

inline constexpr int64_t kDefaultWidening = 4;  // MLP width over hidden width when the file says nothing

// Attention and MLP as the traits have them.
Layer ReadPlainLayer(Config& config, const DecoderTraits& traits, const Architecture& architecture);

// The same layer throughout; the returned one stands for all.
Layer& SetLayers(Config& config, const Layer& layer, Architecture& architecture);

// `extra_rows`: rows of the position table that no token uses.
void ReadLearnedPositions(Config& config, int64_t extra_rows, Architecture& architecture);

}  // namespace sliceplan::transformer::hugging_face

#endif  // SLICEPLAN_SERVER_TRANSFORMER_HUGGING_FACE_PLAIN_LAYER_H_
