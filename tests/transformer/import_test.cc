// What an import refuses, assumes and says. The counts themselves are in published_models_test.cc.
#include "server/transformer/hugging_face/import.h"

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/transformer/parameter_count.h"
#include "tests/transformer/model_table.h"

namespace sliceplan::transformer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr char kLlama[] =
    R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 256, "num_hidden_layers": 2,
    "num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 1000, "rope_theta": 10000.0,
    "max_position_embeddings": 2048})";

// kLlama with one value replaced; `value` is JSON.
std::string With(absl::string_view key, absl::string_view value) {
  nlohmann::json config = nlohmann::json::parse(kLlama);
  std::string text = kLlama;
  text.pop_back();
  config.erase(std::string(key));
  text = config.dump();
  text.pop_back();
  return absl::StrCat(text, ", \"", key, "\": ", value, "}");
}

std::vector<std::string> Fields(const ImportResult& result) {
  std::vector<std::string> fields;
  for (const hardware::Violation& violation : result.violations) {
    fields.push_back(absl::StrCat(violation.field, " ", violation.reason));
  }
  return fields;
}

std::vector<std::string> WarnedFields(const ImportResult& result) {
  std::vector<std::string> fields;
  if (!result.model) return fields;
  for (const ImportWarning& warning : result.model->warnings) fields.push_back(warning.field);
  return fields;
}

TEST(ImportTest, PlainConfigHasNoWarnings) {
  const ImportResult result = ImportHuggingFaceConfig(kLlama);
  ASSERT_TRUE(result.model.has_value());
  EXPECT_THAT(result.violations, IsEmpty());
  EXPECT_THAT(result.model->warnings, IsEmpty());
  EXPECT_EQ(result.model->family, "llama");
  EXPECT_EQ(result.model->architecture.LayerCount(), 2);
  EXPECT_EQ(result.model->architecture.max_position_count, 2048);
}

struct BadText {
  const char* name;
  std::string text;
  const char* reason;
};

std::string Nested(int depth) {
  return absl::StrCat("{\"a\":", std::string(static_cast<size_t>(depth), '['),
                      std::string(static_cast<size_t>(depth), ']'), "}");
}

class BadTextTest : public testing::TestWithParam<BadText> {};

TEST_P(BadTextTest, IsRefusedWithOneReason) {
  const ImportResult result = ImportHuggingFaceConfig(GetParam().text);
  EXPECT_FALSE(result.model.has_value());
  ASSERT_FALSE(result.violations.empty());
  EXPECT_EQ(result.violations[0].reason, GetParam().reason) << result.violations[0].description;
}

INSTANTIATE_TEST_SUITE_P(
    All, BadTextTest,
    testing::ValuesIn(std::vector<BadText>{
        {"empty", "", "MALFORMED_JSON"},
        {"spaces", "   \n", "MALFORMED_JSON"},
        {"unclosed", "{\"model_type\": \"llama\"", "MALFORMED_JSON"},
        {"trailing_text", absl::StrCat(kLlama, "x"), "MALFORMED_JSON"},
        {"trailing_comma", "{\"a\": 1,}", "MALFORMED_JSON"},
        {"bare_word", "{\"a\": nope}", "MALFORMED_JSON"},
        {"python_true", "{\"a\": True}", "MALFORMED_JSON"},
        {"not_utf8", "{\"a\": \"\xff\xfe\"}", "MALFORMED_JSON"},
        {"nul_byte", std::string("{\"a\": \0}", 8), "MALFORMED_JSON"},
        {"number_beyond_doubles", "{\"hidden_size\": 1e999}", "MALFORMED_JSON"},
        {"a_list", "[1, 2]", "WRONG_TYPE"},
        {"a_number", "3", "WRONG_TYPE"},
        {"null", "null", "WRONG_TYPE"},
        {"duplicate_key", "{\"hidden_size\": 1, \"hidden_size\": 2}", "DUPLICATE_KEY"},
        {"duplicate_key_inside", "{\"a\": {\"b\": 1, \"b\": 1}}", "DUPLICATE_KEY"},
        {"just_too_deep", Nested(kMaxConfigDepth), "TOO_DEEP"},
        {"far_too_deep", Nested(400000), "TOO_DEEP"},
        {"too_large", std::string(kMaxConfigBytes + 1, ' '), "TOO_LARGE"},
        {"nothing_known", "{}", "MODEL_FAMILY_UNSUPPORTED"},
        {"deep_but_legal", Nested(kMaxConfigDepth - 1), "MODEL_FAMILY_UNSUPPORTED"},
        {"weight_index", R"({"metadata": {"total_size": 1}, "weight_map": {}})", "REQUIRED"},
        {"quantisation_companion", R"({"producer": {"name": "modelopt"}, "quantization": {}})", "REQUIRED"},
        {"params_json", R"({"dim": 4096, "n_layers": 32, "n_heads": 32})", "REQUIRED"},
        {"maxtext", R"({"base_emb_dim": 4096})", "REQUIRED"},
        {"adapter", R"({"peft_type": "LORA", "r": 16, "base_model_name_or_path": "x", "model_type": "llama"})",
         "REQUIRED"},
        {"diffusers", R"({"_class_name": "UNet2DConditionModel", "in_channels": 4})", "REQUIRED"},
        {"first_mamba", R"({"d_model": 2560, "n_layer": 64, "vocab_size": 50277, "ssm_cfg": {}})", "REQUIRED"},
        {"model_type_is_a_number", R"({"model_type": 7, "architectures": 8})", "MODEL_FAMILY_UNSUPPORTED"},
    }),
    [](const testing::TestParamInfo<BadText>& info) { return std::string(info.param.name); });

