#include "server/hardware/accelerator.h"

namespace sliceplan::hardware {

std::optional<double> AcceleratorSpec::MatmulRate(DataType type) const {
  const auto or_bf16 = [this](std::optional<double> rate) { return rate ? rate : bf16_flops_per_second; };
  switch (type) {
    case DataType::kBf16:
    case DataType::kFp16: return bf16_flops_per_second;
    case DataType::kFp32: return fp32_flops_per_second;
    case DataType::kFp8: return or_bf16(fp8_flops_per_second);
    case DataType::kFp4: return or_bf16(fp4_flops_per_second);
    case DataType::kInt8: return or_bf16(int8_ops_per_second);
    case DataType::kInt4: return or_bf16(int4_ops_per_second);
  }
  return std::nullopt;
}

}  // namespace sliceplan::hardware
