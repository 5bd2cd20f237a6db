// Layers in words, for people who check what was understood of their model.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/transformer/describe.h"

namespace sliceplan::transformer {
namespace {

struct AttentionWords {
  std::string operator()(const NoAttention&) const { return "no attention"; }
  std::string operator()(const GroupedQueryAttention& attention) const {
    std::string reach = "full";
    if (attention.sliding_window > 0) reach = absl::StrCat("sliding (", attention.sliding_window, ")");
    if (attention.chunked_window > 0) reach = absl::StrCat("chunked (", attention.chunked_window, ")");
    std::string words = absl::StrCat(reach, " attention, ", attention.query_head_count, " heads of ",
                                     attention.head_dim, " over ", attention.kv_head_count, " KV heads");
    if (attention.value_head_dim > 0 && attention.value_head_dim != attention.head_dim) {
      absl::StrAppend(&words, " (values of ", attention.value_head_dim, ")");
    }
    if (attention.shares_earlier_kv) absl::StrAppend(&words, ", cache of an earlier layer");
    return words;
  }
  std::string operator()(const LatentAttention& attention) const {
    std::string words =
        absl::StrCat("latent attention, ", attention.query_head_count, " heads of ", attention.qk_nope_head_dim, " + ",
                     attention.qk_rope_head_dim, ", latent of ", attention.kv_lora_rank);
    if (attention.indexer_head_count > 0) absl::StrAppend(&words, ", best ", attention.indexer_top_k, " keys");
    return words;
  }
  std::string operator()(const CompressedAttention& attention) const {
    std::string words = absl::StrCat("sliding (", attention.sliding_window, ") attention, ", attention.query_head_count,
                                     " heads of ", attention.head_dim, " over one key");
    if (attention.compression > 0) absl::StrAppend(&words, ", and a past compressed ", attention.compression, " to 1");
    if (attention.indexer_head_count > 0) absl::StrAppend(&words, ", best ", attention.indexer_top_k, " entries");
    return words;
  }
  std::string operator()(const LinearAttention& attention) const {
    using Kind = LinearAttention::Kind;
    switch (attention.kind) {
      case Kind::kMamba1: return absl::StrCat("Mamba, width ", attention.inner_dim, ", state ", attention.key_head_dim);
      case Kind::kMamba2:
        return absl::StrCat("Mamba-2, ", attention.value_head_count, " heads of ", attention.value_head_dim, ", state ",
                            attention.key_head_dim);
      case Kind::kGatedDelta: return Heads("gated delta rule", attention);
      case Kind::kKimiDelta: return Heads("Kimi delta attention", attention);
      case Kind::kLightning: return Heads("lightning attention", attention);
    }
    return "";
  }
  static std::string Heads(const char* name, const LinearAttention& attention) {
    return absl::StrCat(name, ", ", attention.value_head_count, " heads, state ", attention.key_head_dim, " x ",
                        attention.value_head_dim);
  }
};

struct FeedForwardWords {
  std::string operator()(const NoFeedForward&) const { return "no MLP"; }
  std::string operator()(const DenseFeedForward& dense) const {
    return absl::StrCat(dense.gated ? "gated" : "plain", " MLP of ", dense.ffn_dim);
  }
  std::string operator()(const MixtureOfExperts& moe) const {
    std::string words =
        absl::StrCat(moe.experts_per_token, " of ", moe.expert_count, " experts of ", moe.expert_ffn_dim);
    if (moe.shared_expert_count > 0) {
      absl::StrAppend(&words, " and ", moe.shared_expert_count, " shared of ",
                      moe.shared_expert_ffn_dim > 0 ? moe.shared_expert_ffn_dim : moe.expert_ffn_dim);
    }
    if (moe.dense_residual_ffn_dim > 0) absl::StrAppend(&words, " beside an MLP of ", moe.dense_residual_ffn_dim);
    if (moe.latent_dim > 0) absl::StrAppend(&words, " in a latent of ", moe.latent_dim);
    return words;
  }
};

}  // namespace

std::vector<LayerKind> LayerKindsOf(const Architecture& architecture) {
  std::vector<LayerKind> kinds;
  std::vector<const Layer*> prototypes;
  for (const LayerGroup& group : architecture.layer_groups) {
    for (const Layer& layer : group.layers) {
      size_t kind = 0;
      while (kind < prototypes.size() && !(*prototypes[kind] == layer)) ++kind;
      if (kind == prototypes.size()) {
        prototypes.push_back(&layer);
        kinds.push_back(
            {0, std::visit(AttentionWords{}, layer.attention), std::visit(FeedForwardWords{}, layer.feed_forward)});
      }
      kinds[kind].count += group.repeat_count;
    }
  }
  return kinds;
}

}  // namespace sliceplan::transformer
