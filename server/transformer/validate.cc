#include "server/transformer/validate.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/transformer/layer_operations.h"

namespace sliceplan::transformer {
namespace {

constexpr int64_t kMaxNormCount = 16;
constexpr int64_t kMaxPerLayerInput = int64_t{1} << 16;
constexpr int64_t kMaxResidualStreams = 64;
constexpr int64_t kMaxCompression = int64_t{1} << 16;
constexpr int64_t kMaxExtraParameters = int64_t{1} << 40;
constexpr double kMaxCapacityFactor = 65536;
constexpr int64_t kMaxPositions = int64_t{1} << 31;

// Collects violations. Paths are built only when something is wrong: checking a sound architecture allocates nothing.
class Checker {
 public:
  void EnterLayer(size_t group, size_t layer) {
    group_ = static_cast<int64_t>(group);
    layer_ = static_cast<int64_t>(layer);
  }
  void EnterMtpLayer() { layer_ = kMtp; }
  void LeaveLayer() { layer_ = kNone; }

  void Add(absl::string_view field, std::string description, absl::string_view reason = "OUT_OF_RANGE") {
    hardware::Violation violation;
    violation.field = Path(field);
    violation.description = std::move(description);
    violation.reason = std::string(reason);
    violations_.push_back(std::move(violation));
  }

  bool InRange(absl::string_view field, int64_t value, int64_t low, int64_t high) {
    if (value >= low && value <= high) return true;
    Add(field, absl::StrCat("must be ", low, " to ", high, ", is ", value));
    return false;
  }

  std::vector<hardware::Violation> Take() { return std::move(violations_); }
  bool empty() const { return violations_.empty(); }

 private:
  static constexpr int64_t kNone = -1;
  static constexpr int64_t kMtp = -2;

  std::string Path(absl::string_view field) const {
    if (layer_ == kNone) return std::string(field);
    if (layer_ == kMtp) return absl::StrCat("mtp_layer.", field);
    return absl::StrCat("layer_groups[", group_, "].layers[", layer_, "].", field);
  }

