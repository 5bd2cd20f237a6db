// Arguments of every subcommand to requests.
#include "client/cli/flags.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "client/cli/catalog.h"
#include "client/cli/collective.h"
#include "client/cli/describe.h"
#include "client/cli/operation.h"
#include "client/cli/subcommands.h"
#include "client/cli/train.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "tests/client/cli/parse.h"

namespace sliceplan::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kBatchIs1024Sequences[] = "global_batch_tokens: 4194304";

std::vector<std::string> Split(const std::string& line) { return absl::StrSplit(line, ' ', absl::SkipEmpty()); }

// Expects that `line` makes the request that `text` describes, with `more` merged into it.
void ExpectRequest(Question& question, const std::string& line, const std::string& text, const std::string& more = "") {
  const ParsedFlags parsed(&question, Split(line));
  EXPECT_THAT(parsed.problems(), IsEmpty()) << line;
  const std::unique_ptr<google::protobuf::Message> expected(question.request()->New());
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(text, expected.get())) << text;
  ASSERT_TRUE(google::protobuf::TextFormat::MergeFromString(more, expected.get())) << more;
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(*expected, *question.request()))
      << line << "\nmade\n"
      << question.request()->DebugString();
}

struct TrainCase {
  const char* name;
  std::string line;
  std::string request;
};

void PrintTo(const TrainCase& c, std::ostream* out) { *out << c.line; }

class TrainFlagsTest : public testing::TestWithParam<TrainCase> {};

TEST_P(TrainFlagsTest, MakesTheRequest) {
  TrainQuestion question;
  ExpectRequest(question, "--model m --slice c " + GetParam().line, "model { preset: 'm' } slice { accelerator: 'c' }",
                GetParam().request);
}

