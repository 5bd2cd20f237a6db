// Architectures written out: there and back, and everything that is wrong with one.
#include "server/rpc/convert/architecture.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "tests/rpc/testing.h"

namespace sliceplan::rpc {
namespace {

std::vector<std::string> FieldsOf(const Violations& violations) {
  std::vector<std::string> fields;
  for (const FieldError& error : violations.errors()) fields.push_back(error.field);
  return fields;
}

// One of everything, with every field that replies fill in.
constexpr char kWhole[] = R"pb(
  name: "mix"
  hidden_dim: 1024
  vocab_size: 32000
  tied_embeddings: true
  learned_position_count: 2048
  layer_groups {
    repeat_count: 3
    layers {
      attention {
        grouped_query {
          query_head_count: 16
          kv_head_count: 4
          head_dim: 64
          value_head_dim: 32
          sliding_window: 512
          qkv_bias: true
          output_bias: true
          qk_norm: QK_NORM_PER_HEAD_DIM
          output_gate: true
          sinks: true
        }
      }
      feed_forward { dense { ffn_dim: 4096 gated: true bias: true } }
      norms { kind: NORM_KIND_LAYER norm_count: 4 }
      extra_parameter_count: 7
    }
    layers {
      attention {
        latent {
          query_head_count: 8
          q_lora_rank: 128
          kv_lora_rank: 64
          qk_nope_head_dim: 32
          qk_rope_head_dim: 16
          v_head_dim: 32
          qkv_bias: true
          indexer { head_count: 4 head_dim: 16 top_k: 256 }
        }
      }
      feed_forward {
        mixture_of_experts {
          expert_count: 8
          experts_per_token: 2
          expert_ffn_dim: 512
          gated: true
          shared_expert_count: 1
          shared_expert_ffn_dim: 256
          shared_expert_gate: true
          dense_residual_ffn_dim: 128
          dense_residual_gated: false
          capacity_factor: 1.25
          load_imbalance_ratio: 1.5
          router_bias: true
          expert_bias: true
          router_correction_bias: true
        }
      }
      norms { kind: NORM_KIND_RMS norm_count: 2 }
    }
  }
  layer_groups {
    repeat_count: 1
    layers {
      attention {
        linear {
          kind: LINEAR_ATTENTION_KIND_GATED_DELTA
          key_head_count: 4
          value_head_count: 8
          key_head_dim: 32
          value_head_dim: 64
          inner_dim: 512
          conv_width: 4
          conv_bias: true
          output_norm: false
          chunk_size: 32
        }
      }
      norms { kind: NORM_KIND_NO_PARAMETERS norm_count: 1 }
    }
  }
  multi_token_prediction {
    layer_count: 1
    layer {
      feed_forward { dense { ffn_dim: 256 } }
      norms { kind: NORM_KIND_RMS norm_count: 1 }
    }
    shares_embeddings: false
  }
  embedding_dim: 512
  embedding_norm: true
  final_norm { kind: NORM_KIND_LAYER norm_count: 1 }
  head_bias: true
  max_position_count: 4096
  checkpoint_dtype: DATA_TYPE_FP16
  quantization {
    method: "fp8"
    formats { weight_class: WEIGHT_CLASS_EXPERT dtype: DATA_TYPE_FP8 block_rows: 128 block_columns: 128 scale_bytes: 4 }
    exceptions { weight_class: WEIGHT_CLASS_EXPERT name: "down_proj" }
    exceptions { weight_class: WEIGHT_CLASS_EXPERT layer: 1 }
  }
  stores_tied_table_twice: true
  stored_buffers { name: "rotary frequencies" count: 64 }
)pb";

TEST(ArchitectureTest, ThereAndBack) {
  const auto proto = FromText<v1::Architecture>(kWhole);
  Violations violations;
  const transformer::Architecture architecture = ToArchitecture(proto, FieldPath(), violations);
  ASSERT_TRUE(violations.empty()) << violations.ToResult().status().message();
  v1::Architecture back;
  ToProto(architecture, &back);
  std::string difference;
  google::protobuf::util::MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&difference);
  EXPECT_TRUE(differencer.Compare(proto, back)) << difference;
}

constexpr char kSmall[] = R"pb(
  hidden_dim: 64
  vocab_size: 100
  layer_groups {
    repeat_count: 2
    layers {
      attention { grouped_query { query_head_count: 4 kv_head_count: 2 head_dim: 16 } }
      feed_forward { dense { ffn_dim: 256 gated: true } }
    }
  }
)pb";

TEST(ArchitectureTest, Defaults) {
  Violations violations;
  const auto architecture = ToArchitecture(FromText<v1::Architecture>(kSmall), FieldPath(), violations);
  ASSERT_TRUE(violations.empty());
  EXPECT_EQ(architecture.final_norm.count, 1);
  EXPECT_FALSE(architecture.final_norm.bias);
  EXPECT_EQ(architecture.layer_groups[0].layers[0].norms.count, 2);
  EXPECT_EQ(architecture.checkpoint_dtype, hardware::DataType::kBf16);
  EXPECT_TRUE(architecture.quantization.method.empty());
  EXPECT_EQ(architecture.mtp_layer_count, 0);

  auto parallel = FromText<v1::Architecture>(kSmall);
  parallel.mutable_layer_groups(0)->mutable_layers(0)->set_parallel_block(true);
  EXPECT_EQ(ToArchitecture(parallel, FieldPath(), violations).layer_groups[0].layers[0].norms.count, 1);
}

