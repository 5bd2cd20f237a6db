// Kinds of configs that an importer easily misreads, each with a config as small as it gets.
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/transformer/flops.h"
#include "server/transformer/hugging_face/import.h"
#include "server/transformer/kv_cache.h"
#include "server/transformer/parameter_count.h"
#include "tests/transformer/model_table.h"

namespace sliceplan::transformer {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr int64_t kD = 64, kF = 256, kV = 1000, kL = 4;
constexpr int64_t kGroupedLinears = kD * kD * 2 + kD * 16 * 2;  // 2 KV heads of 8

// The sizes of a small model under the usual names, the rest as given: `"model_type": "x"`.
std::string Small(const std::string& more) {
  return absl::StrCat(R"({"hidden_size": 64, "intermediate_size": 256, "num_hidden_layers": 4, "num_attention_heads": 8,
    "num_key_value_heads": 2, "vocab_size": 1000, "max_position_embeddings": 65536, "rms_norm_eps": 1e-5, )",
                      more, "}");
}

std::vector<std::string> WarnedFields(const std::string& text) {
  std::vector<std::string> fields;
  const ImportResult result = ImportHuggingFaceConfig(text);
  EXPECT_TRUE(result.model.has_value()) << text;
  if (!result.model) return fields;
  for (const ImportWarning& warning : result.model->warnings) fields.push_back(warning.field);
  return fields;
}

ParameterCount Count(const std::string& text) { return CountParameters(Imported(text)).value(); }

int32_t WindowOf(const Architecture& architecture, size_t layer) {
  std::vector<Layer> layers;
  for (const LayerGroup& group : architecture.layer_groups) {
    for (int32_t i = 0; i < group.repeat_count; ++i) {
      layers.insert(layers.end(), group.layers.begin(), group.layers.end());
    }
  }
  return std::get<GroupedQueryAttention>(layers.at(layer).attention).sliding_window;
}

TEST(ImportKindsTest, MptHasAPositionTableOnlyWithoutAlibiAndRotary) {
  const auto positions = [](const char* attention) {
    return Imported(
               absl::StrCat(R"({"model_type": "mpt", "d_model": 64, "n_heads": 8, "n_layers": 4, "max_seq_len": 2048,
        "vocab_size": 1000, "learned_pos_emb": true, "attn_config": )",
                            attention, "}"))
        .learned_position_count;
  };
  EXPECT_EQ(positions("{\"alibi\": true}"), 0);
  EXPECT_EQ(positions("{\"rope\": true}"), 0);
  EXPECT_EQ(positions("{\"alibi\": false}"), 2048);
  EXPECT_EQ(positions("{}"), 2048);
}

struct Head {
  const char* config;
  int64_t outputs;
  bool bias = false;
};

// A classifier and a model without a head; the table is never tied to either.
TEST(ImportKindsTest, HeadsOfClasses) {
  for (const Head& head : std::vector<Head>{
           {R"("model_type": "llama", "architectures": ["LlamaForCausalLM"])", kV},
           {R"("model_type": "llama")", kV},
           {R"("model_type": "llama", "architectures": ["LlamaModel"])", 0},
           {R"("model_type": "mistral", "architectures": ["MistralModel"])", 0},
           {R"("model_type": "llama", "architectures": ["LlamaModel"], "tie_word_embeddings": true)", 0},
           {R"("model_type": "qwen2", "architectures": ["Qwen2ForRewardModel"])", 0},
           {R"("model_type": "internlm2", "architectures": ["InternLM2ForRewardModel"])", 1},
           {R"("model_type": "llama", "architectures": ["LlamaForSequenceClassification"])", 2},
           {R"("model_type": "llama", "architectures": ["LlamaForSequenceClassification"], "num_labels": 5)", 5},
           {R"("model_type": "llama", "architectures": ["LlamaForSequenceClassification"], "id2label": {"0": "x"})", 1},
           {R"("model_type": "llama", "architectures": ["LlamaForTokenClassification"], "num_labels": 9)", 9, true},
           {R"("model_type": "llama", "architectures": ["LlamaForQuestionAnswering"])", 2, true}}) {
    SCOPED_TRACE(head.config);
    const std::string text = Small(head.config);
    const Architecture architecture = Imported(text);
    const ParameterCount parameters = Count(text);
    const int64_t count = head.outputs * kD + (head.bias ? head.outputs : 0);
    EXPECT_EQ(parameters.components[static_cast<size_t>(Component::kOutputHead)], count);
    EXPECT_EQ(parameters.components[static_cast<size_t>(Component::kEmbedding)], kV * kD);
    EXPECT_EQ(parameters.checkpoint_bytes, 2 * parameters.stored_count);
    const ModelOperations model = OperationsOf(architecture).value();
    const FlopsPerToken flops = CountFlops(model, 128, AttentionMask::kCausal);
    EXPECT_EQ(flops.components[static_cast<size_t>(Component::kOutputHead)],
              static_cast<double>(2 * head.outputs * kD));
    for (const TensorSize& tensor : LargestTensors(model, 100)) EXPECT_GT(tensor.count, 0) << tensor.name;
    if (head.outputs == kV) {
      EXPECT_THAT(WarnedFields(text), Not(Contains("architectures")));
    } else {
      EXPECT_THAT(WarnedFields(text), Contains("architectures"));
    }
  }
}

