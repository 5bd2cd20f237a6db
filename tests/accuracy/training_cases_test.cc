// What a row of a table of training runs asks the service.
#include <map>
#include <string>
#include <utility>
#include <variant>

#include "client/calibrate/cases.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/catalog/catalog_store.h"

namespace sliceplan::calibrate {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Fields = std::map<std::string, std::string>;

const catalog::Catalog& BuiltIn() {
  static const std::shared_ptr<const catalog::Catalog>* const catalog =
      new std::shared_ptr<const catalog::Catalog>(*catalog::BuiltInCatalog());
  return **catalog;
}

// Llama-2-70B on 256 chips of v6e, with `changed` fields in place of these.
CaseTable Read(const Fields& changed) {
  Fields fields = {{"id", "SRC-001"},
                   {"accelerator", "tpu-v6e"},
                   {"model", "Llama-2-70B"},
                   {"n_params", "6.8977e+10"},
                   {"layers", "80"},
                   {"hidden_dim", "8192"},
                   {"ffn_dim", "28672"},
                   {"ffn_gated", "1"},
                   {"heads", "64"},
                   {"kv_heads", "8"},
                   {"head_dim", "128"},
                   {"vocab", "32000"},
                   {"experts", ""},
                   {"experts_per_token", ""},
                   {"seq_len", "4096"},
                   {"global_batch_seqs", "512"},
                   {"tokens_per_step", "2097152"},
                   {"chip", "TPU v6e"},
                   {"chips", "256"},
                   {"num_slices", "1"},
                   {"dp", ""},
                   {"fsdp", "256"},
                   {"tp", "1"},
                   {"sp_or_cp", ""},
                   {"pp", "1"},
                   {"ep", ""},
                   {"microbatch", "2"},
                   {"remat", "full"},
                   {"precision", "bf16 compute, fp32 weights"},
                   {"optimizer", "AdamW"},
                   {"framework", "MaxText (JAX)"},
                   {"metric_step_time_s", "9.052"},
                   {"metric_tokens_per_s_per_chip", ""},
                   {"memory_gb_per_chip", ""},
                   {"notes", "val=1;tier=core"}};
  for (const auto& [column, value] : changed) fields[column] = value;
  std::string header;
  std::string line;
  for (const auto& [column, value] : fields) {
    header += (header.empty() ? "" : ",") + column;
    line += (line.empty() ? "\"" : ",\"") + value + "\"";
  }
  const absl::StatusOr<Table> table = Table::Parse(header + "\n" + line + "\n");
  EXPECT_TRUE(table.ok()) << table.status();
  return TrainingCases(*table, BuiltIn());
}

Case Only(const Fields& changed) {
  const CaseTable read = Read(changed);
  EXPECT_THAT(read.unmapped, IsEmpty());
  EXPECT_THAT(read.cases, SizeIs(1));
  return read.cases.empty() ? Case() : read.cases[0];
}

v1::EstimateTrainingRequest Asked(const Fields& changed) {
  return std::get<v1::EstimateTrainingRequest>(Only(changed).question);
}

// Megatron on GPUs, 3 pipeline stages of 8 x 2 x 2.
const Fields kNeMo = {{"accelerator", "nvidia-h100-sxm"},
                      {"framework", "NeMo 24.09 (Megatron-Core)"},
                      {"chips", "96"},
                      {"dp", "2"},
                      {"fsdp", ""},
                      {"tp", "8"},
                      {"sp_or_cp", "2"},
                      {"pp", "3"},
                      {"layers", "21"},
                      {"global_batch_seqs", "126"},
                      {"microbatch", "1"},
                      {"precision", "bf16"}};

Fields With(Fields fields, const Fields& changed) {
  for (const auto& [column, value] : changed) fields[column] = value;
  return fields;
}

TEST(TrainingCasesTest, TheWholeRow) {
  const Case made = Only({});
  EXPECT_EQ(made.id, "SRC-001");
  EXPECT_EQ(made.source, "SRC");
  EXPECT_EQ(made.accelerator, "tpu-v6e");
  EXPECT_EQ(made.standing, Standing::kScored);
  EXPECT_EQ(made.remark, "");
  EXPECT_THAT(made.groups, ElementsAre("tpu-all", "tpu-dense", "tpu-all val=1", "tpu-dense val=1"));
  ASSERT_THAT(made.measured, SizeIs(1));
  EXPECT_EQ(made.measured[0].metric, Metric::kStepSeconds);
  EXPECT_EQ(made.measured[0].value, 9.052);

  const auto& request = std::get<v1::EstimateTrainingRequest>(made.question);
  EXPECT_EQ(request.calibration_profile(), "");
  EXPECT_EQ(request.slice().chip_count(), 256);
  EXPECT_EQ(request.workload().sequence_length(), 4096);
  EXPECT_EQ(request.workload().global_batch_size(), 512);
  EXPECT_EQ(request.workload().gradient_accumulation(), 1);
  EXPECT_EQ(request.workload().remat_policy(), v1::REMAT_POLICY_FULL);
  EXPECT_EQ(request.workload().precision().parameters(), v1::DATA_TYPE_FP32);
  EXPECT_EQ(request.parallelism().ici().fsdp(), 256);
  const v1::Architecture& model = request.model().architecture();
  EXPECT_EQ(model.hidden_dim(), 8192);
  EXPECT_FALSE(model.tied_embeddings());
  ASSERT_EQ(model.layer_groups_size(), 1);
  EXPECT_EQ(model.layer_groups(0).repeat_count(), 80);
  EXPECT_EQ(model.layer_groups(0).layers(0).attention().grouped_query().kv_head_count(), 8);
  EXPECT_TRUE(model.layer_groups(0).layers(0).feed_forward().dense().gated());
}

TEST(TrainingCasesTest, Degrees) {
  struct Degrees {
    const char* name;
    Fields fields;
    int data, fsdp, tensor, context, expert, pipeline;  // within a slice
    int dcn_data, dcn_fsdp;
  };
  for (const Degrees& c : {
           Degrees{"given", {}, 1, 256, 1, 1, 1, 1, 1, 1},
           Degrees{"blank dp is what remains", {{"fsdp", "64"}, {"tp", "2"}}, 2, 64, 2, 1, 1, 1, 1, 1},
           Degrees{"replicas over slices", {{"chips", "512"}, {"num_slices", "2"}}, 1, 256, 1, 1, 1, 1, 2, 1},
           Degrees{
               "FSDP over slices", {{"chips", "512"}, {"num_slices", "2"}, {"fsdp", "512"}}, 1, 256, 1, 1, 1, 1, 1, 2},
           Degrees{"experts beside FSDP", {{"fsdp", "64"}, {"ep", "4"}}, 1, 64, 1, 1, 4, 1, 1, 1},
           Degrees{"two devices of a chip",
                   {{"accelerator", "tpu-7x"}, {"chips", "128"}, {"fsdp", "256"}},
                   1,
                   128,
                   1,
                   1,
                   1,
                   1,
                   1,
                   1},
           Degrees{"Megatron", kNeMo, 2, 1, 8, 2, 1, 3, 1, 1},
           Degrees{"experts inside dp",
                   With(kNeMo, {{"chips", "64"}, {"dp", "8"}, {"tp", "4"}, {"pp", "1"}, {"ep", "8"}}), 1, 1, 4, 2, 8, 1,
                   1, 1},
           Degrees{"weights stay whole",
                   {{"accelerator", "nvidia-h100-sxm"}, {"framework", "FSDP"}, {"notes", "sharding=SHARD_GRAD_OP"}},
                   256,
                   1,
                   1,
                   1,
                   1,
                   1,
                   1,
                   1},
       }) {
    SCOPED_TRACE(c.name);
    const v1::Parallelism plan = Asked(c.fields).parallelism();
    EXPECT_EQ(plan.ici().data(), c.data);
    EXPECT_EQ(plan.ici().fsdp(), c.fsdp);
    EXPECT_EQ(plan.ici().tensor(), c.tensor);
    EXPECT_EQ(plan.ici().context(), c.context);
    EXPECT_EQ(plan.ici().expert(), c.expert);
    EXPECT_EQ(plan.ici().pipeline(), c.pipeline);
    EXPECT_EQ(plan.dcn().data(), c.dcn_data);
    EXPECT_EQ(plan.dcn().fsdp(), c.dcn_fsdp);
  }
}

TEST(TrainingCasesTest, Microbatches) {
  struct Microbatches {
    const char* name;
    Fields fields;
    int accumulation, microbatches, chunks;
  };
  for (const Microbatches& c : {
           Microbatches{"accumulated: 2048 / (256 x 2)", {{"global_batch_seqs", "2048"}}, 4, 0, 0},
           Microbatches{"MaxText's batch is per device", {{"fsdp", "16"}, {"tp", "16"}}, 1, 0, 0},
           Microbatches{"pipelined: 126 / (2 x 1)", kNeMo, 1, 63, 0},
           Microbatches{"chunks", With(kNeMo, {{"notes", "VP=7"}}), 1, 63, 7},
           Microbatches{"chunks without a pipeline", With(kNeMo, {{"notes", "VP=7"}, {"pp", "1"}, {"chips", "32"}}), 63,
                        0, 0},
           Microbatches{"a local batch", With(kNeMo, {{"notes", "microbatch column is local batch"}}), 1, 3, 0},
       }) {
    SCOPED_TRACE(c.name);
    const v1::EstimateTrainingRequest request = Asked(c.fields);
    EXPECT_EQ(request.workload().gradient_accumulation(), c.accumulation);
    EXPECT_EQ(request.parallelism().microbatch_count(), c.microbatches);
    EXPECT_EQ(request.parallelism().virtual_stage_count(), c.chunks);
  }
}

TEST(TrainingCasesTest, StacksAndWhatTheyShard) {
  struct Stacks {
    const char* framework;
    const char* profile;
    const char* group;
    v1::ZeroStage stage;
  };
  for (const Stacks& c : {
           Stacks{"NeMo 24.09 (Megatron-Core)", "megatron-gpu", "gpu-vendor-dense", v1::ZERO_STAGE_1},
           Stacks{"Megatron-LM", "megatron-gpu", "gpu-vendor-dense", v1::ZERO_STAGE_UNSPECIFIED},
           Stacks{"MaxText (JAX, XLA:GPU)", "megatron-gpu", "gpu-vendor-dense", v1::ZERO_STAGE_UNSPECIFIED},
           Stacks{"DeepSpeed ZeRO-2", "fsdp-torch-gpu", "gpu-torch-dense", v1::ZERO_STAGE_2},
           Stacks{"Megatron-DeepSpeed", "fsdp-torch-gpu", "gpu-torch-dense", v1::ZERO_STAGE_UNSPECIFIED},
       }) {
    SCOPED_TRACE(c.framework);
    const Case made = Only(With(kNeMo, {{"framework", c.framework}}));
    const auto& request = std::get<v1::EstimateTrainingRequest>(made.question);
    EXPECT_EQ(request.calibration_profile(), c.profile);
    EXPECT_EQ(request.parallelism().data_zero_stage(), c.stage);
    EXPECT_THAT(made.groups, Contains(c.group));
  }
  EXPECT_EQ(Asked(With(kNeMo, {{"notes", "profile=mine"}})).calibration_profile(), "mine");
  EXPECT_THAT(Only(With(kNeMo, {{"notes", "group=slow"}})).groups, ElementsAre("slow"));
  // Megatron-LM's flag is off unless given.
  EXPECT_FALSE(Asked(With(kNeMo, {{"framework", "Megatron-LM"}, {"sp_or_cp", ""}})).parallelism().sequence_parallel());
  for (const char* older : {"Megatron-DeepSpeed", "DeepSpeed + Megatron-LM"}) {
    const v1::Parallelism plan = Asked(With(kNeMo, {{"framework", older}, {"sp_or_cp", ""}})).parallelism();
    EXPECT_TRUE(plan.has_sequence_parallel()) << older;
    EXPECT_FALSE(plan.sequence_parallel()) << older;
  }
  EXPECT_FALSE(
      Asked(With(kNeMo, {{"framework", "DeepSpeed ZeRO-2"}, {"sp_or_cp", ""}})).parallelism().has_sequence_parallel());
  const v1::Parallelism on = Asked(With(kNeMo, {{"framework", "Megatron-LM"}, {"sp_or_cp", "SP=TP"}})).parallelism();
  EXPECT_TRUE(on.sequence_parallel());
  EXPECT_EQ(on.ici().context(), 1);
}

TEST(TrainingCasesTest, Recompute) {
  const auto policy = [](const char* remat) { return Asked({{"remat", remat}}).workload().remat_policy(); };
  EXPECT_EQ(policy("full (activation checkpointing on)"), v1::REMAT_POLICY_FULL);
  EXPECT_EQ(policy("none (checkpoint granularity null)"), v1::REMAT_POLICY_NONE);
  EXPECT_EQ(policy("minimal_flash"), v1::REMAT_POLICY_MINIMAL_FLASH);
  EXPECT_EQ(policy("save_dot_except_mlpwi"), v1::REMAT_POLICY_SAVE_DOT_EXCEPT_MLPWI);
  EXPECT_EQ(policy(""), v1::REMAT_POLICY_FULL);  // MaxText's default
  EXPECT_THAT(Only({{"remat", ""}}).remark, HasSubstr("recompute not stated"));
  EXPECT_EQ(Asked(With(kNeMo, {{"remat", ""}})).workload().remat_policy(), v1::REMAT_POLICY_UNSPECIFIED);
  EXPECT_EQ(Asked(With(kNeMo, {{"remat", "selective"}})).workload().remat_policy(), v1::REMAT_POLICY_MINIMAL);

  const auto custom = [](const char* remat) { return Asked({{"remat", remat}}).workload().custom_remat(); };
  const v1::CustomRemat host = custom("custom: decoder_layer_input, out_proj, q/k/v_proj offloaded to host");
  EXPECT_THAT(host.offloaded(),
              ElementsAre(v1::LAYER_TENSOR_LAYER_INPUT, v1::LAYER_TENSOR_OUT_PROJ, v1::LAYER_TENSOR_QUERY_PROJ,
                          v1::LAYER_TENSOR_KEY_PROJ, v1::LAYER_TENSOR_VALUE_PROJ));
  EXPECT_THAT(host.saved(), IsEmpty());
  const v1::CustomRemat mixed = custom("custom: decoder_layer_input on device, q/k/v recomputed");
  EXPECT_THAT(mixed.saved(), ElementsAre(v1::LAYER_TENSOR_LAYER_INPUT));
  EXPECT_THAT(mixed.recomputed(), SizeIs(3));
  const v1::CustomRemat named = custom("custom: mlpwo+context offloaded");
  EXPECT_THAT(named.offloaded(), ElementsAre(v1::LAYER_TENSOR_CONTEXT, v1::LAYER_TENSOR_MLPWO));
  EXPECT_THAT(named.saved(), ElementsAre(v1::LAYER_TENSOR_LAYER_INPUT));
  EXPECT_THAT(custom("qkv_proj_offloaded").offloaded(), SizeIs(3));
}

TEST(TrainingCasesTest, Formats) {
  const auto precision = [](const Fields& fields) { return Asked(fields).workload().precision(); };
  EXPECT_EQ(precision({{"precision", "int8 (AQT) matmuls"}}).compute(), v1::DATA_TYPE_INT8);
  EXPECT_EQ(precision({{"precision", "fp8 (delayed scaling)"}}).compute(), v1::DATA_TYPE_FP8);
  EXPECT_EQ(precision({{"precision", "bf16 compute, bf16 weights"}}).master_weights(), v1::DATA_TYPE_BF16);
  const v1::TrainingPrecision pure = precision(With(kNeMo, {{"framework", "FSDP"}, {"precision", "bf16 PURE"}}));
  EXPECT_EQ(pure.parameters(), v1::DATA_TYPE_FP32);
  EXPECT_EQ(pure.gradient_reduction(), v1::DATA_TYPE_BF16);
  EXPECT_EQ(precision(With(kNeMo, {{"notes", "fp32 grad accumulation"}})).gradients(), v1::DATA_TYPE_FP32);
  EXPECT_TRUE(Asked({{"optimizer", "AdamW on CPU (offload)"}}).workload().optimizer_offload());
  EXPECT_EQ(Asked({{"optimizer", "sgd"}}).workload().optimizer(), v1::OPTIMIZER_SGD);
}

TEST(TrainingCasesTest, Models) {
  const auto model = [](const Fields& fields) { return Asked(fields).model().architecture(); };
  const v1::Architecture gemma = model({{"notes", "5 of 6 layers sliding window 1024"}, {"layers", "48"}});
  ASSERT_EQ(gemma.layer_groups_size(), 1);
  EXPECT_EQ(gemma.layer_groups(0).repeat_count(), 8);
  ASSERT_EQ(gemma.layer_groups(0).layers_size(), 6);
  EXPECT_EQ(gemma.layer_groups(0).layers(4).attention().grouped_query().sliding_window(), 1024);
  EXPECT_EQ(gemma.layer_groups(0).layers(5).attention().grouped_query().sliding_window(), 0);

  const v1::Architecture maverick = model({{"experts", "128"},
                                           {"experts_per_token", "1"},
                                           {"ffn_dim", "8192"},
                                           {"notes", "MoE every 2nd layer;1 shared expert"}});
  ASSERT_EQ(maverick.layer_groups(0).layers_size(), 2);
  EXPECT_EQ(maverick.layer_groups(0).layers(0).feed_forward().dense().ffn_dim(), 16384);
  EXPECT_EQ(maverick.layer_groups(0).layers(1).feed_forward().mixture_of_experts().shared_expert_count(), 1);

  const v1::Architecture small = model({{"model", "MaxText-22B"}, {"ffn_gated", "0"}});
  EXPECT_TRUE(small.layer_groups(0).layers(0).parallel_block());
  EXPECT_EQ(model({{"vocab", ""}, {"ffn_gated", "0"}, {"n_params", ""}}).vocab_size(), 51200);

  const Fields latent = {{"model", "DeepSeek-V3 proxy (4 layers)"},
                         {"layers", "4"},
                         {"hidden_dim", "7168"},
                         {"heads", "128"},
                         {"kv_heads", ""},
                         {"head_dim", ""},
                         {"vocab", "129280"},
                         {"experts", "256"},
                         {"notes", "MLA;1 dense layer in the formal rows"}};
  const std::string config = Asked(latent).model().hugging_face_config();
  EXPECT_THAT(config, HasSubstr("\"num_hidden_layers\":4"));
  EXPECT_THAT(config, HasSubstr("\"first_k_dense_replace\":1"));
  EXPECT_THAT(config, HasSubstr("\"num_nextn_predict_layers\":0"));
  EXPECT_THAT(Only(latent).groups, Contains("tpu-moe"));
  EXPECT_EQ(Asked({{"notes", "capacity factor 1.25"}}).workload().expert_capacity_factor(), 1.25);
}

TEST(TrainingCasesTest, Standing) {
  const auto standing = [](const Fields& fields) { return Only(fields).standing; };
  EXPECT_EQ(standing({{"notes", "flag=dims do not multiply"}}), Standing::kInconsistent);
  EXPECT_EQ(standing({{"microbatch", ""}}), Standing::kInformative);
  EXPECT_EQ(standing({{"notes", "tier=approx"}}), Standing::kInformative);
  EXPECT_EQ(standing({{"notes", "superseded_by_later_log"}}), Standing::kInformative);
  EXPECT_THAT(Only({{"microbatch", ""}}).remark, HasSubstr("microbatch"));
  const Case variant = Only(With(kNeMo, {{"accelerator", ""}, {"chip", "H100-96GB-HBM2e"}}));
  EXPECT_EQ(variant.standing, Standing::kInformative);
  EXPECT_EQ(std::get<v1::EstimateTrainingRequest>(variant.question).slice().override().hbm_bytes(), 96'000'000'000);
}

TEST(TrainingCasesTest, Measured) {
  const Fields untimed = {{"metric_step_time_s", ""}};
  const auto seconds = [&](const Fields& fields) { return Only(With(untimed, fields)).measured.at(0).value; };
  // 2,097,152 tokens / (1000 per second and chip x 256 chips).
  EXPECT_DOUBLE_EQ(seconds({{"metric_tokens_per_s_per_chip", "1000"}}), 2097152.0 / 1000 / 256);
  EXPECT_EQ(seconds({{"notes", "conv=mfu_6N;implied_step_s=9.5(by 6N)"}}), 9.5);
  EXPECT_EQ(Only(With(untimed, {{"notes", "conv=mfu(unstated);implied_step_s=9.5(by 6N)"}})).standing,
            Standing::kInformative);
  const Case memory = Only({{"memory_gb_per_chip", "2"}, {"notes", "memory=max allocated GiB"}});
  ASSERT_THAT(memory.measured, SizeIs(2));
  EXPECT_EQ(memory.measured[1].metric, Metric::kAllocatedMemoryBytes);
  EXPECT_EQ(memory.measured[1].value, 2.0 * (1LL << 30));
  EXPECT_EQ(Only({{"memory_gb_per_chip", "2"}}).measured.at(1).value, 2e9);
}

TEST(TrainingCasesTest, RowsWithoutAQuestion) {
  struct Rows {
    const char* name;
    Fields fields;
    const char* reason;
  };
  for (const Rows& c : {
           Rows{"chip", {{"accelerator", ""}, {"chip", "A800"}}, "no such chip"},
           Rows{"count", {{"chips", ""}}, "no chip count"},
           Rows{"degrees", {{"fsdp", "100"}}, "do not divide"},
           Rows{"model", {{"model", "Unheard-3B"}, {"hidden_dim", ""}}, "dimensions"},
           Rows{"time", {{"metric_step_time_s", ""}}, "no time"},
           Rows{"recompute", {{"remat", "selective layer (every 2nd)"}}, "no policy"},
       }) {
    SCOPED_TRACE(c.name);
    const CaseTable read = Read(c.fields);
    EXPECT_THAT(read.cases, IsEmpty());
    ASSERT_THAT(read.unmapped, SizeIs(1));
    EXPECT_EQ(read.unmapped[0].id, "SRC-001");
    EXPECT_EQ(read.unmapped[0].source, "SRC");
    EXPECT_THAT(read.unmapped[0].reason, HasSubstr(c.reason));
  }
}

}  // namespace
}  // namespace sliceplan::calibrate
