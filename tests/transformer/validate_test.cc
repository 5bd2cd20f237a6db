#include "server/transformer/validate.h"

#include <functional>
#include <limits>
#include <string>

#include "gtest/gtest.h"
#include "tests/transformer/small_architectures.h"

namespace sliceplan::transformer {
namespace {

GroupedQueryAttention& Grouped(Architecture& architecture) {
  return std::get<GroupedQueryAttention>(architecture.layer_groups[0].layers[1].attention);
}

MixtureOfExperts& Experts(Architecture& architecture) {
  return std::get<MixtureOfExperts>(architecture.layer_groups[0].layers[1].feed_forward);
}

struct Case {
  const char* name;
  std::function<void(Architecture&)> spoil;
  const char* field;
  const char* reason;
};

class ValidateTest : public testing::TestWithParam<Case> {};

TEST_P(ValidateTest, NamesTheField) {
  Architecture architecture = Small({Dense(8, 2, 16, 256), Moe(8, 2, 16, 8, 2, 32, 1)}, 2);
  ASSERT_TRUE(Validate(architecture).empty());
  GetParam().spoil(architecture);
  const std::vector<hardware::Violation> violations = Validate(architecture);
  ASSERT_EQ(violations.size(), 1u);
  EXPECT_EQ(violations[0].field, GetParam().field);
  EXPECT_EQ(violations[0].reason, GetParam().reason);
  EXPECT_FALSE(violations[0].description.empty());
}

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr char kGrouped[] = "layer_groups[0].layers[1].attention.grouped_query.";
constexpr char kMoe[] = "layer_groups[0].layers[1].feed_forward.mixture_of_experts.";

const Case kCases[] = {
    {"no_width", [](Architecture& a) { a.hidden_dim = 0; }, "hidden_dim", "OUT_OF_RANGE"},
    {"too_wide", [](Architecture& a) { a.hidden_dim = (1 << 24) + 1; }, "hidden_dim", "OUT_OF_RANGE"},
    {"negative_vocabulary", [](Architecture& a) { a.vocab_size = -1; }, "vocab_size", "OUT_OF_RANGE"},
    {"no_groups", [](Architecture& a) { a.layer_groups.clear(); }, "layer_groups", "REQUIRED"},
    {"empty_group", [](Architecture& a) { a.layer_groups[0].layers.clear(); }, "layer_groups[0].layers", "REQUIRED"},
    {"no_repeats", [](Architecture& a) { a.layer_groups[0].repeat_count = 0; }, "layer_groups[0].repeat_count",
     "OUT_OF_RANGE"},
    {"too_many_layers", [](Architecture& a) { a.layer_groups[0].repeat_count = 2049; }, "layer_groups", "OUT_OF_RANGE"},
    {"head_dim", [](Architecture& a) { Grouped(a).head_dim = 0; },
     "layer_groups[0].layers[1].attention.grouped_query.head_dim", "OUT_OF_RANGE"},
    {"kv_heads", [](Architecture& a) { Grouped(a).kv_head_count = 3; },
     "layer_groups[0].layers[1].attention.grouped_query.kv_head_count", "NOT_DIVISIBLE"},
    {"two_windows", [](Architecture& a) { Grouped(a).sliding_window = Grouped(a).chunked_window = 8; },
     "layer_groups[0].layers[1].attention.grouped_query.chunked_window", "CONFLICT"},
    {"heads_too_wide", [](Architecture& a) { Grouped(a).head_dim = 1 << 22; },
     "layer_groups[0].layers[1].attention.grouped_query.head_dim", "OUT_OF_RANGE"},
    {"shares_with_nobody",
     [](Architecture& a) {
       std::get<GroupedQueryAttention>(a.layer_groups[0].layers[0].attention).shares_earlier_kv = true;
     },
     "layer_groups[0].layers[0].attention.grouped_query.shares_earlier_kv", "CONFLICT"},
    {"experts_per_token", [](Architecture& a) { Experts(a).experts_per_token = 9; },
     "layer_groups[0].layers[1].feed_forward.mixture_of_experts.experts_per_token", "OUT_OF_RANGE"},
    {"no_experts", [](Architecture& a) { Experts(a).expert_count = 0; },
     "layer_groups[0].layers[1].feed_forward.mixture_of_experts.expert_count", "OUT_OF_RANGE"},
    {"capacity_nan", [](Architecture& a) { Experts(a).capacity_factor = kNan; },
     "layer_groups[0].layers[1].feed_forward.mixture_of_experts.capacity_factor", "OUT_OF_RANGE"},
    {"imbalance_below_one", [](Architecture& a) { Experts(a).load_imbalance_ratio = 0.5; },
     "layer_groups[0].layers[1].feed_forward.mixture_of_experts.load_imbalance_ratio", "OUT_OF_RANGE"},
    {"imbalance_infinite",
     [](Architecture& a) { Experts(a).load_imbalance_ratio = std::numeric_limits<double>::infinity(); },
     "layer_groups[0].layers[1].feed_forward.mixture_of_experts.load_imbalance_ratio", "OUT_OF_RANGE"},
    {"ffn_dim",
     [](Architecture& a) { std::get<DenseFeedForward>(a.layer_groups[0].layers[0].feed_forward).ffn_dim = 0; },
     "layer_groups[0].layers[0].feed_forward.dense.ffn_dim", "OUT_OF_RANGE"},
    {"draft_layer",
     [](Architecture& a) {
       a.mtp_layer_count = 1;
       a.mtp_layer = Dense(0, 1, 16, 16);
     },
     "mtp_layer.attention.grouped_query.query_head_count", "OUT_OF_RANGE"},
    {"latent",
     [](Architecture& a) {
       LatentAttention latent;
       latent.query_head_count = 4;
       latent.qk_nope_head_dim = latent.v_head_dim = 16;
       a.layer_groups[0].layers[1].attention = latent;
     },
     "layer_groups[0].layers[1].attention.latent.kv_lora_rank", "OUT_OF_RANGE"},
    {"mamba2_width",
     [](Architecture& a) {
       LinearAttention mamba;
       mamba.key_head_count = 1;
       mamba.value_head_count = 4;
       mamba.key_head_dim = mamba.value_head_dim = 16;
       mamba.inner_dim = 65;
       a.layer_groups[0].layers[1].attention = mamba;
     },
     "layer_groups[0].layers[1].attention.linear.inner_dim", "CONFLICT"},
    // 4,096 layers of 65,536 experts of 2^24 by 2^24 hold 1e28 parameters.
    {"more_parameters_than_fit",
     [](Architecture& a) {
       a.hidden_dim = 1 << 24;
       a.layer_groups[0].repeat_count = 2048;
       Experts(a).expert_count = 1 << 16;
       Experts(a).expert_ffn_dim = 1 << 24;
     },
     "layer_groups", "OUT_OF_RANGE"},
};

INSTANTIATE_TEST_SUITE_P(All, ValidateTest, testing::ValuesIn(kCases),
                         [](const testing::TestParamInfo<Case>& info) { return std::string(info.param.name); });

TEST(ValidateTest, ReportsEverythingAtOnce) {
  Architecture architecture = Small({Dense(8, 2, 16, 256), Moe(8, 2, 16, 8, 2, 32, 1)}, 2);
  architecture.hidden_dim = 0;
  architecture.vocab_size = 0;
  Grouped(architecture).head_dim = -1;
  Grouped(architecture).kv_head_count = 3;
  Experts(architecture).experts_per_token = 0;
  std::string fields;
  for (const hardware::Violation& violation : Validate(architecture)) fields += violation.field + "\n";
  EXPECT_EQ(fields, std::string("hidden_dim\nvocab_size\n") + kGrouped + "head_dim\n" + kGrouped + "kv_head_count\n" +
                        kMoe + "experts_per_token\n");
}

// The largest sizes that pass must not overflow anything behind.
TEST(ValidateTest, LargestLegalModelCounts) {
  Architecture architecture = Small({Dense(8, 2, 16, 256)}, 1);
  architecture.hidden_dim = architecture.vocab_size = 1 << 24;
  std::get<DenseFeedForward>(architecture.layer_groups[0].layers[0].feed_forward).ffn_dim = 1 << 24;
  EXPECT_TRUE(Validate(architecture).empty());
}

}  // namespace
}  // namespace sliceplan::transformer