struct BadValue {
  const char* name;
  const char* key;
  const char* value;
  const char* reason;
};

class BadValueTest : public testing::TestWithParam<BadValue> {};

TEST_P(BadValueTest, NamesTheKey) {
  const ImportResult result = ImportHuggingFaceConfig(With(GetParam().key, GetParam().value));
  EXPECT_THAT(Fields(result), ElementsAre(absl::StrCat(GetParam().key, " ", GetParam().reason)));
}

INSTANTIATE_TEST_SUITE_P(All, BadValueTest,
                         testing::ValuesIn(std::vector<BadValue>{
                             {"zero", "hidden_size", "0", "OUT_OF_RANGE"},
                             {"negative", "hidden_size", "-64", "OUT_OF_RANGE"},
                             {"huge", "hidden_size", "99999999", "OUT_OF_RANGE"},
                             {"beyond_int64", "hidden_size", "18446744073709551615", "OUT_OF_RANGE"},
                             {"beyond_uint64", "hidden_size", "1e30", "WRONG_TYPE"},
                             {"fraction", "hidden_size", "64.5", "WRONG_TYPE"},
                             {"text", "hidden_size", "\"64\"", "WRONG_TYPE"},
                             {"a_list", "hidden_size", "[64]", "WRONG_TYPE"},
                             {"an_object", "hidden_size", "{}", "WRONG_TYPE"},
                             {"truth", "hidden_size", "true", "WRONG_TYPE"},
                             {"infinity", "hidden_size", "Infinity", "WRONG_TYPE"},
                             {"minus_infinity", "hidden_size", "-Infinity", "WRONG_TYPE"},
                             {"nan", "hidden_size", "NaN", "WRONG_TYPE"},
                             {"null_is_missing", "hidden_size", "null", "REQUIRED"},
                             {"no_layers", "num_hidden_layers", "0", "OUT_OF_RANGE"},
                             {"too_many_layers", "num_hidden_layers", "4097", "OUT_OF_RANGE"},
                             {"bool_as_number", "attention_bias", "1", "WRONG_TYPE"},
                             {"kv_heads_do_not_divide", "num_key_value_heads", "3", "NOT_DIVISIBLE"},
                             {"layer_types_too_short", "layer_types", "[\"full_attention\"]", "CONFLICT"},
                             {"layer_types_of_numbers", "layer_types", "3", "WRONG_TYPE"},
                             {"quantization_is_a_list", "quantization_config", "[]", "WRONG_TYPE"},
                         }),
                         [](const testing::TestParamInfo<BadValue>& info) { return std::string(info.param.name); });

// The missing key is the one to name: any number of heads is legal beside an explicit head_dim.
TEST(ImportTest, HeadsThatDoNotDivideTheWidthNeedAHeadDim) {
  EXPECT_THAT(Fields(ImportHuggingFaceConfig(With("num_attention_heads", "10"))),
              ElementsAre("head_dim NOT_DIVISIBLE"));
}

TEST(ImportTest, EverythingWrongAtOnce) {
  const ImportResult result = ImportHuggingFaceConfig(
      R"({"model_type": "mixtral", "hidden_size": -1, "num_hidden_layers": "two", "num_attention_heads": 8.5,
          "vocab_size": 1e9, "intermediate_size": 0, "num_local_experts": 4, "num_experts_per_tok": 8})");
  EXPECT_THAT(Fields(result),
              UnorderedElementsAre("hidden_size OUT_OF_RANGE", "num_hidden_layers WRONG_TYPE",
                                   "num_attention_heads WRONG_TYPE", "vocab_size OUT_OF_RANGE",
                                   "num_experts_per_tok OUT_OF_RANGE", "intermediate_size OUT_OF_RANGE"));
}

