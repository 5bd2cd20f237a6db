// What the readers of quantisation methods share.
#ifndef SLICEPLAN_SERVER_TRANSFORMER_HUGGING_FACE_QUANTIZATION_METHODS_H_
#define SLICEPLAN_SERVER_TRANSFORMER_HUGGING_FACE_QUANTIZATION_METHODS_H_

#include <cstdint>

#include "server/transformer/architecture.h"
#include "server/transformer/hugging_face/config.h"

namespace sliceplan::transformer::hugging_face {

inline constexpr double kFp32Bytes = 4;
inline constexpr double kFp16Bytes = 2;
inline constexpr double kByte = 1;
inline constexpr double kBitsPerByte = 8;
inline constexpr int64_t kMaxBlock = 65536;
// OCP microscaling: one 8-bit exponent for 32 elements. NVFP4: one 8-bit float for 16, and one fp32 scale a tensor.
inline constexpr int32_t kMxBlock = 32;
inline constexpr int32_t kNvfp4Block = 16;

// Attention, MLPs and experts.
void QuantizeLinears(const WeightFormat& format, Quantization& quantization);
void Quantize(WeightClass weight_class, const WeightFormat& format, Quantization& quantization);

// Widths that are stored packed in other than 4 or 8 bits are not in the list of formats.
bool CheckBits(Config& part, const char* key, int64_t bits);
hardware::DataType IntegerOf(int64_t bits);

// compressed-tensors and modelopt, which list groups of weights (quantization_groups.cc).
void ReadCompressedTensors(Config& part, Quantization& quantization);
void ReadModelOpt(Config& part, Quantization& quantization);

}  // namespace sliceplan::transformer::hugging_face

#endif  // SLICEPLAN_SERVER_TRANSFORMER_HUGGING_FACE_QUANTIZATION_METHODS_H_