INSTANTIATE_TEST_SUITE_P(
    Train, TrainFlagsTest,
    testing::Values(
        TrainCase{"nothing_else", "", ""},
        TrainCase{"sequence_then_batch", "--sequence 4096 --batch-tokens 4M",
                  std::string("workload { sequence_length: 4096 ") + kBatchIs1024Sequences + "}"},
        TrainCase{"batch_then_sequence", "--batch-tokens 4M --sequence 4096",
                  std::string("workload { sequence_length: 4096 ") + kBatchIs1024Sequences + "}"},
        TrainCase{"batch_in_sequences", "--batch 1Ki --steps 10k",
                  "workload { global_batch_size: 1024 step_count: 10000 }"},
        TrainCase{"tokens", "--tokens=15T", "workload { total_tokens: 15000000000000 }"},
        TrainCase{"limits", "--deadline 30d --budget 5M", "job_deadline_seconds: 2592000 budget_usd: 5e6"},
        TrainCase{"parallelism", "--parallelism fsdp=512,context=2,tensor=4,dcn.data=2",
                  "parallelism { ici { fsdp: 512 context: 2 tensor: 4 } dcn { data: 2 } }"},
        TrainCase{"short_axes", "--parallelism ici.dp=2,tp=4,cp=2,ep=8,pp=2,dcn.pp=2",
                  "parallelism { ici { data: 2 tensor: 4 context: 2 expert: 8 pipeline: 2 } dcn { pipeline: 2 } }"},
        TrainCase{"only_across_slices", "--parallelism dcn.data=2", "parallelism { dcn { data: 2 } }"},
        TrainCase{"mapping", "--mapping tensor=2:4,fsdp=0:16:2",
                  "parallelism { mapping { axis: PARALLELISM_AXIS_TENSOR physical_axis: 2 factor: 4 }"
                  "  mapping { axis: PARALLELISM_AXIS_FSDP physical_axis: 0 factor: 16 stride: 2 } }"},
        TrainCase{"pipeline", "--schedule 1f1b --virtual-stages 2 --microbatches 16 --zero 1 --accumulation 4",
                  "parallelism { schedule: PIPELINE_SCHEDULE_ONE_F_ONE_B virtual_stage_count: 2 microbatch_count: 16"
                  "  data_zero_stage: ZERO_STAGE_1 } workload { gradient_accumulation: 4 }"},
        TrainCase{"plan_switches", "--no-sequence-parallel --allow-idle --allow-padding",
                  "parallelism { sequence_parallel: false allow_idle_chips: true allow_padding: true }"},
        TrainCase{"memory",
                  "--remat full --optimizer adafactor --optimizer-offload --activation-offload --logits-chunks 8",
                  "workload { remat_policy: REMAT_POLICY_FULL optimizer: OPTIMIZER_ADAFACTOR optimizer_offload: true"
                  "  activation_offload: true logits_chunk_count: 8 }"},
        TrainCase{"checkpoints", "--checkpoints-per-layer 4", "workload { checkpoints_per_layer: 4 }"},
        TrainCase{"custom_remat", "--save query-proj,context --offload mlpwi",
                  "workload { remat_policy: REMAT_POLICY_CUSTOM custom_remat { saved: LAYER_TENSOR_QUERY_PROJ"
                  "  saved: LAYER_TENSOR_CONTEXT offloaded: LAYER_TENSOR_MLPWI } }"},
        TrainCase{"precision_of_matmuls", "--precision fp8", "workload { precision { compute: DATA_TYPE_FP8 } }"},
        TrainCase{
            "precision_by_name",
            "--precision compute=bf16,parameters=fp32,gradients=bf16,reduction=bf16,optimizer=int8,master=fp32",
            "workload { precision { compute: DATA_TYPE_BF16 parameters: DATA_TYPE_FP32 gradients: DATA_TYPE_BF16"
            "  gradient_reduction: DATA_TYPE_BF16 optimizer_state: DATA_TYPE_INT8 master_weights: DATA_TYPE_FP32 } }"},
        TrainCase{"attention", "--attention materialized --mask full --no-causal-skipping",
                  "workload { attention_kernel: ATTENTION_KERNEL_MATERIALIZED attention_mask: ATTENTION_MASK_FULL"
                  "  causal_skipping: false }"},
        TrainCase{"experts", "--capacity-factor 1.25 --load-imbalance 1.1",
                  "workload { expert_capacity_factor: 1.25 expert_load_imbalance_ratio: 1.1 }"},
        TrainCase{"mode", "--mode roofline --profile maxtext-tpu",
                  "estimation_mode: ESTIMATION_MODE_ROOFLINE calibration_profile: 'maxtext-tpu'"},
        TrainCase{"assumed", "--assumed-mfu 40%", "assumed_mfu_ratio: 0.4"},
        TrainCase{"price", "--price $4.20 --price-model on-demand --region us-east5 --provider gcp --as-of 2026-08-22",
                  "pricing { usd_per_chip_hour: 4.2 price_model: PRICE_MODEL_ON_DEMAND region: 'us-east5'"
                  "  provider: 'gcp' as_of: '2026-08-22' }"},
        TrainCase{"failures",
                  "--mtbf 50000h --preemptions-per-hour 0.1 --checkpoint-write 30s --restart 5min"
                  " --checkpoint-interval 1h",
                  "reliability { mean_seconds_between_failures_per_chip: 180000000 preemptions_per_hour: 0.1"
                  "  checkpoint_write_seconds: 30 restart_seconds: 300 checkpoint_interval_seconds: 3600 }"},
        TrainCase{"slices", "--slices 2 --twisted --machine-type ct6e-standard-8t",
                  "slice { slice_count: 2 twisted: true machine_type: 'ct6e-standard-8t' }"},
        TrainCase{"chips", "--chips 64", "slice { chip_count: 64 }"},
        TrainCase{"override", "--override hbm_bytes=192Gi,hbm_bytes_per_second=3.3T",
                  "slice { override { hbm_bytes: 206158430208 hbm_bytes_per_second: 3.3e12 } }"}),
    [](const testing::TestParamInfo<TrainCase>& info) { return std::string(info.param.name); });

TEST(SliceFlagTest, ReadsEveryWayToNameASlice) {
  for (const auto& [text, slice] : std::vector<std::pair<std::string, std::string>>{
           {"tpu-v5p:16x16x16", "accelerator: 'tpu-v5p' topology: '16x16x16'"},
           {"h100:64", "accelerator: 'h100' chip_count: 64"},
           {"v5p-256", "accelerator_type: 'v5p-256'"},
           {"v5litepod-16", "accelerator_type: 'v5litepod-16'"},
           {"tpu-v5p", "accelerator: 'tpu-v5p'"},
           {"nvidia-gb200-nvl72:144", "accelerator: 'nvidia-gb200-nvl72' chip_count: 144"},
           {"nvidia-h100-sxm", "accelerator: 'nvidia-h100-sxm'"}}) {
    TrainQuestion question;
    ExpectRequest(question, "--model m --slice " + text, "model { preset: 'm' } slice { " + slice + " }");
  }
}