TEST(ImportTest, MissingSizesAreNamed) {
  EXPECT_THAT(Fields(ImportHuggingFaceConfig(R"({"model_type": "llama"})")),
              UnorderedElementsAre("hidden_size REQUIRED", "vocab_size REQUIRED", "num_hidden_layers REQUIRED",
                                   "num_attention_heads REQUIRED", "intermediate_size REQUIRED"));
}

TEST(ImportTest, PathsOfNestedConfigs) {
  const ImportResult result = ImportHuggingFaceConfig(
      R"({"model_type": "llama4", "text_config": {"model_type": "llama4_text", "hidden_size": 0}})");
  EXPECT_THAT(Fields(result), testing::Contains("text_config.hidden_size OUT_OF_RANGE"));
}

TEST(ImportTest, SpellingsThatDisagreeConflict) {
  const ImportResult result = ImportHuggingFaceConfig(With("n_head", "4"));
  EXPECT_THAT(Fields(result), ElementsAre("n_head CONFLICT"));
}

TEST(ImportTest, IntegralFloatsAreRead) {
  const ImportResult result = ImportHuggingFaceConfig(With("hidden_size", "64.0"));
  ASSERT_TRUE(result.model.has_value());
  EXPECT_EQ(result.model->architecture.hidden_dim, 64);
}

// Published files hold the bare word in places that nothing reads.
TEST(ImportTest, InfinityWhereNothingIsRead) {
  const ImportResult result =
      ImportHuggingFaceConfig(With("time_step_limit", "[0.0, Infinity, -Infinity, NaN, \"a\\\"NaN\"]"));
  ASSERT_TRUE(result.model.has_value());
  EXPECT_THAT(result.model->warnings, IsEmpty());
}

TEST(ImportTest, ByteOrderMark) {
  EXPECT_TRUE(ImportHuggingFaceConfig(absl::StrCat("\xef\xbb\xbf", kLlama)).model.has_value());
}

struct Refusal {
  const char* model_type;
  const char* word;  // of the explanation
};

class RefusedFamilyTest : public testing::TestWithParam<Refusal> {};

// Each has every key of a model like Llama: the name alone must do.
TEST_P(RefusedFamilyTest, SaysWhy) {
  const std::string text =
      absl::StrReplaceAll(kLlama, {{"\"llama\"", absl::StrCat("\"", GetParam().model_type, "\"")}});
  const ImportResult result = ImportHuggingFaceConfig(text);
  ASSERT_FALSE(result.model.has_value());
  ASSERT_EQ(result.violations.size(), 1u);
  EXPECT_EQ(result.violations[0].reason, "MODEL_FAMILY_UNSUPPORTED");
  EXPECT_EQ(result.violations[0].kind, hardware::Violation::Kind::kUnsupported);
  EXPECT_EQ(result.violations[0].field, "model_type");
  EXPECT_THAT(result.violations[0].description, HasSubstr(GetParam().word));
}

INSTANTIATE_TEST_SUITE_P(All, RefusedFamilyTest,
                         testing::ValuesIn(std::vector<Refusal>{{"bert", "encoder"},
                                                                {"roberta", "encoder"},
                                                                {"modernbert", "encoder"},
                                                                {"t5", "encoder-decoder"},
                                                                {"mt5", "encoder-decoder"},
                                                                {"bart", "encoder-decoder"},
                                                                {"whisper", "encoder-decoder"},
                                                                {"vit", "vision"},
                                                                {"clip", "vision"},
                                                                {"siglip", "vision"},
                                                                {"wav2vec2", "audio"},
                                                                {"rwkv", "not modelled"},
                                                                {"gemma3n", "not modelled"},
                                                                {"zamba2", "not modelled"}}),
                         [](const testing::TestParamInfo<Refusal>& info) { return TestName(info.param.model_type); });

TEST(ImportTest, EncoderDecodersOfAnyName) {
  const ImportResult result = ImportHuggingFaceConfig(With("is_encoder_decoder", "true"));
  EXPECT_THAT(Fields(result), ElementsAre("is_encoder_decoder MODEL_FAMILY_UNSUPPORTED"));
}