TEST(ImportKindsTest, ClassesAroundALanguagePartKeepItsHead) {
  const std::string nested = absl::StrCat(R"({"model_type": "qwen2_5_omni", "architectures": ["Qwen2_5OmniModel"],
      "text_config": )",
                                          Small(R"("model_type": "llama")"), "}");
  EXPECT_EQ(Imported(nested).head_output_count, -1);
}

// Only files of published models that are known to hold a second table may claim one.
TEST(ImportKindsTest, TiedQwen3HasOneTable) {
  const ParameterCount parameters =
      Count(Small(R"("model_type": "qwen3", "head_dim": 8, "tie_word_embeddings": true)"));
  EXPECT_EQ(parameters.stored_count, parameters.total_count);
}

TEST(ImportKindsTest, OptNormsWithoutWeights) {
  const auto norms = [](const char* more) {
    return Count(Small(absl::StrCat(R"("model_type": "opt", "ffn_dim": 256)", more)))
        .components[static_cast<size_t>(Component::kNorm)];
  };
  EXPECT_EQ(norms(""), (2 * kL + 1) * 2 * kD);
  EXPECT_EQ(norms(R"(, "layer_norm_elementwise_affine": false)"), 0);
}

TEST(ImportKindsTest, SwitchesThatTakeSomethingAwayAreNews) {
  const std::string biased = R"("model_type": "qwen2", )";  // with biases
  EXPECT_THAT(WarnedFields(Small(biased + R"("use_wings": false)")), IsEmpty());
  EXPECT_THAT(WarnedFields(Small(biased + R"("wing_norm": false)")), ElementsAre("wing_norm"));
  EXPECT_THAT(WarnedFields(Small(biased + R"("norm_affine": false)")), ElementsAre("norm_affine"));
  EXPECT_THAT(WarnedFields(Small(biased + R"("use_bias": false)")), ElementsAre("use_bias"));
  // Where there is no bias anyway it is none.
  EXPECT_THAT(WarnedFields(Small(R"("model_type": "mistral", "sliding_window": null, "use_bias": false)")), IsEmpty());
}

struct Window {
  const char* model_type;
  const char* more;
  int32_t tokens;
  std::vector<size_t> sliding, full;  // layers of each kind
};