TEST(ModelFlagTest, ReadsFilesAndStandardInput) {
  DescribeQuestion from_input;
  const ParsedFlags parsed(&from_input, {"-"}, R"({"model_type": "llama"})");
  EXPECT_THAT(parsed.problems(), IsEmpty());
  EXPECT_EQ(from_input.request()->model().hugging_face_config(), R"({"model_type": "llama"})");

  DescribeQuestion architecture;
  const ParsedFlags written_out(&architecture, {"--model", "-"},
                                R"({"hiddenDim": 64, "layerGroups": [{"repeatCount": 2}]})");
  EXPECT_THAT(written_out.problems(), IsEmpty());
  EXPECT_EQ(architecture.request()->model().architecture().hidden_dim(), 64);

  DescribeQuestion missing;
  EXPECT_THAT(ParsedFlags(&missing, {"no/such/config.json"}).problems(),
              ElementsAre(HasSubstr("--model: cannot read the file 'no/such/config.json'")));

  DescribeQuestion broken;
  EXPECT_THAT(ParsedFlags(&broken, {"-"}, R"({"layerGroups": 3})").problems(), ElementsAre(HasSubstr("--model: ")));

  DescribeQuestion long_text;
  EXPECT_THAT(ParsedFlags(&long_text, {"-"}, std::string((1 << 20) + 1, ' ')).problems(),
              ElementsAre(HasSubstr("more than 1048576 bytes")));
}

TEST(DescribeFlagsTest, MakeTheRequest) {
  DescribeQuestion question;
  ExpectRequest(question, "llama-3-70b --sequence 128Ki --kv fp8 --mask full",
                "model { preset: 'llama-3-70b' } sequence_length: 131072 kv_cache_dtype: DATA_TYPE_FP8"
                " attention_mask: ATTENTION_MASK_FULL");
}

TEST(OperationFlagsTest, MakeTheRequest) {
  using Kind = OperationQuestion::Kind;
  OperationQuestion matmul(Kind::kMatmul);
  ExpectRequest(matmul,
                "--m 4096 --k 8Ki --n 28672 --batch 2,3 --dtype bf16 --rhs int8 --slice tpu-v5e:4x4 --mesh x=4,y=4"
                " --lhs-sharding m=x,k=y --rhs-sharding k=y --out-sharding m=x+y --mode roofline",
                "matmul { m: 4096 k: 8192 n: 28672 batch_dims: 2 batch_dims: 3 lhs_dtype: DATA_TYPE_BF16"
                "  rhs_dtype: DATA_TYPE_INT8 output_dtype: DATA_TYPE_BF16"
                "  lhs_sharding { dimension: 'm' axes: 'x' } lhs_sharding { dimension: 'k' axes: 'y' }"
                "  rhs_sharding { dimension: 'k' axes: 'y' } output_sharding { dimension: 'm' axes: 'x' axes: 'y' } }"
                " mesh_axes { name: 'x' size: 4 } mesh_axes { name: 'y' size: 4 }"
                " slice { accelerator: 'tpu-v5e' topology: '4x4' } estimation_mode: ESTIMATION_MODE_ROOFLINE");
  OperationQuestion attention(Kind::kAttention);
  ExpectRequest(
      attention,
      "--query-length 1 --key-length 8192 --heads 64 --kv-heads 8 --head-dim 128 --batch 32 --kv fp8 --slice h100",
      "attention { query_length: 1 key_length: 8192 query_head_count: 64 kv_head_count: 8 head_dim: 128"
      "  batch_size: 32 kv_dtype: DATA_TYPE_FP8 } slice { accelerator: 'h100' }");
  OperationQuestion elementwise(Kind::kElementwise);
  ExpectRequest(elementwise, "--elements 64Mi --inputs 2 --flops-per-element 3 --dtype fp32 --slice h100",
                "elementwise { element_count: 67108864 input_count: 2 flops_per_element: 3 dtype: DATA_TYPE_FP32 }"
                " slice { accelerator: 'h100' }");
}