TEST(ImportTest, UnknownFamilyLikeLlamaIsReadWithAWarning) {
  const ImportResult result = ImportHuggingFaceConfig(With("model_type", "\"mystery\""));
  ASSERT_TRUE(result.model.has_value());
  ASSERT_EQ(result.model->warnings.size(), 1u);
  EXPECT_EQ(result.model->warnings[0].kind, ImportWarning::Kind::kAssumedFamily);
  EXPECT_THAT(result.model->warnings[0].text, HasSubstr("mystery"));
  EXPECT_EQ(CountParameters(result.model->architecture)->total_count, CountParameters(Imported(kLlama))->total_count);
}

TEST(ImportTest, UnknownFamilyWithForeignPartsIsRefused) {
  for (const char* extra : {"\"num_experts\": 8", "\"kv_lora_rank\": 64", "\"state_size\": 16",
                            "\"type_vocab_size\": 2", "\"architectures\": [\"MysteryForMaskedLM\"]"}) {
    std::string text = With("model_type", "\"mystery\"");
    text.pop_back();
    const ImportResult result = ImportHuggingFaceConfig(absl::StrCat(text, ", ", extra, "}"));
    EXPECT_THAT(Fields(result), ElementsAre("model_type MODEL_FAMILY_UNSUPPORTED")) << extra;
  }
}

TEST(ImportTest, FamilyFromTheClassAlone) {
  std::string text = With("model_type", "null");
  text.pop_back();
  const ImportResult result =
      ImportHuggingFaceConfig(absl::StrCat(text, R"(, "architectures": ["Qwen2ForCausalLM"]})"));
  ASSERT_TRUE(result.model.has_value());
  EXPECT_EQ(result.model->family, "qwen2");
}

TEST(ImportTest, UnknownKeysAreWarned) {
  const ImportResult result = ImportHuggingFaceConfig(With("number_of_wings", "2"));
  EXPECT_THAT(WarnedFields(result), ElementsAre("number_of_wings"));
  EXPECT_EQ(result.model->warnings[0].kind, ImportWarning::Kind::kUnknownKey);
  // A switch that is off, null, or without effect on any count is no news.
  EXPECT_THAT(WarnedFields(ImportHuggingFaceConfig(With("number_of_wings", "0"))), IsEmpty());
  EXPECT_THAT(WarnedFields(ImportHuggingFaceConfig(With("use_wings", "false"))), IsEmpty());
  EXPECT_THAT(WarnedFields(ImportHuggingFaceConfig(With("bos_token_id", "1"))), IsEmpty());
}

TEST(ImportTest, ManyUnknownKeysAreCapped) {
  std::string text = kLlama;
  text.pop_back();
  for (int i = 0; i < 1000; ++i) absl::StrAppend(&text, ", \"x", i, "\": 1");
  const ImportResult result = ImportHuggingFaceConfig(text + "}");
  ASSERT_TRUE(result.model.has_value());
  EXPECT_LT(result.model->warnings.size(), 40u);
}

TEST(ImportTest, TowersAreExcludedAloud) {
  const ImportResult result = ImportHuggingFaceConfig(ModelNamed("google/gemma-3-27b-it").config_text);
  EXPECT_THAT(WarnedFields(result), ElementsAre("vision_config"));
  EXPECT_EQ(result.model->warnings[0].kind, ImportWarning::Kind::kExcludedPart);
}

// The real files of the multimodal sizes leave out what equals the class default.
TEST(ImportTest, GemmaDefaultsAreAssumedAloud) {
  const ModelRow& row = ModelNamed("google/gemma-3-4b-it");
  nlohmann::json config = row.row.at("hf_config");
  for (const char* key : {"vocab_size", "num_attention_heads", "num_key_value_heads", "head_dim"}) {
    config["text_config"].erase(key);
  }
  const ImportResult result = ImportHuggingFaceConfig(config.dump());
  ASSERT_TRUE(result.model.has_value());
  EXPECT_EQ(CountParameters(result.model->architecture)->total_count, *row.Number("total_count"));
  EXPECT_THAT(WarnedFields(result),
              UnorderedElementsAre("text_config.vocab_size", "text_config.num_attention_heads",
                                   "text_config.num_key_value_heads", "text_config.head_dim", "vision_config"));
}

TEST(ImportTest, FalconIgnoresItsKvHeads) {
  const ImportResult result = ImportHuggingFaceConfig(ModelNamed("tiiuae/falcon-7b").config_text);
  EXPECT_THAT(WarnedFields(result), testing::Contains("num_kv_heads"));
}