struct WrongCase {
  const char* name;
  const char* text;  // merged into kSmall
  std::vector<std::string> fields;
};

const WrongCase kWrongCases[] = {
    {"unknown enum",
     "layer_groups { repeat_count: 1 layers { attention { grouped_query { query_head_count: 1 "
     "kv_head_count: 1 head_dim: 8 qk_norm: QK_NORM_NONE } } norms { norm_count: 17 } } }",
     {"layer_groups[1].layers[0].norms.norm_count"}},
    {"attention of no kind",
     "layer_groups { repeat_count: 1 layers { attention {} feed_forward { dense { ffn_dim: 8 } } } }",
     {"layer_groups[1].layers[0].attention"}},
    {"linear of no rule",
     "layer_groups { repeat_count: 1 layers { attention { linear { key_head_count: 1 "
     "value_head_count: 1 key_head_dim: 8 value_head_dim: 8 } } } }",
     {"layer_groups[1].layers[0].attention.linear.kind"}},
    {"size of zero",
     "layer_groups { repeat_count: 1 layers { attention { grouped_query { query_head_count: 1 "
     "kv_head_count: 1 head_dim: 8 value_head_dim: 0 } } } }",
     {"layer_groups[1].layers[0].attention.grouped_query.value_head_dim"}},
    {"capacity of nothing",
     "layer_groups { repeat_count: 1 layers { feed_forward { mixture_of_experts { "
     "expert_count: 4 experts_per_token: 2 expert_ffn_dim: 8 capacity_factor: nan } } } }",
     {"layer_groups[1].layers[0].feed_forward.mixture_of_experts.capacity_factor"}},
    {"prediction without a layer",
     "multi_token_prediction { layer_count: 1 }",
     {"multi_token_prediction.layer", "multi_token_prediction.layer"}},
    {"quantisation of nothing", "quantization { method: 'x' }", {"quantization.formats"}},
    {"format twice",
     "quantization { formats { weight_class: WEIGHT_CLASS_EXPERT dtype: DATA_TYPE_FP8 } "
     "formats { weight_class: WEIGHT_CLASS_EXPERT dtype: DATA_TYPE_FP4 } }",
     {"quantization.formats[1].weight_class"}},
    {"exception in no layer",
     "quantization { formats { weight_class: WEIGHT_CLASS_EXPERT dtype: DATA_TYPE_FP8 } "
     "exceptions { weight_class: WEIGHT_CLASS_EXPERT layer: 2 } }",
     {"quantization.exceptions[0].layer"}},
    {"scale without end",
     "quantization { formats { weight_class: WEIGHT_CLASS_HEAD dtype: DATA_TYPE_FP8 scale_bytes: inf } }",
     {"quantization.formats[0].scale_bytes"}},
};

TEST(ArchitectureTest, EverythingWrongIsNamed) {
  for (const WrongCase& c : kWrongCases) {
    auto proto = FromText<v1::Architecture>(kSmall);
    proto.MergeFrom(FromText<v1::Architecture>(c.text));
    Violations violations;
    ToArchitecture(proto, FieldPath(), violations);
    const std::vector<std::string> fields = FieldsOf(violations);
    ASSERT_FALSE(fields.empty()) << c.name;
    EXPECT_EQ(fields[0], c.fields[0]) << c.name;
  }
}

// A list that is too long to be read is not empty as well.
TEST(ArchitectureTest, LongListsAndWrongCountsAreSaidOnce) {
  auto architecture = FromText<v1::Architecture>(kWhole);
  for (int i = 0; i < 5000; ++i) architecture.add_layer_groups();
  architecture.mutable_multi_token_prediction()->set_layer_count(17);
  Violations violations;
  ToArchitecture(architecture, FieldPath(), violations);
  int groups = 0;
  int layer_count = 0;
  for (const FieldError& error : violations.errors()) {
    groups += error.field == "layer_groups" ? 1 : 0;
    if (error.field != "multi_token_prediction.layer_count") continue;
    ++layer_count;
    EXPECT_THAT(error.description, testing::HasSubstr("must be 1 to 16"));
  }
  EXPECT_EQ(groups, 1);
  EXPECT_EQ(layer_count, 1);
}

TEST(ArchitectureTest, ManyAtOnceWithTheirPaths) {
  const auto proto = FromText<v1::Architecture>(R"pb(
    vocab_size: -5
    layer_groups {
      repeat_count: 0
      layers {
        attention {
          latent {
            query_head_count: 4
            kv_lora_rank: 8
            qk_nope_head_dim: 8
            v_head_dim: 8
            indexer {}
          }
        }
      }
    }
    final_norm { norm_count: 99 }
    checkpoint_dtype: 42
  )pb");
  Violations violations;
  const FieldPath request;
  ToArchitecture(proto, FieldPath(request, "architecture"), violations);
  EXPECT_THAT(FieldsOf(violations),
              ::testing::IsSupersetOf({"architecture.hidden_dim", "architecture.vocab_size",
                                       "architecture.layer_groups[0].repeat_count",
                                       "architecture.layer_groups[0].layers[0].attention.latent.indexer.head_count",
                                       "architecture.final_norm.norm_count", "architecture.checkpoint_dtype"}));
}

}  // namespace
}  // namespace sliceplan::rpc
