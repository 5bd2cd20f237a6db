// Chapter 4: counting a Transformer.
#include <cstdint>
#include <string>
#include <vector>

#include "server/planner/budget.h"
#include "server/roofline/attention.h"
#include "server/roofline/critical_batch.h"
#include "server/roofline/matmul.h"
#include "server/transformer/flops.h"
#include "server/transformer/parameter_count.h"
#include "tests/book/book_case.h"
#include "tests/book/book_constants.h"
#include "tests/book/models.h"

namespace sliceplan::book {
namespace {

using hardware::BytesPerElement;
using hardware::DataType;
using roofline::Matmul;
using roofline::MatmulFlops;
using transformer::AttentionMask;
using transformer::Component;
using transformer::FlopsPerToken;

double TrainingOf(const FlopsPerToken& flops, Component component) {
  return transformer::kTrainingPasses * flops.components[static_cast<size_t>(component)];
}

double TokensOf(const Json& given) { return Number(given, "B") * Number(given, "T"); }

Json Products(const Json& given) {
  // N x P times P x M.
  const int64_t p = Count(given, "P");
  const Matmul matmul{.m = Count(given, "N"), .k = p, .n = Count(given, "M")};
  const roofline::TrainingMatmulFlops training = roofline::TrainingFlopsOf(matmul);
  return {{"dot", MatmulFlops({.m = 1, .k = p, .n = 1})},
          {"matvec", MatmulFlops({.m = matmul.m, .k = p, .n = 1})},
          {"matmul", training.forward},
          {"training_total", training.total},
          {"backward", training.backward}};
}

// Every letter once, whichever operand has it.
Json Einsum(const Json& given, const char* first, const char* second) {
  Json dims = given.at(first);
  dims.update(given.at(second));
  std::vector<int64_t> distinct;
  for (const auto& [letter, size] : dims.items()) distinct.push_back(size.get<int64_t>());
  return {{"flops", roofline::ContractionFlops(distinct)}};
}

Json AttentionBlock(const Json& given) {
  const transformer::ModelOperations model = OperationsOfModel(given);
  const int64_t length = Count(given, "T");
  const FlopsPerToken full = CountFlops(model, length, AttentionMask::kFull);
  const FlopsPerToken causal = CountFlops(model, length, AttentionMask::kCausal);
  return {{"params", ParametersByComponent(given).at("attention")},
          {"projection_train_flops", TokensOf(given) * TrainingOf(full, Component::kAttentionProjections)},
          {"dot_product_train_flops", TokensOf(given) * TrainingOf(full, Component::kAttentionScores)},
          {"causal_dot_product_train_flops", TokensOf(given) * TrainingOf(causal, Component::kAttentionScores)}};
}

Json OutputHead(const Json& given) {
  const FlopsPerToken flops = CountFlops(OperationsOfModel(given), Count(given, "T"), AttentionMask::kCausal);
  Json tied = given;
  tied["tied_embeddings"] = true;
  return {{"params", ParametersByComponent(tied).at("vocab")},
          {"train_flops", TokensOf(given) * TrainingOf(flops, Component::kOutputHead)}};
}

Json AttentionFraction(const Json& given) {
  // The book's layer: a gated MLP of F = 4 D, N H = D, as many KV heads.
  const int64_t hidden = Count(given, "D");
  constexpr int64_t kHeadDim = 128;
  transformer::Architecture architecture = ModelOf(
      {{"L", 1}, {"D", hidden}, {"F", 4 * hidden}, {"N", hidden / kHeadDim}, {"K", hidden / kHeadDim}, {"H", 128}});
  const transformer::ModelOperations model = transformer::OperationsOf(architecture).value();
  Json ratio = Json::array();
  for (const Json& length : given.at("T_list")) {
    const FlopsPerToken flops = CountFlops(model, length, AttentionMask::kFull);
    const double matmuls =
        TrainingOf(flops, Component::kAttentionProjections) + TrainingOf(flops, Component::kFeedForward);
    ratio.push_back(TrainingOf(flops, Component::kAttentionScores) / matmuls);
  }
  return {{"ratio", ratio}, {"T_breakeven", AttentionEqualLength(model, AttentionMask::kFull).value()}};
}

Json BlockRemat(const Json& given) {
  return {{"bytes", planner::SavedActivationBytes(Number(given, "tokens"), Number(given, "layers"),
                                                  Number(given, "D") * Number(given, "saved_per_layer"),
                                                  Number(given, "bytes_per_element"))},
          {"flops_multiplier", planner::FullRecomputeFlops(/*active_parameter_count=*/1, /*tokens=*/1)}};
}

Json LongCache(const Json& given) {
  constexpr int64_t kHeadDim = 128;
  const Json model = {{"L", given.at("L")}, {"K", Count(given, "KH") / kHeadDim}, {"H", kHeadDim}};
  return {{"bytes", CacheBytes(model, Count(given, "S"), DataType::kInt8)}};
}

Json RecomputedScores(const Json& given) {
  roofline::AttentionOp op;
  op.batch_size = Count(given, "B");
  op.query_length = Count(given, "T");
  op.key_length = op.query_length;
  op.query_head_count = Count(given, "N");
  op.kv_head_count = op.query_head_count;
  op.head_dim = Count(given, "H");
  return {{"extra_flops", roofline::AttentionFlops(op)}};
}

Json SparseCriticalBatch(const Json& given) {
  const double sparsity = Number(given, "experts") / Number(given, "active_experts");
  return {{"batch_tokens", roofline::CriticalBatch(Number(given, "flops_per_s"), Number(given, "hbm_bytes_per_s"),
                                                   BytesPerElement(DataType::kInt8), sparsity)}};
}

Json ExpertParameters(const Json& given) {
  transformer::MixtureOfExperts experts;
  experts.expert_count = static_cast<int32_t>(Count(given, "E"));
  experts.experts_per_token = static_cast<int32_t>(Count(given, "k"));
  experts.expert_ffn_dim = static_cast<int32_t>(Count(given, "F"));
  transformer::Architecture architecture = ModelOf({{"L", 1}, {"D", given.at("D")}});
  architecture.layer_groups[0].layers[0].feed_forward = experts;
  const transformer::ParameterCount count = CountParameters(architecture).value();
  const double total = static_cast<double>(count.components[static_cast<size_t>(Component::kFeedForward)]);
  const double active = total - static_cast<double>(count.total_count - count.active_count);
  return {{"total", total}, {"active", active}, {"sparsity", total / active}};
}

}  // namespace

Answers TransformerAnswers() {
  return {
      {"transformers.matmul_flops", Products},
      {"transformers.einsum_flops", [](const Json& given) { return Einsum(given, "C", "D"); }},
      {"transformers.attn_layer", AttentionBlock},
      {"transformers.unembed", OutputHead},
      {"transformers.attn_fraction_d4608", AttentionFraction},
      {"transformers.remat_block", BlockRemat},
      {"transformers.kv_8k_mha", LongCache},
      {"transformers.q3", [](const Json& given) { return Einsum(given, "A", "B"); }},
      {"transformers.q6", RecomputedScores},
      {"transformers.q8", SparseCriticalBatch},
      {"transformers.moe_params", ExpertParameters},
      {"transformers.train_flops_rule",
       [](const Json& given) -> Json {
         return {{"train_flops", planner::TrainingFlops(Number(given, "params"), Number(given, "tokens"))},
                 {"inference_flops_per_token", planner::ForwardFlops(Number(given, "params"), /*tokens=*/1)}};
       }},
  };
}

}  // namespace sliceplan::book
