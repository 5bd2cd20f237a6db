// What a model is made of: engine to contract.
#ifndef SLICEPLAN_SERVER_RPC_CONVERT_MODEL_DESCRIPTION_H_
#define SLICEPLAN_SERVER_RPC_CONVERT_MODEL_DESCRIPTION_H_

#include <cstdint>

#include "proto/sliceplan/v1/model_description.pb.h"
#include "server/hardware/data_type.h"
#include "server/rpc/model_cache.h"
#include "server/transformer/flops.h"

namespace sliceplan::rpc {

// What the counts depend on beside the model.
struct DescriptionSetting {
  int32_t sequence_length = 1;
  transformer::AttentionMask mask = transformer::AttentionMask::kCausal;
  hardware::DataType kv_cache_dtype = hardware::DataType::kBf16;
};

// Fills everything but name, assumptions and versions.
void ToProto(const ParsedModel& model, const DescriptionSetting& setting, v1::DescribeModelResponse* response);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_CONVERT_MODEL_DESCRIPTION_H_
