#include "tests/book/models.h"

#include <cmath>

#include "server/transformer/kv_cache.h"
#include "server/transformer/parameter_count.h"
#include "tests/book/book_constants.h"

namespace sliceplan::book {
namespace {

using transformer::Architecture;
using transformer::Component;
using transformer::ParameterCount;

int32_t Dim(const Json& given, const char* key, int32_t otherwise = 1) {
  return given.contains(key) ? static_cast<int32_t>(Number(given, key)) : otherwise;
}

ParameterCount ParametersOf(const Json& given) {
  const Architecture architecture = ModelOf(given);
  return CountParameters(architecture).value();
}

int64_t Of(const ParameterCount& count, Component component) {
  return count.components[static_cast<size_t>(component)];
}

}  // namespace

Architecture ModelOf(const Json& given) {
  transformer::GroupedQueryAttention attention;
  attention.head_dim = Dim(given, "H");
  attention.query_head_count = Dim(given, "N", Dim(given, "K"));
  attention.kv_head_count = Dim(given, "K", attention.query_head_count);
  transformer::DenseFeedForward feed_forward;
  feed_forward.ffn_dim = Dim(given, "F");
  if (given.contains("ffw_multiplier")) {
    feed_forward.ffn_dim = static_cast<int32_t>(std::lround(Number(given, "ffw_multiplier") * Number(given, "D")));
  }
  transformer::Layer layer;
  layer.attention = attention;
  layer.feed_forward = feed_forward;
  Architecture architecture;
  architecture.hidden_dim = Dim(given, "D");
  architecture.vocab_size = Dim(given, "V");
  architecture.tied_embeddings = given.value("tied_embeddings", false);
  architecture.layer_groups.push_back({Dim(given, "L"), {layer}});
  return architecture;
}

transformer::ModelOperations OperationsOfModel(const Json& given) {
  return transformer::OperationsOf(ModelOf(given)).value();
}

double TotalParameters(const Json& given) { return static_cast<double>(ParametersOf(given).total_count); }

Json ParametersByComponent(const Json& given) {
  const ParameterCount count = ParametersOf(given);
  return {{"ffw", Of(count, Component::kFeedForward)},
          {"attention", Of(count, Component::kAttentionProjections)},
          {"vocab", Of(count, Component::kEmbedding) + Of(count, Component::kOutputHead)},
          {"total", count.total_count}};
}

double CacheBytes(const Json& given, int64_t context, hardware::DataType type) {
  return transformer::BytesAtContext(transformer::KvCacheOf(ModelOf(given)), context, type);
}

}  // namespace sliceplan::book
