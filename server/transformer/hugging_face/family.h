// What tells one decoder family from another. A family is a row of a table: the rules that its reference implementation
// applies without writing them into the config. Families whose layers follow other rules have a builder of their own.
#ifndef SLICEPLAN_SERVER_TRANSFORMER_HUGGING_FACE_FAMILY_H_
#define SLICEPLAN_SERVER_TRANSFORMER_HUGGING_FACE_FAMILY_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/transformer/architecture.h"
#include "server/transformer/hugging_face/config.h"

namespace sliceplan::transformer::hugging_face {

enum class NormStyle { kRms, kLayerNorm, kLayerNormWithoutBias, kWithoutWeight };

// A boolean key of the config and what its absence means; without a key, a fixed rule.
struct Flag {
  const char* key = nullptr;
  bool fallback = false;
};

inline constexpr Flag kAlways = {nullptr, true};

// Which layers attend to a window.
enum class WindowRule {
  kNone,         // no key is read
  kAllLayers,    // every layer, when `sliding_window` is given
  kAfterSwitch,  // only with `use_sliding_window`, from layer `max_window_layers` on
  kAlternate,    // even layers slide
  kPeriod,       // all but every `window_period`-th layer slide
};

// Which layers are mixtures of experts.
enum class MoeRule {
  kNever,
  kAllLayers,
  kAfterDense,  // from `first_k_dense_replace` on, every `moe_layer_freq`-th
  kSparseStep,  // (i + 1) mod `decoder_sparse_step` = 0 and not in `mlp_only_layers`
};

enum class SharedExperts {
  kNone,
  kFused,     // `n_shared_experts` x expert width as one MLP
  kAbsolute,  // `shared_expert_intermediate_size` and a gate
  kByWidth,   // `shared_intermediate_size`, no gate, 0: none
};

// Multi-token-prediction layers (`num_nextn_predict_layers`) that the family's checkpoints store.
enum class MtpRule {
  kNone,
  kSharedTables,  // they use the main model's embedding and head
  kOwnTables,     // they hold copies of both
};

struct MoeTraits {
  MoeRule rule = MoeRule::kNever;
  bool width_is_intermediate_size = false;  // no key of its own for the expert width
  SharedExperts shared = SharedExperts::kNone;
  bool gated = true;
  bool expert_bias = false;
  bool router_bias = false;
  Flag correction_bias = {};
};

struct DecoderTraits {
  const char* model_type = "";
  bool tied = false;  // when tie_word_embeddings is absent
  NormStyle norm = NormStyle::kRms;
  int32_t norms_per_layer = 2;
  Flag parallel_block = {};          // attention and MLP side by side
  bool parallel_drops_norm = false;  // which then needs one norm less
  Flag qkv_bias = {};
  Flag output_bias = {};
  GroupedQueryAttention::QkNorm qk_norm = GroupedQueryAttention::QkNorm::kNone;
  Flag qk_norm_on = {nullptr, true};
  int64_t default_head_dim = 0;  // 0: hidden / heads
  // Values that published files leave out because they equal the class default; 0: there are none, the key is required.
  int64_t default_vocab_size = 0;
  int64_t default_head_count = 0;
  int64_t default_kv_head_count = 0;  // 0: as many as query heads
  int64_t default_window = 0;         // when the key is absent, not when it is null
  int64_t default_positions = 0;
  bool sinks = false;
  bool gated = true;
  Flag mlp_bias = {};
  Flag head_bias = {};
  WindowRule window = WindowRule::kNone;
  int64_t window_period = 0;
  MoeTraits moe = {};
  MtpRule mtp = MtpRule::kNone;
  int64_t extra_parameters_per_layer = 0;
  bool stores_tied_table_twice = false;   // checkpoints usually hold the tied table a second time
  bool quantizes_mtp_projection = false;  // with the other linears
  bool rotary_buffers = false;  // files from before `rope_theta` was a key come with stored inverse frequencies
};

// Fills `architecture` from `config`; what is wrong goes to the config's report.
using BuildFunction = void (*)(Config& config, const DecoderTraits& traits, Architecture& architecture);

struct Family {
  DecoderTraits traits;
  BuildFunction build = nullptr;
};

// Tables of all families, one per file.
absl::Span<const Family> LlamaFamilies();       // llama_families.cc
absl::Span<const Family> MixtureFamilies();     // mixture_families.cc
absl::Span<const Family> GptFamilies();         // gpt_families.cc
absl::Span<const Family> GemmaFamilies();       // gemma_families.cc
absl::Span<const Family> LatentFamilies();      // latent_families.cc
absl::Span<const Family> CompressedFamilies();  // compressed_families.cc
absl::Span<const Family> HybridFamilies();      // hybrid_families.cc
absl::Span<const Family> PatternFamilies();     // pattern_families.cc
absl::Span<const Family> OptFamilies();         // opt_families.cc
absl::Span<const Family> LlamaVariants();       // llama_variants.cc
absl::Span<const Family> MixtureVariants();     // mixture_variants.cc

// Null when no table knows the name.
const Family* FindFamily(absl::string_view model_type);

// model_type of the class in `architectures`, for files that have no model_type: "LlamaForCausalLM" -> "llama". Empty:
// unknown.
absl::string_view ModelTypeOfClass(absl::string_view class_name);

// Why a model_type is refused although it is known; empty: it is not. In refusals.cc.
absl::string_view WhyUnsupported(absl::string_view model_type);

}  // namespace sliceplan::transformer::hugging_face

#endif  // SLICEPLAN_SERVER_TRANSFORMER_HUGGING_FACE_FAMILY_H_