TEST(ImportTest, OuterTyingStandsForTheModel) {
  const auto tied = [](const char* outer) {
    const std::string text = absl::StrCat(R"({"model_type": "llava", )", outer, R"("text_config": )", kLlama, "}");
    return ImportHuggingFaceConfig(text).model->architecture.tied_embeddings;
  };
  EXPECT_FALSE(tied(""));
  EXPECT_TRUE(tied("\"tie_word_embeddings\": true, "));
}

TEST(ImportTest, TwiceNestedLanguagePart) {
  const std::string text =
      absl::StrCat(R"({"model_type": "qwen2_5_omni", "thinker_config": {"text_config": )", kLlama, "}}");
  const ImportResult result = ImportHuggingFaceConfig(text);
  ASSERT_TRUE(result.model.has_value());
  EXPECT_EQ(result.model->architecture.hidden_dim, 64);
}

TEST(ImportTest, PatternsBecomeGroups) {
  const Architecture gemma = Imported(ModelNamed("google/gemma-3-27b-it").config_text);
  ASSERT_EQ(gemma.layer_groups.size(), 2u);  // 62 = 10 x (5 sliding, 1 full) + 2 sliding
  EXPECT_EQ(gemma.layer_groups[0].repeat_count, 10);
  EXPECT_EQ(gemma.layer_groups[0].layers.size(), 6u);
  EXPECT_EQ(gemma.layer_groups[1].repeat_count, 2);
  const Architecture deepseek = Imported(ModelNamed("deepseek-ai/DeepSeek-V3").config_text);
  ASSERT_EQ(deepseek.layer_groups.size(), 2u);
  EXPECT_EQ(deepseek.layer_groups[0].repeat_count, 3);
  EXPECT_EQ(deepseek.layer_groups[1].repeat_count, 58);
}

// Cutting a valid text, or turning a byte into another, must end in a model or in violations. The fuzzer tries the
// rest.
TEST(ImportTest, DamagedTextsNeverEscape) {
  for (const char* name :
       {"google/gemma-4-26B-A4B", "deepseek-ai/DeepSeek-V4-Flash", "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B",
        "llm-foundry mpt-30b benchmark", "openai/gpt-oss-20b"}) {
    const std::string& text = ModelNamed(name).config_text;
    constexpr size_t kStep = 7;
    for (size_t i = 0; i < text.size(); i += kStep) {
      const ImportResult cut = ImportHuggingFaceConfig(absl::string_view(text).substr(0, i));
      EXPECT_FALSE(cut.model.has_value());
      EXPECT_FALSE(cut.violations.empty());
      for (const char c : {'0', '9', '-', '"', '}', '\x80'}) {
        std::string damaged = text;
        damaged[i] = c;
        const ImportResult result = ImportHuggingFaceConfig(damaged);
        ASSERT_NE(result.model.has_value(), !result.violations.empty()) << damaged;
        ASSERT_TRUE(!result.model || CountParameters(result.model->architecture).ok()) << damaged;
      }
    }
  }
}

// Every value of one config of each family replaced by every kind of JSON value.
TEST(ImportTest, WrongTypesEverywhere) {
  std::set<std::string> seen;
  std::vector<ModelRow> rows = AllModels();
  for (const nlohmann::json& line : ReadLines("more_models.jsonl")) {
    ModelRow row;
    row.name = line.at("name");
    row.row = line;
    row.row["family"] = line.at("hf_config").value("model_type", row.name);
    rows.push_back(std::move(row));
  }
  for (const ModelRow& row : rows) {
    if (!seen.insert(row.row.at("family")).second) continue;
    const nlohmann::json config = row.row.at("hf_config");
    const nlohmann::json flat = config.flatten();
    if (flat.size() > 400) continue;  // one row holds 800 values of the same shape
    for (const auto& item : flat.items()) {
      for (const char* value : {"null", "true", "-1", "0", "1", "3.5", "\"x\"", "[]", "{}", "[0]", "1000000000000"}) {
        nlohmann::json damaged = config;
        damaged[nlohmann::json::json_pointer(item.key())] = nlohmann::json::parse(value);
        const ImportResult result = ImportHuggingFaceConfig(damaged.dump());
        ASSERT_NE(result.model.has_value(), !result.violations.empty())
            << row.name << " " << item.key() << " " << value;
        ASSERT_TRUE(!result.model || CountParameters(result.model->architecture).ok()) << row.name << " " << item.key();
      }
    }
  }
}

}  // namespace
}  // namespace sliceplan::transformer
