// quantization_config: which weights a checkpoint holds in fewer bits, and what the scales take.
#ifndef SLICEPLAN_SERVER_TRANSFORMER_HUGGING_FACE_QUANTIZATION_H_
#define SLICEPLAN_SERVER_TRANSFORMER_HUGGING_FACE_QUANTIZATION_H_

#include "server/transformer/architecture.h"
#include "server/transformer/hugging_face/config.h"
#include "server/transformer/hugging_face/family.h"

namespace sliceplan::transformer::hugging_face {

// Reads `torch_dtype` or `dtype`; bf16 when absent.
hardware::DataType ReadCheckpointDtype(Config& config);

// One of the keys that ReadQuantization reads is there.
bool HasQuantization(const Config& config);

// Fills `quantization` from the object under `quantization_config`, `compression_config` (its older name) or
// `quantization` (mlx), if there is one. A method that is not understood is a warning, and the weights then count in
// the checkpoint's format.
void ReadQuantization(Config& config, const DecoderTraits& traits, Quantization& quantization);

}  // namespace sliceplan::transformer::hugging_face

#endif  // SLICEPLAN_SERVER_TRANSFORMER_HUGGING_FACE_QUANTIZATION_H_