  int64_t group_ = 0;
  int64_t layer_ = kNone;
  std::vector<hardware::Violation> violations_;
};

void CheckGroupedQuery(const GroupedQueryAttention& attention, Checker& check) {
  const bool heads =
      check.InRange("attention.grouped_query.query_head_count", attention.query_head_count, 1, kMaxHeadCount);
  const bool kv_heads =
      check.InRange("attention.grouped_query.kv_head_count", attention.kv_head_count, 1, kMaxHeadCount);
  const bool dim = check.InRange("attention.grouped_query.head_dim", attention.head_dim, 1, kMaxDim);
  check.InRange("attention.grouped_query.value_head_dim", attention.value_head_dim, 0, kMaxDim);
  check.InRange("attention.grouped_query.sliding_window", attention.sliding_window, 0, kMaxPositions);
  check.InRange("attention.grouped_query.chunked_window", attention.chunked_window, 0, kMaxPositions);
  if (attention.sliding_window > 0 && attention.chunked_window > 0) {
    check.Add("attention.grouped_query.chunked_window", "a layer has a sliding or a chunked window, not both",
              "CONFLICT");
  }
  if (heads && kv_heads && attention.query_head_count % attention.kv_head_count != 0) {
    check.Add("attention.grouped_query.kv_head_count",
              absl::StrCat(attention.query_head_count, " query heads do not divide over ", attention.kv_head_count,
                           " KV heads"),
              "NOT_DIVISIBLE");
  }
  if (heads && dim) {
    const int64_t widest = std::max(attention.head_dim, attention.value_head_dim);
    if (attention.query_head_count * widest > kMaxDim) {
      check.Add("attention.grouped_query.head_dim",
                absl::StrCat(attention.query_head_count, " heads of ", widest, " are wider than ", kMaxDim));
    }
  }
}

void CheckLatent(const LatentAttention& attention, Checker& check) {
  const bool heads = check.InRange("attention.latent.query_head_count", attention.query_head_count, 1, kMaxHeadCount);
  check.InRange("attention.latent.q_lora_rank", attention.q_lora_rank, 0, kMaxDim);
  check.InRange("attention.latent.kv_lora_rank", attention.kv_lora_rank, 1, kMaxDim);
  const bool nope = check.InRange("attention.latent.qk_nope_head_dim", attention.qk_nope_head_dim, 1, kMaxDim);
  const bool rope = check.InRange("attention.latent.qk_rope_head_dim", attention.qk_rope_head_dim, 0, kMaxDim);
  const bool value = check.InRange("attention.latent.v_head_dim", attention.v_head_dim, 1, kMaxDim);
  if (heads && nope && rope && value) {
    const int64_t widest =
        attention.qk_nope_head_dim + std::max<int64_t>(attention.qk_rope_head_dim, attention.v_head_dim);
    if (attention.query_head_count * widest > kMaxDim) {
      check.Add("attention.latent.query_head_count",
                absl::StrCat(attention.query_head_count, " heads of ", widest, " are wider than ", kMaxDim));
    }
  }
  if (check.InRange("attention.latent.indexer_head_count", attention.indexer_head_count, 0, kMaxHeadCount) &&
      attention.indexer_head_count > 0) {
    if (check.InRange("attention.latent.indexer_head_dim", attention.indexer_head_dim, 1, kMaxDim) &&
        static_cast<int64_t>(attention.indexer_head_count) * attention.indexer_head_dim > kMaxDim) {
      check.Add("attention.latent.indexer_head_dim", absl::StrCat("indexer heads are wider than ", kMaxDim, " in all"));
    }
    check.InRange("attention.latent.indexer_top_k", attention.indexer_top_k, 1, kMaxPositions);
  }
}

void CheckCompressed(const CompressedAttention& attention, Checker& check) {
  const bool heads =
      check.InRange("attention.compressed.query_head_count", attention.query_head_count, 1, kMaxHeadCount);
  const bool dim = check.InRange("attention.compressed.head_dim", attention.head_dim, 1, kMaxDim);
  check.InRange("attention.compressed.q_lora_rank", attention.q_lora_rank, 1, kMaxDim);
  check.InRange("attention.compressed.sliding_window", attention.sliding_window, 1, kMaxPositions);
  check.InRange("attention.compressed.compression", attention.compression, 0, kMaxCompression);
  const bool groups =
      check.InRange("attention.compressed.output_group_count", attention.output_group_count, 1, kMaxHeadCount);
  const bool rank = check.InRange("attention.compressed.output_lora_rank", attention.output_lora_rank, 1, kMaxDim);
  if (heads && dim && static_cast<int64_t>(attention.query_head_count) * attention.head_dim > kMaxDim) {
    check.Add("attention.compressed.head_dim", absl::StrCat("heads are wider than ", kMaxDim, " in all"));
  }
  if (groups && rank && static_cast<int64_t>(attention.output_group_count) * attention.output_lora_rank > kMaxDim) {
    check.Add("attention.compressed.output_lora_rank", absl::StrCat("groups are wider than ", kMaxDim, " in all"));
  }
  if (heads && groups && attention.query_head_count % attention.output_group_count != 0) {
    check.Add(
        "attention.compressed.output_group_count",
        absl::StrCat(attention.query_head_count, " heads do not divide over ", attention.output_group_count, " groups"),
        "NOT_DIVISIBLE");
  }
  if (check.InRange("attention.compressed.indexer_head_count", attention.indexer_head_count, 0, kMaxHeadCount) &&
      attention.indexer_head_count > 0) {
    if (check.InRange("attention.compressed.indexer_head_dim", attention.indexer_head_dim, 1, kMaxDim) &&
        static_cast<int64_t>(attention.indexer_head_count) * attention.indexer_head_dim > kMaxDim) {
      check.Add("attention.compressed.indexer_head_dim",
                absl::StrCat("indexer heads are wider than ", kMaxDim, " in all"));
    }
    check.InRange("attention.compressed.indexer_top_k", attention.indexer_top_k, 1, kMaxPositions);
  }
}

void CheckLinear(const LinearAttention& attention, Checker& check) {
  using Kind = LinearAttention::Kind;
  const bool mamba1 = attention.kind == Kind::kMamba1;
  const bool mamba2 = attention.kind == Kind::kMamba2;
  bool sizes = check.InRange("attention.linear.key_head_dim", attention.key_head_dim, 1, kMaxDim);
  if (mamba1 || mamba2) sizes &= check.InRange("attention.linear.inner_dim", attention.inner_dim, 1, kMaxDim);
  if (mamba1) check.InRange("attention.linear.dt_rank", attention.dt_rank, 1, kMaxDim);
  if (!mamba1) {
    sizes &= check.InRange("attention.linear.key_head_count", attention.key_head_count, 1, kMaxHeadCount);
    sizes &= check.InRange("attention.linear.value_head_count", attention.value_head_count, 1, kMaxHeadCount);
    sizes &= check.InRange("attention.linear.value_head_dim", attention.value_head_dim, 1, kMaxDim);
    if (sizes && attention.value_head_count % attention.key_head_count != 0) {
      check.Add("attention.linear.key_head_count",
                absl::StrCat(attention.value_head_count, " value heads do not divide over ", attention.key_head_count,
                             " key heads or groups"),
                "NOT_DIVISIBLE");
    }
    if (sizes && (static_cast<int64_t>(attention.key_head_count) * attention.key_head_dim > kMaxDim ||
                  static_cast<int64_t>(attention.value_head_count) * attention.value_head_dim > kMaxDim)) {
      check.Add("attention.linear.value_head_dim", absl::StrCat("heads are wider than ", kMaxDim, " in all"));
    }
    if (sizes && mamba2 &&
        static_cast<int64_t>(attention.value_head_count) * attention.value_head_dim != attention.inner_dim) {
      check.Add("attention.linear.inner_dim",
                absl::StrCat("must be heads x head dim = ",
                             static_cast<int64_t>(attention.value_head_count) * attention.value_head_dim, ", is ",
                             attention.inner_dim),
                "CONFLICT");
    }
  }
  check.InRange("attention.linear.conv_width", attention.conv_width, 0, 4096);
  check.InRange("attention.linear.chunk_size", attention.chunk_size, 0, 65536);
}

void CheckMoe(const MixtureOfExperts& moe, Checker& check) {
  if (check.InRange("feed_forward.mixture_of_experts.expert_count", moe.expert_count, 1, kMaxExpertCount)) {
    check.InRange("feed_forward.mixture_of_experts.experts_per_token", moe.experts_per_token, 1, moe.expert_count);
  }
  check.InRange("feed_forward.mixture_of_experts.expert_ffn_dim", moe.expert_ffn_dim, 1, kMaxDim);
  const bool shared_count =
      check.InRange("feed_forward.mixture_of_experts.shared_expert_count", moe.shared_expert_count, 0, kMaxExpertCount);
  const bool shared_dim =
      check.InRange("feed_forward.mixture_of_experts.shared_expert_ffn_dim", moe.shared_expert_ffn_dim, 0, kMaxDim);
  const int64_t one = moe.shared_expert_ffn_dim > 0 ? moe.shared_expert_ffn_dim : moe.expert_ffn_dim;
  if (shared_count && shared_dim && one > 0 && one <= kMaxDim && one * moe.shared_expert_count > kMaxDim) {
    check.Add("feed_forward.mixture_of_experts.shared_expert_count",
              absl::StrCat("shared experts are wider than ", kMaxDim, " in all"));
  }
  check.InRange("feed_forward.mixture_of_experts.dense_residual_ffn_dim", moe.dense_residual_ffn_dim, 0, kMaxDim);
  check.InRange("feed_forward.mixture_of_experts.latent_dim", moe.latent_dim, 0, kMaxDim);
  if (!(moe.capacity_factor >= 0 && moe.capacity_factor <= kMaxCapacityFactor)) {
    check.Add("feed_forward.mixture_of_experts.capacity_factor",
              absl::StrCat("must be 0 (dropless) to ", kMaxCapacityFactor, ", is ", moe.capacity_factor));
  }
  if (!(moe.load_imbalance_ratio >= 1 && moe.load_imbalance_ratio <= static_cast<double>(kMaxExpertCount))) {
    check.Add("feed_forward.mixture_of_experts.load_imbalance_ratio",
              absl::StrCat("must be 1 to ", kMaxExpertCount, ", is ", moe.load_imbalance_ratio));
  }
}

void CheckLayer(const Layer& layer, Checker& check) {
  if (const auto* grouped = std::get_if<GroupedQueryAttention>(&layer.attention)) CheckGroupedQuery(*grouped, check);
  if (const auto* latent = std::get_if<LatentAttention>(&layer.attention)) CheckLatent(*latent, check);
  if (const auto* linear = std::get_if<LinearAttention>(&layer.attention)) CheckLinear(*linear, check);
  if (const auto* compressed = std::get_if<CompressedAttention>(&layer.attention)) CheckCompressed(*compressed, check);
  if (const auto* dense = std::get_if<DenseFeedForward>(&layer.feed_forward)) {
    check.InRange("feed_forward.dense.ffn_dim", dense->ffn_dim, 1, kMaxDim);
  }
  if (const auto* moe = std::get_if<MixtureOfExperts>(&layer.feed_forward)) CheckMoe(*moe, check);
  check.InRange("per_layer_input_dim", layer.per_layer_input_dim, 0, kMaxPerLayerInput);
  check.InRange("residual_stream_count", layer.residual_stream_count, 1, kMaxResidualStreams);
  check.InRange("norms.count", layer.norms.count, 0, kMaxNormCount);
  check.InRange("extra_parameter_count", layer.extra_parameter_count, 0, kMaxExtraParameters);
}

// Widest layer without experts that the ranges allow, in multiples of kMaxDim x hidden_dim; generous.
constexpr double kDenseLayerWidth = 64;

// Upper bound of the parameters of one layer, cheap; in doubles, because products of legal sizes may not fit 64 bits.
double LayerParameterBound(const Layer& layer, double hidden_dim) {
  double count = static_cast<double>(layer.extra_parameter_count);
  if (const auto* moe = std::get_if<MixtureOfExperts>(&layer.feed_forward)) {
    count += 4.0 * moe->expert_count * std::max<double>(hidden_dim, moe->latent_dim) * moe->expert_ffn_dim;
  }
  return count + kDenseLayerWidth * static_cast<double>(kMaxDim) * hidden_dim;
}

double LayerParameters(const Layer& layer, int64_t hidden_dim) {
  const LayerOperations operations = OperationsOfLayer(layer, hidden_dim);
  double count = static_cast<double>(operations.norm_parameter_count + operations.other_parameter_count);
  for (const WeightMatmul& matmul : operations.matmuls) {
    count += static_cast<double>(matmul.k) * static_cast<double>(matmul.n) * std::max(matmul.expert_count, 1);
  }
  return count;
}

void CheckParameterCount(const Architecture& architecture, Checker& check) {
  double bound = architecture.mtp_layer_count * LayerParameterBound(architecture.mtp_layer, architecture.hidden_dim);
  for (const LayerGroup& group : architecture.layer_groups) {
    for (const Layer& layer : group.layers) {
      bound += group.repeat_count * LayerParameterBound(layer, architecture.hidden_dim);
    }
  }
  if (bound <= kMaxParameterCount) return;
  double count = architecture.mtp_layer_count * LayerParameters(architecture.mtp_layer, architecture.hidden_dim);
  for (const LayerGroup& group : architecture.layer_groups) {
    for (const Layer& layer : group.layers)
      count += group.repeat_count * LayerParameters(layer, architecture.hidden_dim);
  }
  if (count > kMaxParameterCount) {
    check.Add("layer_groups", absl::StrCat("more than ", kMaxParameterCount, " parameters in all"));
  }
}

void CheckSharing(const Architecture& architecture, Checker& check) {
  bool has_own_cache = false;
  for (size_t group = 0; group < architecture.layer_groups.size(); ++group) {
    const LayerGroup& layer_group = architecture.layer_groups[group];
    for (size_t i = 0; i < layer_group.layers.size(); ++i) {
      const auto* attention = std::get_if<GroupedQueryAttention>(&layer_group.layers[i].attention);
      if (attention == nullptr) continue;
      if (attention->shares_earlier_kv && !has_own_cache) {
        check.EnterLayer(group, i);
        check.Add("attention.grouped_query.shares_earlier_kv", "no earlier layer has a cache to share", "CONFLICT");
        check.LeaveLayer();
      }
      has_own_cache |= !attention->shares_earlier_kv;
    }
  }
}

}  // namespace

std::vector<hardware::Violation> Validate(const Architecture& architecture) {
  Checker check;
  check.InRange("hidden_dim", architecture.hidden_dim, 1, kMaxDim);
  check.InRange("vocab_size", architecture.vocab_size, 1, kMaxDim);
  check.InRange("embedding_dim", architecture.embedding_dim, 0, kMaxDim);
  if (architecture.head_output_count != -1) {
    check.InRange("head_output_count", architecture.head_output_count, 0, kMaxDim);
  }
  check.InRange("per_layer_vocab_size", architecture.per_layer_vocab_size, 0, kMaxDim);
  check.InRange("learned_position_count", architecture.learned_position_count, 0, kMaxDim);
  check.InRange("final_norm.count", architecture.final_norm.count, 0, kMaxNormCount);
  check.InRange("max_position_count", architecture.max_position_count, 0, kMaxPositions);
  check.InRange("mtp_layer_count", architecture.mtp_layer_count, 0, kMaxMtpLayerCount);

  int64_t layer_count = 0;
  int64_t pattern_count = 0;
  for (size_t group = 0; group < architecture.layer_groups.size(); ++group) {
    const LayerGroup& layer_group = architecture.layer_groups[group];
    const int64_t repeats = layer_group.repeat_count;
    if (repeats < 1 || repeats > kMaxLayerCount) {
      check.Add(absl::StrCat("layer_groups[", group, "].repeat_count"),
                absl::StrCat("must be 1 to ", kMaxLayerCount, ", is ", repeats));
      continue;
    }
    if (layer_group.layers.empty()) {
      check.Add(absl::StrCat("layer_groups[", group, "].layers"), "must name at least one layer", "REQUIRED");
      continue;
    }
    pattern_count += static_cast<int64_t>(layer_group.layers.size());
    if (pattern_count > kMaxLayerCount) break;
    layer_count += repeats * static_cast<int64_t>(layer_group.layers.size());
    for (size_t i = 0; i < layer_group.layers.size(); ++i) {
      check.EnterLayer(group, i);
      CheckLayer(layer_group.layers[i], check);
    }
    check.LeaveLayer();
  }
  if (pattern_count > kMaxLayerCount || layer_count > kMaxLayerCount) {
    check.Add("layer_groups", absl::StrCat("more than ", kMaxLayerCount, " layers in all"));
  } else if (architecture.layer_groups.empty()) {
    check.Add("layer_groups", "must hold at least one group of layers", "REQUIRED");
  }
  if (architecture.mtp_layer_count > 0) {
    check.EnterMtpLayer();
    CheckLayer(architecture.mtp_layer, check);
    check.LeaveLayer();
  }
  if (!check.empty()) return check.Take();

  CheckSharing(architecture, check);
  CheckParameterCount(architecture, check);
  return check.Take();
}

}  // namespace sliceplan::transformer