TEST(ImportKindsTest, WindowsOfTheClassUnlessNull) {
  for (const Window& window :
       std::vector<Window>{{"mistral", "", 4096, {0, 1, 3}, {}},
                           {"gemma2", R"(, "head_dim": 8)", 4096, {0, 2}, {1, 3}},
                           {"gemma3_text", R"(, "head_dim": 8)", 4096, {0, 1, 3}, {}},
                           {"cohere2", "", 4096, {0, 1, 2}, {3}},
                           {"olmo3", "", 4096, {0, 1, 2}, {3}},
                           {"gpt_oss", R"(, "num_local_experts": 4, "num_experts_per_tok": 2)", 128, {0, 2}, {1, 3}},
                           {"cwm",
                            R"(, "head_dim": 8, "layer_types":
               ["full_attention", "sliding_attention", "sliding_attention", "sliding_attention"])",
                            8192,
                            {1, 3},
                            {0}}}) {
    SCOPED_TRACE(window.model_type);
    const std::string text = absl::StrCat("\"model_type\": \"", window.model_type, "\"", window.more);
    const Architecture architecture = Imported(Small(text));
    for (const size_t layer : window.sliding) EXPECT_EQ(WindowOf(architecture, layer), window.tokens);
    for (const size_t layer : window.full) EXPECT_EQ(WindowOf(architecture, layer), 0);
    EXPECT_THAT(WarnedFields(Small(text)), Contains("sliding_window"));
    if (std::string(window.more).find("layer_types") != std::string::npos) continue;
    const std::string null_text = absl::StrCat(text, ", \"sliding_window\": null");
    EXPECT_EQ(WindowOf(Imported(Small(null_text)), 0), 0);
    EXPECT_THAT(WarnedFields(Small(null_text)), Not(Contains("sliding_window")));
  }
}

TEST(ImportKindsTest, KvHeadsOfFalcon) {
  const auto heads = [](const char* more) {
    const Architecture architecture = Imported(absl::StrCat(
        R"({"model_type": "RefinedWeb", "hidden_size": 64, "n_layer": 4, "n_head": 8, "vocab_size": 1000)", more, "}"));
    const Layer& layer = architecture.layer_groups.front().layers.front();
    return std::pair{std::get<GroupedQueryAttention>(layer.attention).kv_head_count, layer.norms.count};
  };
  EXPECT_EQ(heads(R"(, "n_head_kv": 2)"), (std::pair{2, 2}));  // the first release of the large models
  EXPECT_EQ(heads(R"(, "multi_query": true)"), (std::pair{1, 1}));
  EXPECT_EQ(heads(R"(, "multi_query": true, "n_head_kv": 8)"), (std::pair{1, 1}));
  EXPECT_EQ(heads(R"(, "multi_query": false, "n_head_kv": 8)"), (std::pair{8, 1}));
  EXPECT_EQ(heads(R"(, "new_decoder_architecture": true, "num_kv_heads": 2)"), (std::pair{2, 2}));
  EXPECT_EQ(heads(R"(, "new_decoder_architecture": false, "n_head_kv": 8)"), (std::pair{1, 1}));
}

TEST(ImportKindsTest, MiniCpmWithExperts) {
  const ParameterCount parameters =
      Count(Small(R"("model_type": "minicpm", "num_experts": 4, "num_experts_per_tok": 2)"));
  EXPECT_EQ(parameters.total_count, kV * kD + kD + kL * (kGroupedLinears + 2 * kD + 4 * kD + 4 * 3 * kD * kF));
}

TEST(ImportKindsTest, NestedPartsRelyOnClassDefaults) {
  const std::string nested = R"({"model_type": "llava", "text_config": {"model_type": "llama", "vocab_size": 1000}})";
  const Architecture architecture = Imported(nested);
  EXPECT_EQ(architecture.hidden_dim, 4096);
  EXPECT_EQ(architecture.LayerCount(), 32);
  EXPECT_EQ(architecture.vocab_size, 1000);
  EXPECT_THAT(architecture.stored_buffers, IsEmpty());
  EXPECT_THAT(WarnedFields(nested), ElementsAre("text_config.hidden_size", "text_config.intermediate_size",
                                                "text_config.num_hidden_layers", "text_config.num_attention_heads"));
  // A whole config names its sizes.
  EXPECT_FALSE(ImportHuggingFaceConfig(R"({"model_type": "llama", "vocab_size": 1000})").model.has_value());
}

