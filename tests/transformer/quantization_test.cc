// Bytes of quantised checkpoints, against sums written out and published sizes.
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/transformer/hugging_face/import.h"
#include "server/transformer/hugging_face/module_pattern.h"
#include "server/transformer/parameter_count.h"
#include "tests/transformer/model_table.h"

namespace sliceplan::transformer {
namespace {

using hugging_face::ParseModulePattern;

constexpr int64_t kD = 256, kF = 512, kN = 8, kK = 2, kH = 32, kV = 1000, kL = 3;
constexpr int64_t kNorms = kL * 2 * kD + kD;
constexpr int64_t kTables = 2 * kV * kD;
// Elements of one layer's linears.
constexpr int64_t kLinears = kD * kN * kH * 2 + kD * kK * kH * 2 + 3 * kD * kF;

std::string Config(const std::string& quantization) {
  return absl::StrCat(R"({"model_type": "llama", "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 3,
    "num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 1000, "rope_theta": 1e4, "torch_dtype": "bfloat16",
    "quantization_config": )",
                      quantization, "}");
}

ParameterCount Count(const std::string& quantization) {
  return CountParameters(Imported(Config(quantization))).value();
}

struct Case {
  const char* name;
  const char* quantization;
  int64_t linear_bytes;  // of one layer, scales included
  int64_t scale_count;   // of one layer
};

// Rows of the seven linears: q 256, k 64, v 64, o 256, gate 512, up 512, down 256; columns: 256, but down 512.
constexpr int64_t kRows = 256 + 64 + 64 + 256 + 512 + 512 + 256;
constexpr int64_t kColumns = 6 * 256 + 512;
constexpr int64_t kRowsByGroups128 = (256 + 64 + 64 + 256 + 512 + 512) * 2 + 256 * 4;
constexpr int64_t kLinearCount = 7;

const Case kCases[] = {
    {"fp8_blocks", R"({"quant_method": "fp8", "weight_block_size": [128, 128]})",
     kLinears + 4 * (2 * 2 + 1 * 2 + 1 * 2 + 2 * 2 + 4 * 2 + 4 * 2 + 2 * 4), 2 * 2 + 2 + 2 + 4 + 8 + 8 + 8},
    {"fp8_tensor", R"({"quant_method": "fp8"})", kLinears + 4 * kLinearCount, kLinearCount},
    {"fp8_tensor_static", R"({"quant_method": "fp8", "activation_scheme": "static"})", kLinears + 8 * kLinearCount,
     kLinearCount},
    {"fbgemm_rows", R"({"quant_method": "fbgemm_fp8", "activation_scale_ub": 1200.0})", kLinears + 4 * kRows, kRows},
    {"awq", R"({"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": true, "version": "gemm"})",
     kLinears / 2 + kRowsByGroups128 * 2 + kRowsByGroups128 / 2, kRowsByGroups128},
    {"gptq", R"({"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": true, "sym": true})",
     kLinears / 2 + kRowsByGroups128 * 2 + kRowsByGroups128 / 2 + 4 * kColumns, kRowsByGroups128},
    {"gptq_8_bit_whole_rows", R"({"quant_method": "gptq", "bits": 8, "group_size": -1})",
     kLinears + kRows * 2 + kRows + 4 * kColumns, kRows},
    {"int8_channels",
     R"({"quant_method": "compressed-tensors", "format": "int-quantized", "config_groups": {"group_0": {"targets": ["Linear"],
         "weights": {"num_bits": 8, "type": "int", "strategy": "channel", "symmetric": true}}}, "ignore": ["lm_head"]})",
     kLinears + 2 * kRows, kRows},
    {"int4_groups_packed",
     R"({"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"group_0": {"targets": ["Linear"],
         "weights": {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128, "symmetric": true}}}})",
     kLinears / 2 + 2 * kRowsByGroups128 + 16 * kLinearCount, kRowsByGroups128},
    {"bitsandbytes_int8", R"({"quant_method": "bitsandbytes", "load_in_8bit": true})", kLinears + 4 * kRows, kRows},
    {"bitsandbytes_nf4", R"({"quant_method": "bitsandbytes", "load_in_4bit": true, "bnb_4bit_quant_type": "nf4"})",
     kLinears / 2 + kLinears / 64 * 4, kLinears / 64},
    {"modelopt_fp8", R"({"quant_method": "modelopt", "quant_algo": "FP8", "ignore": ["lm_head"]})",
     kLinears + 8 * kLinearCount, kLinearCount},
    {"modelopt_nvfp4", R"({"quant_method": "modelopt", "quant_algo": "NVFP4", "exclude_modules": ["lm_head"]})",
     kLinears / 2 + kLinears / 16 + 8 * kLinearCount, kLinears / 16},
};

