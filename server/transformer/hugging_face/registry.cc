// Which family a name belongs to.
#include "absl/strings/match.h"
#include "server/transformer/hugging_face/family.h"

namespace sliceplan::transformer::hugging_face {
namespace {

struct Alias {
  const char* name;
  const char* model_type;
};

// Other names of a family: older ones, and the language parts of multimodal models.
constexpr Alias kAliases[] = {
    {"aya_vision", "cohere2"},
    {"chatglm2", "chatglm"},
    {"deepseek_vl_v2", "deepseek_v2"},
    {"exaone4_0", "exaone4"},
    {"falcon3", "llama"},
    {"fuyu", "persimmon"},
    {"gemma3", "gemma3_text"},
    {"gemma4", "gemma4_text"},
    {"glm4v", "glm4v_text"},
    {"glm4v_moe", "glm4_moe"},
    {"glm4v_moe_text", "glm4_moe"},
    {"idefics3", "llama"},
    {"internvl_chat", "internlm2"},
    {"kimi_k25", "kimi_k2"},
    {"kimi_vl", "deepseek_v3"},
    {"llama4", "llama4_text"},
    {"llava", "llama"},
    {"llava_next", "llama"},
    {"llava_onevision", "qwen2"},
    {"minimax_m1", "minimax_text_01"},
    {"mistral3", "mistral"},
    {"paligemma", "gemma"},
    {"phi-msft", "phi"},
    {"phi3_v", "phi3"},
    {"phi4mm", "phi3"},
    {"pixtral", "mistral"},
    {"qwen2_5_omni_text", "qwen2"},
    {"qwen2_5_vl", "qwen2"},
    {"qwen2_5_vl_text", "qwen2"},
    {"qwen2_audio", "qwen2"},
    {"qwen2_vl", "qwen2"},
    {"qwen2_vl_text", "qwen2"},
    {"qwen3_5", "qwen3_5_text"},
    {"qwen3_5_moe", "qwen3_5_moe_text"},
    {"qwen3_omni_moe_text", "qwen3_moe"},
    {"qwen3_vl_moe_text", "qwen3_moe"},
    {"qwen3_vl_text", "qwen3"},
    {"refinedweb", "falcon"},
    {"refinedwebmodel", "falcon"},
    {"smolvlm", "llama"},
    {"yi", "llama"},
};

constexpr Alias kClasses[] = {
    {"BaichuanForCausalLM", "baichuan"},
    {"BaiChuanForCausalLM", "baichuan"},
    {"BailingMoeForCausalLM", "bailing_moe"},
    {"BloomForCausalLM", "bloom"},
    {"ChatGLMForConditionalGeneration", "chatglm"},
    {"ChatGLMModel", "chatglm"},
    {"CodeGenForCausalLM", "codegen"},
    {"Cohere2ForCausalLM", "cohere2"},
    {"CohereForCausalLM", "cohere"},
    {"DbrxForCausalLM", "dbrx"},
    {"DeciLMForCausalLM", "nemotron-nas"},
    {"DeepseekForCausalLM", "deepseek"},
    {"DeepseekV2ForCausalLM", "deepseek_v2"},
    {"DeepseekV32ForCausalLM", "deepseek_v32"},
    {"DeepseekV3ForCausalLM", "deepseek_v3"},
    {"DeepseekV4ForCausalLM", "deepseek_v4"},
    {"FalconForCausalLM", "falcon"},
    {"FalconMambaForCausalLM", "falcon_mamba"},
    {"GPT2LMHeadModel", "gpt2"},
    {"GPTBigCodeForCausalLM", "gpt_bigcode"},
    {"GPTJForCausalLM", "gptj"},
    {"GPTNeoForCausalLM", "gpt_neo"},
    {"GPTNeoXForCausalLM", "gpt_neox"},
    {"Gemma2ForCausalLM", "gemma2"},
    {"Gemma3ForCausalLM", "gemma3_text"},
    {"GemmaForCausalLM", "gemma"},
    {"Glm4ForCausalLM", "glm4"},
    {"Glm4MoeForCausalLM", "glm4_moe"},
    {"GlmForCausalLM", "glm"},
    {"GlmMoeDsaForCausalLM", "glm_moe_dsa"},
    {"GptOssForCausalLM", "gpt_oss"},
    {"Grok1ForCausalLM", "grok-2"},
    {"GraniteForCausalLM", "granite"},
    {"GraniteMoeForCausalLM", "granitemoe"},
    {"Grok1ModelForCausalLM", "grok-1"},
    {"HunYuanMoEV1ForCausalLM", "hunyuan_v1_moe"},
    {"InternLM2ForCausalLM", "internlm2"},
    {"InternLMForCausalLM", "internlm"},
    {"JambaForCausalLM", "jamba"},
    {"LlamaForCausalLM", "llama"},
    {"LLaMAForCausalLM", "llama"},
    {"MPTForCausalLM", "mpt"},
    {"Mamba2ForCausalLM", "mamba2"},
    {"MambaForCausalLM", "mamba"},
    {"MiMoForCausalLM", "mimo"},
    {"MiMoV2FlashForCausalLM", "mimo_v2_flash"},
    {"MiniCPMForCausalLM", "minicpm"},
    {"MiniMaxForCausalLM", "minimax"},
    {"MiniMaxM2ForCausalLM", "minimax_m2"},
    {"MiniMaxText01ForCausalLM", "minimax_text_01"},
    {"MistralForCausalLM", "mistral"},
    {"MixtralForCausalLM", "mixtral"},
    {"NemotronForCausalLM", "nemotron"},
    {"NemotronHForCausalLM", "nemotron_h"},
    {"OPTForCausalLM", "opt"},
    {"Olmo2ForCausalLM", "olmo2"},
    {"Olmo3ForCausalLM", "olmo3"},
    {"OlmoForCausalLM", "olmo"},
    {"OlmoeForCausalLM", "olmoe"},
    {"PhiForCausalLM", "phi"},
    {"Phi3ForCausalLM", "phi3"},
    {"PhiMoEForCausalLM", "phimoe"},
    {"QWenLMHeadModel", "qwen"},
    {"Qwen2ForCausalLM", "qwen2"},
    {"Qwen2MoeForCausalLM", "qwen2_moe"},
    {"Qwen3ForCausalLM", "qwen3"},
    {"Qwen3MoeForCausalLM", "qwen3_moe"},
    {"Qwen3NextForCausalLM", "qwen3_next"},
    {"RWForCausalLM", "falcon"},
    {"SmolLM3ForCausalLM", "smollm3"},
    {"StableLmForCausalLM", "stablelm"},
    {"StableLMEpochForCausalLM", "stablelm"},
    {"Starcoder2ForCausalLM", "starcoder2"},
};

const Family* FindIn(absl::Span<const Family> families, absl::string_view model_type) {
  for (const Family& family : families) {
    if (model_type == family.traits.model_type) return &family;
  }
  return nullptr;
}

}  // namespace

const Family* FindFamily(absl::string_view model_type) {
  for (const Alias& alias : kAliases) {
    if (absl::EqualsIgnoreCase(model_type, alias.name)) {
      model_type = alias.model_type;
      break;
    }
  }
  for (const auto families :
       {LlamaFamilies, MixtureFamilies, LatentFamilies, GemmaFamilies, HybridFamilies, GptFamilies, CompressedFamilies,
        PatternFamilies, OptFamilies, LlamaVariants, MixtureVariants}) {
    if (const Family* family = FindIn(families(), model_type)) return family;
  }
  return nullptr;
}

absl::string_view ModelTypeOfClass(absl::string_view class_name) {
  for (const Alias& known : kClasses) {
    if (class_name == known.name) return known.model_type;
  }
  return "";
}

}  // namespace sliceplan::transformer::hugging_face