TEST(ImportKindsTest, DeepseekWithPlainHeads) {
  const std::string text = Small(R"("model_type": "deepseek_v2", "use_mla": false, "kv_lora_rank": null,
      "qk_nope_head_dim": 0, "qk_rope_head_dim": 0, "v_head_dim": 0, "n_routed_experts": 4, "num_experts_per_tok": 2,
      "moe_intermediate_size": 32, "n_shared_experts": 1, "first_k_dense_replace": 1)");
  EXPECT_EQ(Count(text).total_count,
            2 * kV * kD + kD + kL * (kGroupedLinears + 2 * kD) + 3 * kD * kF + (kL - 1) * (4 * kD + 5 * 3 * kD * 32));
  EXPECT_THAT(WarnedFields(text), IsEmpty());
}

TEST(ImportKindsTest, KvHeadsOfEachLayer) {
  const std::string text =
      Small(R"("model_type": "deci", "architectures": ["DeciLMForCausalLM"], "num_key_value_heads_per_layer": )");
  std::string listed = text;
  listed.insert(listed.size() - 1, "[4, 4, 2, 1]");
  EXPECT_EQ(GrowingBytesPerToken(KvCacheOf(Imported(listed)), hardware::DataType::kBf16), (4 + 4 + 2 + 1) * 8 * 2 * 2);
  listed = text;
  listed.insert(listed.size() - 1, "[4, 4]");
  EXPECT_FALSE(ImportHuggingFaceConfig(listed).model.has_value());
}

// Three norms, a dense MLP of the hidden width beside the experts.
TEST(ImportKindsTest, Arctic) {
  EXPECT_EQ(Count(Small(R"("model_type": "arctic", "num_local_experts": 4, "num_experts_per_tok": 2,
      "moe_layer_frequency": 1, "parallel_attn_mlp_res": true, "use_residual": true)"))
                .total_count,
            2 * kV * kD + kD + kL * (kGroupedLinears + 3 * kD + 3 * kD * kD + 4 * kD + 4 * 3 * kD * kF));
}

// Biases of both output projections and of no other.
TEST(ImportKindsTest, Telechat) {
  const std::string text = R"({"model_type": "telechat", "hidden_size": 64, "ffn_hidden_size": 256, "n_layer": 4,
      "n_head": 8, "vocab_size": 1000, "layer_norm_epsilon": 1e-5, "tie_word_embeddings": false})";
  EXPECT_EQ(Count(text).total_count, 2 * kV * kD + kD + kL * (4 * kD * kD + 2 * kD + 3 * kD * kF + 2 * kD));
  nlohmann::json untold = nlohmann::json::parse(text);
  untold.erase("tie_word_embeddings");
  EXPECT_EQ(ImportHuggingFaceConfig(untold.dump()).violations.front().field, "tie_word_embeddings");
}

struct Unsupported {
  const char* config;
  const char* field;
};

TEST(ImportKindsTest, WhatAFamilyDoesNotModelIsRefused) {
  for (const Unsupported& row : std::vector<Unsupported>{
           {R"("model_type": "arctic", "num_local_experts": 4, "num_experts_per_tok": 2, "use_residual": true,
              "parallel_attn_mlp_res": true)",
            "moe_layer_frequency"},
           {R"("model_type": "arctic", "num_local_experts": 4, "num_experts_per_tok": 2, "moe_layer_frequency": 1)",
            "parallel_attn_mlp_res"},
           {R"("model_type": "hunyuan_v1_moe", "num_experts": 4, "moe_topk": [1, 1, 1, 2])", "moe_topk"},
           {R"("model_type": "hunyuan_v1_moe", "num_experts": 4, "moe_topk": [1, 1], "use_cla": true)", "use_cla"},
           {R"("model_type": "molmo", "layer_norm_type": "default")", "layer_norm_type"},
           {R"("model_type": "jais", "n_inner": 256, "position_embedding_type": "rotary")", "position_embedding_type"},
           {R"("model_type": "git", "architectures": ["Grok1ForCausalLM"], "num_local_experts": 4,
              "num_experts_per_tok": 2, "moe_intermediate_size": 32, "sliding_window_size": 128)",
            "sliding_window_size"},
           {R"("model_type": "llama", "quantization": {"group_size": 64, "bits": 4, "mode": "mxfp4"})",
            "quantization.mode"},
           {R"("model_type": "llama", "quantization": {"group_size": 64, "bits": 3})", "quantization.bits"}}) {
    SCOPED_TRACE(row.config);
    const ImportResult result = ImportHuggingFaceConfig(Small(row.config));
    ASSERT_EQ(result.violations.size(), 1u);
    EXPECT_EQ(result.violations[0].field, row.field);
    EXPECT_EQ(result.violations[0].reason, "UNSUPPORTED_VALUE");
  }
}

