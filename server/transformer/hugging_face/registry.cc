// Which family a name belongs to, and which names are known and refused.
#include <algorithm>
#include <iterator>

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
    {"gemma3", "gemma3_text"},
    {"gemma4", "gemma4_text"},
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
    {"phi3small", "phi3"},
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
    {"GraniteForCausalLM", "granite"},
    {"GraniteMoeForCausalLM", "granitemoe"},
    {"Grok1ModelForCausalLM", "grok-1"},
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

constexpr char kEncoder[] = "it is an encoder: there is no decoder-only part to count or plan for";
constexpr char kEncoderDecoder[] =
    "it is an encoder-decoder: its decoder attends to an encoder and is no decoder-only model";
constexpr char kVision[] = "it is a vision or audio model: there is no decoder-only part to count or plan for";
constexpr char kUnmodelled[] = "its layers hold parts that are not modelled here";

struct Refusal {
  const char* model_type;
  const char* why;
};

constexpr Refusal kRefusals[] = {
    {"albert", kEncoder},
    {"bert", kEncoder},
    {"big_bird", kEncoder},
    {"camembert", kEncoder},
    {"data2vec-text", kEncoder},
    {"deberta", kEncoder},
    {"deberta-v2", kEncoder},
    {"distilbert", kEncoder},
    {"electra", kEncoder},
    {"ernie", kEncoder},
    {"esm", kEncoder},
    {"flaubert", kEncoder},
    {"fnet", kEncoder},
    {"funnel", kEncoder},
    {"ibert", kEncoder},
    {"layoutlm", kEncoder},
    {"layoutlmv2", kEncoder},
    {"layoutlmv3", kEncoder},
    {"longformer", kEncoder},
    {"luke", kEncoder},
    {"mobilebert", kEncoder},
    {"modernbert", kEncoder},
    {"mpnet", kEncoder},
    {"new", kEncoder},
    {"nomic_bert", kEncoder},
    {"nystromformer", kEncoder},
    {"rembert", kEncoder},
    {"roberta", kEncoder},
    {"roformer", kEncoder},
    {"splinter", kEncoder},
    {"squeezebert", kEncoder},
    {"xlm", kEncoder},
    {"xlm-roberta", kEncoder},
    {"xlm-roberta-xl", kEncoder},
    {"bart", kEncoderDecoder},
    {"bigbird_pegasus", kEncoderDecoder},
    {"blenderbot", kEncoderDecoder},
    {"blenderbot-small", kEncoderDecoder},
    {"encoder-decoder", kEncoderDecoder},
    {"fsmt", kEncoderDecoder},
    {"led", kEncoderDecoder},
    {"longt5", kEncoderDecoder},
    {"m2m_100", kEncoderDecoder},
    {"marian", kEncoderDecoder},
    {"mbart", kEncoderDecoder},
    {"moonshine", kEncoderDecoder},
    {"mt5", kEncoderDecoder},
    {"mvp", kEncoderDecoder},
    {"nllb-moe", kEncoderDecoder},
    {"pegasus", kEncoderDecoder},
    {"pegasus_x", kEncoderDecoder},
    {"plbart", kEncoderDecoder},
    {"prophetnet", kEncoderDecoder},
    {"seamless_m4t", kEncoderDecoder},
    {"speech_to_text", kEncoderDecoder},
    {"switch_transformers", kEncoderDecoder},
    {"t5", kEncoderDecoder},
    {"t5gemma", kEncoderDecoder},
    {"udop", kEncoderDecoder},
    {"umt5", kEncoderDecoder},
    {"vision-encoder-decoder", kEncoderDecoder},
    {"whisper", kEncoderDecoder},
    {"align", kVision},
    {"audio-spectrogram-transformer", kVision},
    {"beit", kVision},
    {"blip", kVision},
    {"chinese_clip", kVision},
    {"clip", kVision},
    {"clip_text_model", kVision},
    {"clip_vision_model", kVision},
    {"clipseg", kVision},
    {"convnext", kVision},
    {"deit", kVision},
    {"detr", kVision},
    {"dinov2", kVision},
    {"dinov3_vit", kVision},
    {"dpt", kVision},
    {"hubert", kVision},
    {"levit", kVision},
    {"mobilevit", kVision},
    {"resnet", kVision},
    {"sam", kVision},
    {"segformer", kVision},
    {"siglip", kVision},
    {"siglip2", kVision},
    {"siglip_vision_model", kVision},
    {"swin", kVision},
    {"swinv2", kVision},
    {"vit", kVision},
    {"vit_mae", kVision},
    {"wav2vec2", kVision},
    {"wavlm", kVision},
    {"xclip", kVision},
    {"yolos", kVision},
    {"bamba", kUnmodelled},
    {"falcon_h1", kUnmodelled},
    {"gemma3n", kUnmodelled},
    {"gemma3n_text", kUnmodelled},
    {"granitemoehybrid", kUnmodelled},
    {"lfm2", kUnmodelled},
    {"lfm2_moe", kUnmodelled},
    {"mllama", kUnmodelled},
    {"mllama_text_model", kUnmodelled},
    {"recurrent_gemma", kUnmodelled},
    {"retnet", kUnmodelled},
    {"rwkv", kUnmodelled},
    {"rwkv5", kUnmodelled},
    {"rwkv6", kUnmodelled},
    {"rwkv7", kUnmodelled},
    {"xlnet", kUnmodelled},
    {"xlstm", kUnmodelled},
    {"zamba", kUnmodelled},
    {"zamba2", kUnmodelled},
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
  for (const auto families : {LlamaFamilies, MixtureFamilies, LatentFamilies, GemmaFamilies, HybridFamilies,
                              GptFamilies, CompressedFamilies, PatternFamilies}) {
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

absl::string_view WhyUnsupported(absl::string_view model_type) {
  for (const Refusal& refusal : kRefusals) {
    if (model_type == refusal.model_type) return refusal.why;
  }
  return "";
}

}  // namespace sliceplan::transformer::hugging_face