class QuantizationTest : public testing::TestWithParam<Case> {};

TEST_P(QuantizationTest, BytesAreExact) {
  const ParameterCount parameters = Count(GetParam().quantization);
  EXPECT_EQ(parameters.checkpoint_bytes, kL * GetParam().linear_bytes + 2 * (kTables + kNorms));
  ASSERT_EQ(parameters.extras.size(), 1u);
  EXPECT_EQ(parameters.extras[0].kind, StoredExtra::Kind::kQuantizationScales);
  EXPECT_EQ(parameters.extras[0].count, kL * GetParam().scale_count);
  EXPECT_EQ(parameters.total_count, kL * kLinears + kTables + kNorms);
}

INSTANTIATE_TEST_SUITE_P(All, QuantizationTest, testing::ValuesIn(kCases),
                         [](const testing::TestParamInfo<Case>& info) { return std::string(info.param.name); });

TEST(QuantizationTest, PlainCheckpointsTakeTheirDtype) {
  const auto bytes = [](const char* dtype) {
    std::string text = Config("null");
    text.replace(text.find("bfloat16"), 8, dtype);
    return CountParameters(Imported(text))->checkpoint_bytes;
  };
  const int64_t count = kL * kLinears + kTables + kNorms;
  EXPECT_EQ(bytes("bfloat16"), 2 * count);
  EXPECT_EQ(bytes("float16"), 2 * count);
  EXPECT_EQ(bytes("float32"), 4 * count);
}

TEST(QuantizationTest, ModulesThatStayAsTheyAre) {
  const int64_t all = Count(R"({"quant_method": "fp8"})").checkpoint_bytes;
  const auto saved = [all](const char* modules) {
    return Count(absl::StrCat(R"({"quant_method": "fp8", "modules_to_not_convert": [)", modules, "]}"))
               .checkpoint_bytes -
           all;
  };
  const int64_t attention = 2 * kD * kN * kH + 2 * kD * kK * kH;
  const int64_t down = kD * kF;
  EXPECT_EQ(saved("\"lm_head\""), 0);
  EXPECT_EQ(saved("\"model.embed_tokens\""), 0);
  EXPECT_EQ(saved("\"model.layers.*.self_attn\""), kL * (attention - 4 * 4));
  EXPECT_EQ(saved("\"re:.*self_attn.*\""), kL * (attention - 4 * 4));
  EXPECT_EQ(saved("\"model.layers.1.self_attn\""), attention - 4 * 4);
  EXPECT_EQ(saved("\"model.layers.0.mlp.down_proj\""), down - 4);
  EXPECT_EQ(saved("\"model.layers.0.mlp.down_proj\", \"model.layers.2.mlp.down_proj\""), 2 * (down - 4));
  EXPECT_EQ(saved("\"down_proj\""), kL * (down - 4));
  EXPECT_EQ(saved("\"model.layers.*.mlp.gate_up_proj\""), kL * 2 * (down - 4));
  EXPECT_EQ(saved("\"model.layers.77.mlp.down_proj\""), 0);
}

TEST(QuantizationTest, UnknownMethodIsAWarning) {
  const ImportResult result = ImportHuggingFaceConfig(Config(R"({"quant_method": "sorcery"})"));
  ASSERT_TRUE(result.model.has_value());
  ASSERT_EQ(result.model->warnings.size(), 1u);
  EXPECT_EQ(result.model->warnings[0].field, "quantization_config.quant_method");
  EXPECT_EQ(CountParameters(result.model->architecture)->checkpoint_bytes, 2 * (kL * kLinears + kTables + kNorms));
}

