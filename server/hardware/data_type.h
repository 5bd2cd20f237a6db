// Number formats that tensors are stored and computed in.
#ifndef SLICEPLAN_SERVER_HARDWARE_DATA_TYPE_H_
#define SLICEPLAN_SERVER_HARDWARE_DATA_TYPE_H_

#include "absl/strings/string_view.h"

namespace sliceplan::hardware {

enum class DataType { kBf16, kFp16, kFp32, kFp8, kFp4, kInt8, kInt4 };

// Bytes of one element without block scales: 4, 2, 1 or 0.5.
constexpr double BytesPerElement(DataType type) {
  switch (type) {
    case DataType::kFp32: return 4;
    case DataType::kBf16:
    case DataType::kFp16: return 2;
    case DataType::kFp8:
    case DataType::kInt8: return 1;
    case DataType::kFp4:
    case DataType::kInt4: return 0.5;
  }
  return 0;
}

// "bf16", "fp32", ...
constexpr absl::string_view DataTypeName(DataType type) {
  switch (type) {
    case DataType::kBf16: return "bf16";
    case DataType::kFp16: return "fp16";
    case DataType::kFp32: return "fp32";
    case DataType::kFp8: return "fp8";
    case DataType::kFp4: return "fp4";
    case DataType::kInt8: return "int8";
    case DataType::kInt4: return "int4";
  }
  return "";
}

}  // namespace sliceplan::hardware

#endif  // SLICEPLAN_SERVER_HARDWARE_DATA_TYPE_H_