// Answers with a slice of 2 x 4 x 8 chips, two of them, and remembers the questions.
class SliceBackend : public Backend {
 public:
  google::rpc::Status Call(const std::string&, const google::protobuf::Message&,
                           google::protobuf::Message* response) override {
    ++calls;
    auto* const slice = static_cast<v1::AnalyzeCollectiveResponse*>(response)->mutable_slice();
    slice->set_slice_count(2);
    for (const int dim : {2, 4, 8}) slice->mutable_slice()->add_dims(dim);
    return google::rpc::Status();
  }
  int calls = 0;
};

TEST(CollectiveFlagsTest, MakeTheRequest) {
  CollectiveQuestion question;
  const ParsedFlags parsed(&question, Split("all-to-all --bytes 64MiB --slice h100:64 --axes 0:4:2 --experts 256"
                                            " --experts-per-token 8 --no-in-network-reduction"));
  EXPECT_THAT(parsed.problems(), IsEmpty());
  SliceBackend backend;
  EXPECT_EQ(question.Complete(backend).code(), 0);
  EXPECT_EQ(backend.calls, 0);
  v1::AnalyzeCollectiveRequest expected;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "kind: COLLECTIVE_KIND_ALL_TO_ALL bytes: 67108864 slice { accelerator: 'h100' chip_count: 64 }"
      " group_pieces { axis: 0 factor: 4 stride: 2 } ragged { expert_count: 256 experts_per_token: 8 }"
      " in_network_reduction: false",
      &expected));
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(expected, *question.request()))
      << question.request()->DebugString();
}

TEST(CollectiveFlagsTest, AsksForTheLengthsOfWholeAxes) {
  CollectiveQuestion question;
  const ParsedFlags parsed(&question, Split("all-gather --bytes 1Mi --slice tpu-v5p:2x4x8 --slices 2 --axes -1,2,1,5"));
  EXPECT_THAT(parsed.problems(), IsEmpty());
  SliceBackend backend;
  EXPECT_EQ(question.Complete(backend).code(), 0);
  EXPECT_EQ(backend.calls, 1);
  std::vector<std::pair<int, int>> pieces;
  for (const v1::GroupPiece& piece : question.request()->group_pieces())
    pieces.emplace_back(piece.axis(), piece.factor());
  // Axis 5 does not exist: the service says so.
  EXPECT_THAT(pieces, ElementsAre(std::pair(-1, 2), std::pair(2, 8), std::pair(1, 4), std::pair(5, 0)));
}

TEST(CatalogFlagsTest, MakeTheRequest) {
  const std::unique_ptr<Question> question = MakeListPricesQuestion();
  ExpectRequest(*question, "--filter price_model=SPOT --page-size 10 --page-token abc",
                "filter: 'price_model=SPOT' page_size: 10 page_token: 'abc'");
  const std::unique_ptr<Question> all = MakeListModelsQuestion();
  ExpectRequest(*all, "", "page_size: 500");
}

TEST(ProblemsTest, AreAllSaidAtOnce) {
  TrainQuestion question;
  const ParsedFlags parsed(&question, Split("--slice :8 --sequence 4X --remat some --parallelism fsdp=2,tensr=4"
                                            " --mapping tensor=2 --precision speed=fp8 --mode fast --microbatches 3e9"
                                            " --override hbm_byte=3"));
  EXPECT_THAT(parsed.problems(),
              testing::UnorderedElementsAre(
                  HasSubstr("--slice: ':8' is no slice"), HasSubstr("--sequence: '4X' is not a whole number"),
                  HasSubstr("--remat: 'some' is none of none, full, block"),
                  HasSubstr("--parallelism: no axis is called 'tensr'; did you mean tensor"),
                  HasSubstr("--mapping: '2' cannot be read"), HasSubstr("--precision: 'speed' has no format"),
                  HasSubstr("--mode: 'fast' is none of roofline"), HasSubstr("--microbatches: 3e9 is above 2147483647"),
                  HasSubstr("--override: a chip has no 'hbm_byte'; did you mean hbm_bytes"), "--model is missing"));
}

TEST(ProblemsTest, RefuseWhatContradictsItself) {
  TrainQuestion twice;
  EXPECT_THAT(ParsedFlags(&twice, Split("--model m --slice c --parallelism tp=2,tensor=4")).problems(),
              ElementsAre("--parallelism: tensor is given twice"));
  TrainQuestion shapes;
  EXPECT_THAT(ParsedFlags(&shapes, Split("--model m --slice v5p-256 --chips 64")).problems(),
              ElementsAre(HasSubstr("--chips: --slice already says how many")));
}