// mlx: a scale and a bias of 16 bits for every group, in tables too.
TEST(QuantizationTest, MlxGroups) {
  const auto bytes = [](const char* more) {
    std::string text = Config(absl::StrCat(R"({"group_size": 64, "bits": 4)", more, "}"));
    text.insert(text.size() - 1, absl::StrCat(R"(, "quantization": {"group_size": 64, "bits": 4)", more, "}"));
    return CountParameters(Imported(text))->checkpoint_bytes;
  };
  constexpr int64_t kQuantized = kL * kLinears + kTables;
  EXPECT_EQ(bytes(""), kQuantized / 2 + kQuantized / 64 * 4 + 2 * kNorms);
  EXPECT_EQ(bytes(R"(, "mode": "affine")"), bytes(""));
  EXPECT_EQ(bytes(R"(, "lm_head": false)") - bytes(""), 2 * kV * kD - kV * kD / 2 - kV * kD / 64 * 4);
  EXPECT_EQ(bytes(R"(, "model.layers.1.mlp.down_proj": false)") - bytes(""),
            2 * kD * kF - kD * kF / 2 - kD * kF / 64 * 4);
}

TEST(QuantizationTest, FilesThatDoNotNameTheirMethod) {
  const std::string gptq = R"("bits": 4, "group_size": 128, "desc_act": false, "damp_percent": 0.01)";
  const std::string awq = R"("w_bit": 4, "q_group_size": 128, "zero_point": true, "version": "gemm")";
  const auto bytes = [](const std::string& quantization) { return Count(quantization).checkpoint_bytes; };
  EXPECT_EQ(bytes("{" + gptq + "}"), bytes(R"({"quant_method": "gptq", )" + gptq + "}"));
  EXPECT_EQ(bytes("{" + awq + "}"), bytes(R"({"quant_method": "awq", )" + awq + "}"));
  EXPECT_EQ(bytes(R"({"load_in_8bit": true})"), bytes(R"({"quant_method": "bitsandbytes", "load_in_8bit": true})"));
  const std::string groups = R"("config_groups": {"g": {"targets": ["Linear"],
      "weights": {"num_bits": 8, "type": "int", "strategy": "channel", "symmetric": true}}})";
  const int64_t named = bytes(R"({"quant_method": "compressed-tensors", )" + groups + "}");
  EXPECT_EQ(bytes("{" + groups + "}"), named);
  // The older name of the whole object.
  std::string older = Config("null");
  older.insert(older.size() - 1, ", \"compression_config\": {" + groups + "}");
  EXPECT_EQ(CountParameters(Imported(older))->checkpoint_bytes, named);
}

TEST(QuantizationTest, AutoRoundIsPackedLikeOthers) {
  const std::string values = R"("bits": 4, "group_size": 128, "packing_format": )";
  const ImportResult result =
      ImportHuggingFaceConfig(Config(R"({"quant_method": "auto-round", )" + values + R"("auto_round:auto_gptq"})"));
  ASSERT_TRUE(result.model.has_value());
  ASSERT_EQ(result.model->warnings.size(), 1u);
  EXPECT_EQ(result.model->warnings[0].kind, ImportWarning::Kind::kAssumedValue);
  EXPECT_EQ(CountParameters(result.model->architecture)->checkpoint_bytes,
            Count(R"({"quant_method": "gptq", "bits": 4, "group_size": 128})").checkpoint_bytes);
  EXPECT_EQ(Count(R"({"quant_method": "auto-round", )" + values + R"("auto_round:auto_awq"})").checkpoint_bytes,
            Count(R"({"quant_method": "awq", "bits": 4, "group_size": 128})").checkpoint_bytes);
}

TEST(QuantizationTest, BytesOfUnreadMethodsAreNotKnown) {
  for (const char* method : {"hqq", "torchao", "quark", "bitnet", "aqlm", "eetq"}) {
    const ImportResult result = ImportHuggingFaceConfig(Config(absl::StrCat(R"({"quant_method": ")", method, "\"}")));
    ASSERT_TRUE(result.model.has_value());
    ASSERT_EQ(result.model->warnings.size(), 1u);
    EXPECT_THAT(result.model->warnings[0].text, testing::HasSubstr(method));
    EXPECT_THAT(result.model->warnings[0].text, testing::HasSubstr("is not known"));
  }
}