// Everything that a model like Llama has is there, and something that it does not have.
TEST(ImportKindsTest, ForeignKeysOfUnknownFamilies) {
  for (const auto& [extra, word] : std::map<std::string, const char*>{
           {R"("mb_per_layer": 2)", "mb_per_layer"},
           {R"("conv_window": 2)", "conv_window"},
           {R"("num_swa_attention_heads": 8)", "num_swa_attention_heads"},
           {R"("expand_k": 0.5, "attn_mode": "chunk")", "expand_k"},
           {R"("mixer_types": ["a", "b"])", "mixer_types"},
           {R"("embedding_size": 32)", "embedding_size"},
           {R"("qk_layernorm": true)", "qk_layernorm"},
           {R"("qk_layernorm": false)", "qk_layernorm"},
           {R"("scale_embedding": true)", "scale_embedding"},
           {R"("norm_after": true)", "norm_after"},
           {R"("num_key_value_heads_per_layer": [1, 2])", "num_key_value_heads_per_layer"},
           {R"("num_nextn_predict_layers": 1)", "num_nextn_predict_layers"},
           {R"("sliding_window": 128)", "sliding_window"},
           {R"("num_experts": 8)", "num_experts"},
           {R"("final_logit_softcapping": 30.0)", "final_logit_softcapping"},
           {R"("routed_scaling_factor": 2.5)", "routed_scaling_factor"},
           {R"("hidden_act": "relu2")", "relu2"},
           {R"("rms_norm_eps": null, "layer_norm_eps": 1e-5)", "layer_norm_eps"},
           {R"("architectures": ["MysteryModel"])", "MysteryModel"},
           {R"("intermediate_size": null)", "intermediate_size"}}) {
    SCOPED_TRACE(extra);
    nlohmann::json config = nlohmann::json::parse(Small(R"("model_type": "mystery", "hidden_act": "silu")"));
    config.update(nlohmann::json::parse("{" + extra + "}"));
    const ImportResult result = ImportHuggingFaceConfig(config.dump());
    ASSERT_EQ(result.violations.size(), 1u);
    EXPECT_EQ(result.violations[0].reason, "MODEL_FAMILY_UNSUPPORTED");
    EXPECT_THAT(result.violations[0].description, HasSubstr(word));
    EXPECT_THAT(result.violations[0].description, HasSubstr("mystery"));
  }
  // Buffers of early Llama files are no property of strangers.
  EXPECT_THAT(Imported(Small(R"("model_type": "mystery")")).stored_buffers, IsEmpty());
  EXPECT_THAT(ImportHuggingFaceConfig("{}").violations[0].description, HasSubstr("no model_type is given"));
}

TEST(ImportKindsTest, KnownStrangersSayWhy) {
  for (const char* model_type :
       {"phi4flash", "baichuan_m1", "gla", "diffllama", "doge", "minicpm_sala", "ernie4_5_moe_vl"}) {
    const ImportResult result = ImportHuggingFaceConfig(Small(absl::StrCat("\"model_type\": \"", model_type, "\"")));
    ASSERT_EQ(result.violations.size(), 1u) << model_type;
    EXPECT_THAT(result.violations[0].description, HasSubstr("is not supported")) << model_type;
  }
  // The name of Grok 2's files is that of a vision model.
  nlohmann::json git_base = nlohmann::json::parse(Small(
      R"("model_type": "git", "architectures": ["GitForCausalLM"], "layer_norm_eps": 1e-12, "vision_config": {})"));
  git_base.erase("rms_norm_eps");
  const ImportResult git = ImportHuggingFaceConfig(git_base.dump());
  EXPECT_FALSE(git.model.has_value());
}

}  // namespace
}  // namespace sliceplan::transformer
