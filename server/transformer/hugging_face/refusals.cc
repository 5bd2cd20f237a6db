// Names that are known and refused.
#include "server/transformer/hugging_face/family.h"

namespace sliceplan::transformer::hugging_face {
namespace {

constexpr char kEncoder[] = "it is an encoder: there is no decoder-only part to count or plan for";
constexpr char kEncoderDecoder[] =
    "it is an encoder-decoder: its decoder attends to an encoder and is no decoder-only model";
constexpr char kVision[] = "it is a vision or audio model: there is no decoder-only part to count or plan for";
constexpr char kUnmodelled[] = "its layers hold parts that are not modelled here";
constexpr char kTwoKindsOfExperts[] = "its image tokens have experts of their own, which are not modelled here";

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
    {"baichuan_m1", kUnmodelled},
    {"bamba", kUnmodelled},
    {"diffllama", kUnmodelled},
    {"doge", kUnmodelled},
    {"ernie4_5_moe_vl", kTwoKindsOfExperts},
    {"ernie4_5_vl_moe", kTwoKindsOfExperts},
    {"falcon_h1", kUnmodelled},
    {"gemma3n", kUnmodelled},
    {"gemma3n_text", kUnmodelled},
    {"gla", kUnmodelled},
    {"granitemoehybrid", kUnmodelled},
    {"hunyuan", kUnmodelled},
    {"lfm2", kUnmodelled},
    {"lfm2_moe", kUnmodelled},
    {"minicpm_sala", kUnmodelled},
    {"mllama", kUnmodelled},
    {"mllama_text_model", kUnmodelled},
    {"phi4flash", kUnmodelled},
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

}  // namespace

absl::string_view WhyUnsupported(absl::string_view model_type) {
  for (const Refusal& refusal : kRefusals) {
    if (model_type == refusal.model_type) return refusal.why;
  }
  return "";
}

}  // namespace sliceplan::transformer::hugging_face