TEST(QuantizationTest, UnreadModulesAreWarned) {
  const ImportResult result =
      ImportHuggingFaceConfig(Config(R"({"quant_method": "fp8", "modules_to_not_convert": ["model.layers.0.wings"]})"));
  ASSERT_TRUE(result.model.has_value());
  ASSERT_EQ(result.model->warnings.size(), 1u);
  EXPECT_THAT(result.model->warnings[0].text, testing::HasSubstr("wings"));
}

TEST(QuantizationTest, BadSizesAreViolations) {
  for (const char* quantization :
       {R"({"quant_method": "fp8", "weight_block_size": [0, 128]})",
        R"({"quant_method": "fp8", "weight_block_size": [128]})",
        R"({"quant_method": "fp8", "weight_block_size": 128})", R"({"quant_method": "awq", "bits": 3})",
        R"({"quant_method": "awq"})", R"({"quant_method": "compressed-tensors"})",
        R"({"quant_method": "compressed-tensors", "config_groups": {"g": 3}})",
        R"({"quant_method": "fp8", "modules_to_not_convert": "lm_head"})", R"({"quant_method": 8})"}) {
    const ImportResult result = ImportHuggingFaceConfig(Config(quantization));
    EXPECT_FALSE(result.model.has_value()) << quantization;
    EXPECT_FALSE(result.violations.empty()) << quantization;
  }
}

// Thousands of exceptions must not make counting slow.
TEST(QuantizationTest, ManyExceptions) {
  std::string modules = "\"lm_head\"";
  for (int i = 0; i < 4096; ++i) absl::StrAppend(&modules, ", \"model.layers.", i, ".mlp.down_proj\"");
  std::string text = Config(absl::StrCat(R"({"quant_method": "fp8", "modules_to_not_convert": [)", modules, "]}"));
  text.replace(text.find("\"num_hidden_layers\": 3"), 22, "\"num_hidden_layers\": 4096");
  const ParameterCount parameters = CountParameters(Imported(text)).value();
  const int64_t quantized = kLinears - kD * kF;
  EXPECT_EQ(parameters.checkpoint_bytes, 4096 * (quantized + 4 * 6 + 2 * kD * kF) + 2 * (kTables + 4096 * 2 * kD + kD));
}

TEST(ModulePatternTest, Classes) {
  const auto classes = [](const char* text) {
    std::vector<WeightClass> found;
    for (const UnquantizedWeight& weight : ParseModulePattern(text).weights) found.push_back(weight.weight_class);
    return found;
  };
  using testing::ElementsAre;
  using testing::IsEmpty;
  EXPECT_THAT(classes("lm_head"), ElementsAre(WeightClass::kHead));
  EXPECT_THAT(classes("model.layers.3.mlp.gate"), ElementsAre(WeightClass::kRouter));
  EXPECT_THAT(classes("re:.*mlp.gate$"), ElementsAre(WeightClass::kRouter));
  EXPECT_THAT(classes("model.layers.3.mlp.shared_expert_gate"), ElementsAre(WeightClass::kRouter));
  EXPECT_THAT(classes("model.layers.3.mlp.shared_experts.up_proj"), ElementsAre(WeightClass::kSharedExpert));
  EXPECT_THAT(classes("model.layers.3.mlp.experts.7.up_proj"), ElementsAre(WeightClass::kExpert));
  EXPECT_THAT(classes("model.layers.*.self_attn.kv_b_proj"), ElementsAre(WeightClass::kAttention));
  EXPECT_THAT(classes("model.layers.61.eh_proj"), ElementsAre(WeightClass::kMtpProjection));
  EXPECT_THAT(classes("model.norm"), IsEmpty());
  EXPECT_TRUE(ParseModulePattern("model.norm").is_understood);
  EXPECT_TRUE(ParseModulePattern("vision_tower").is_outside_language_model);
  for (const char* text : {"", ".", "re:", "***", "re:[", "layers.99999999999999999999.mlp"}) ParseModulePattern(text);
}

}  // namespace
}  // namespace sliceplan::transformer