TEST(ProblemsTest, OfOneChoiceOnlyOneFlag) {
  TrainQuestion question;
  EXPECT_THAT(ParsedFlags(&question, Split("--model m --slice c --batch 8 --batch-tokens 4Mi --steps 5 --tokens 1T"))
                  .problems(),
              testing::UnorderedElementsAre("--batch-tokens and --batch exclude each other",
                                            "--tokens and --steps exclude each other"));
}

TEST(ProblemsTest, NearChoicesAndNumbersAreOffered) {
  TrainQuestion question;
  EXPECT_THAT(ParsedFlags(&question, Split("--model m --slice c --remat ful --tokens 15t")).problems(),
              testing::UnorderedElementsAre(HasSubstr("did you mean full?"),
                                            "--tokens: '15t' is not a whole number; did you mean 15T?"));
}

TEST(FieldsTest, SentencesNameFlags) {
  TrainQuestion question;
  const ParsedFlags parsed(&question, Split("--model m --slice c"));
  EXPECT_EQ(parsed.flags().WithFlags("needs workload.total_tokens; or set slice.override.hbm_bytes."),
            "needs --tokens; or set --override hbm_bytes.");
  EXPECT_EQ(parsed.flags().WithFlags("2.5 GiB of v1.5 e.g. nothing"), "2.5 GiB of v1.5 e.g. nothing");
}

TEST(FieldsTest, TurnBackIntoFlags) {
  TrainQuestion question;
  const ParsedFlags parsed(&question, Split("--model m --slice c"));
  const Flags& flags = parsed.flags();
  EXPECT_EQ(flags.FlagFor("workload.sequence_length"), "--sequence");
  EXPECT_EQ(flags.FlagFor("parallelism.ici.tensor"), "--parallelism");
  EXPECT_EQ(flags.FlagFor("parallelism.mapping[1].factor"), "--mapping");
  EXPECT_EQ(flags.FlagFor("slice.slice_count"), "--slices");
  EXPECT_EQ(flags.FlagFor("slice.topology"), "--slice");
  EXPECT_EQ(flags.FlagFor("slices"), "");
  EXPECT_EQ(flags.FlagFor("model.hugging_face_config"), "--model");
  EXPECT_EQ(flags.FlagFor(""), "");
  EXPECT_EQ(flags.ChangeAsFlag("workload.remat_policy", "REMAT_POLICY_FULL"), "--remat full");
  EXPECT_EQ(flags.ChangeAsFlag("workload.gradient_accumulation", "4"), "--accumulation 4");
  EXPECT_EQ(flags.ChangeAsFlag("workload.optimizer_offload", "true"), "--optimizer-offload");
  EXPECT_EQ(flags.ChangeAsFlag("workload.optimizer_offload", "false"), "without --optimizer-offload");
  EXPECT_EQ(flags.ChangeAsFlag("parallelism.sequence_parallel", "false"), "--no-sequence-parallel");
  EXPECT_EQ(flags.ChangeAsFlag("parallelism.ici.tensor", "8"), "--parallelism tensor=8");
  EXPECT_EQ(flags.ChangeAsFlag("parallelism.dcn.data", "2"), "--parallelism dcn.data=2");
  EXPECT_EQ(flags.ChangeAsFlag("workload.precision.compute", "DATA_TYPE_FP8"), "--precision compute=fp8");
  EXPECT_EQ(flags.ChangeAsFlag("parallelism.layers_per_stage", "10"), "parallelism.layers_per_stage = 10");
  EXPECT_EQ(flags.Typed("--model"), "m");
  EXPECT_EQ(flags.Typed("--precision"), "");
}

// A typing error in the table of a subcommand would otherwise show only when the flag is used.
TEST(SubcommandsTest, EveryFlagNamesAFieldOfItsRequest) {
  for (const Subcommand& subcommand : AllSubcommands()) {
    const std::unique_ptr<Question> question = subcommand.make();
    EXPECT_NO_FATAL_FAILURE(ParsedFlags(question.get(), {})) << subcommand.name;
    EXPECT_FALSE(subcommand.description.empty());
  }
}

}  // namespace
}  // namespace sliceplan::cli
