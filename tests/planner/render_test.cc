// What each rendering says of each plan. Whether the real tools' parsers accept it: render_check.py, which has the
// samples written by this program.
#include "server/planner/render/rendering.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "server/planner/render/render_words.h"
#include "tests/planner/render_samples.h"

namespace sliceplan::planner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr RenderTarget kAllTargets[] = {RenderTarget::kJax,   RenderTarget::kMaxText, RenderTarget::kMegatron,
                                        RenderTarget::kVllm,  RenderTarget::kXpk,     RenderTarget::kGkeJobSet,
                                        RenderTarget::kKueue, RenderTarget::kCloudTpu};

const std::deque<Sample>& AllSamples() {
  static const auto* const samples = new std::deque<Sample>(Samples());
  return *samples;
}

const Sample& SampleNamed(absl::string_view name) {
  for (const Sample& sample : AllSamples()) {
    if (sample.name == name) return sample;
  }
  ADD_FAILURE() << "no sample " << name;
  return AllSamples().front();
}

std::string Text(RenderTarget target, const RenderInput& input) {
  absl::StatusOr<Rendering> rendering = Render(target, input);
  if (!rendering.ok()) return rendering.status().ToString();
  EXPECT_EQ(rendering->target, target);
  return rendering->text;
}

// Writes for render_check.py; without the variable it only checks that the default targets can be rendered.
TEST(RenderSamples, DefaultTargetsOfEverySample) {
  const char* const directory = std::getenv("SLICEPLAN_RENDER_SAMPLES_DIR");
  for (const Sample& sample : AllSamples()) {
    const RenderInput input = sample.Input();
    for (const RenderTarget target : DefaultTargets(sample.job.slice)) {
      const absl::StatusOr<Rendering> rendering = Render(target, input);
      ASSERT_TRUE(rendering.ok()) << sample.name << ": " << rendering.status();
      EXPECT_EQ(rendering->text.back(), '\n');
      if (directory == nullptr) continue;
      const std::string target_name = absl::StrJoin(absl::StrSplit(RenderTargetName(target), ' '), "_");
      std::ofstream(absl::StrCat(directory, "/", sample.name, ".", target_name, ".", rendering->format))
          << rendering->text;
    }
    if (directory == nullptr) continue;
    const hardware::Slice& slice = sample.job.slice;
    const Parallelism& plan = sample.estimate.parallelism;
    std::ofstream facts(absl::StrCat(directory, "/", sample.name, ".facts"));
    facts << "chips " << slice.TotalChips() << "\nslices " << slice.slice_count << "\ndevices_per_chip "
          << slice.accelerator.devices_per_chip << "\nchips_per_host " << sample.names.chips_per_host
          << "\nglobal_batch " << sample.job.workload.global_batch_size << "\naccumulation "
          << sample.estimate.gradient_accumulation << "\nmicrobatches " << sample.estimate.microbatch_count
          << "\nmicrobatch_size " << sample.estimate.microbatch_size << "\nlayers " << sample.model.layer_kind.size()
          << "\ntorus " << (slice.accelerator.fabric == hardware::FabricKind::kTorus ? 1 : 0) << "\n";
    for (const LogicalAxis axis : kLogicalAxes) facts << LogicalAxisName(axis) << " " << plan.Degree(axis) << "\n";
  }
}

struct WordsCase {
  const char* sample;
  RenderTarget target;
  const char* words;
};

TEST(Render, SaysWhatThePlanIs) {
  const WordsCase cases[] = {
      {"dense", RenderTarget::kJax, "(128, 4),\n"},
      {"dense", RenderTarget::kJax, "AXES = (\"fsdp\", \"tensor\")"},
      // Column-split weights: width over FSDP, heads or MLP over tensor; row-split ones the other way round.
      {"dense", RenderTarget::kJax, "\"q_proj\": P(d, \"tensor\")"},
      {"dense", RenderTarget::kJax, "\"o_proj\": P(\"tensor\", d)"},
      {"dense", RenderTarget::kJax, "\"down_proj\": P(\"tensor\", d)"},
      {"dense", RenderTarget::kJax, "\"embed_tokens\": P(\"tensor\", d)"},
      {"dense", RenderTarget::kJax, "\"lm_head\": P(d, \"tensor\")"},
      {"dense", RenderTarget::kJax, "weight_specs(d=\"fsdp\", e=\"fsdp\")"},
      {"dense", RenderTarget::kJax, "checkpoint_policies.nothing_saveable"},
      {"dense", RenderTarget::kMaxText, "ici_fsdp_parallelism: 128\n"},
      // 1e12 tokens over 2,048 x 4,096 a step: 119,210 steps.
      {"dense", RenderTarget::kMaxText, "steps: 119210\n"},
      // 2,048 sequences over 512 devices.
      {"dense", RenderTarget::kMaxText, "per_device_batch_size: 4\n"},
      {"dense", RenderTarget::kGkeJobSet, "topology.kubernetes.io/zone: \"us-east5-a\""},
      // Context joins FSDP where there is FSDP (plan_laws.h).
      {"dense_tied_spot_context", RenderTarget::kJax, "weight_specs(d=(\"fsdp\", \"context\")"},
      {"dense_tied_spot_context", RenderTarget::kJax, "\"residual\": P(\"fsdp\", (\"context\", \"tensor\"), None)"},
      {"dense_tied_spot_context", RenderTarget::kJax, "save_only_these_names(\n    \"query_proj\", \"key_proj\""},
      {"dense_tied_spot_context", RenderTarget::kMaxText, "remat_policy: save_qkv_proj\n"},
      {"dense_tied_spot_context", RenderTarget::kMaxText, "gradient_accumulation_steps: 2\n"},
      {"dense_tied_spot_context", RenderTarget::kGkeJobSet, "cloud.google.com/gke-spot: \"true\""},
      {"dense_tied_spot_context", RenderTarget::kCloudTpu, "--spot"},
      {"dense_tied_spot_context", RenderTarget::kXpk, "--spot"},
      // Two devices a chip: 512 chips are FSDP 1,024.
      {"multi_slice_two_devices", RenderTarget::kJax, "(1, 1024),  # within a slice\n    (4, 1),  # across slices"},
      {"multi_slice_two_devices", RenderTarget::kJax, "OPTIMIZER_STATE = weight_specs(d=(\"fsdp\", \"data\")"},
      {"multi_slice_two_devices", RenderTarget::kMaxText, "dcn_data_parallelism: 4\n"},
      {"multi_slice_two_devices", RenderTarget::kMaxText, "shard_optimizer_over_data: true\n"},
      {"multi_slice_two_devices", RenderTarget::kXpk, "--num-slices=4"},
      {"multi_slice_two_devices", RenderTarget::kCloudTpu, "--node-count=4"},
      {"multi_slice_two_devices", RenderTarget::kGkeJobSet, "replicas: 4"},
      {"multi_slice_two_devices", RenderTarget::kGkeJobSet, "workload policy"},
      // One sequence a chip cannot be halved: the two devices share it.
      {"two_devices_one_sequence", RenderTarget::kMaxText, "ici_tensor_parallelism: 2\n"},
      {"two_devices_one_sequence", RenderTarget::kMaxText, "per_device_batch_size: 0.5\n"},
      {"pipeline", RenderTarget::kMaxText, "num_layers_per_pipeline_stage: 20\n"},
      {"pipeline", RenderTarget::kMaxText, "num_pipeline_microbatches: 8\n"},
      {"pipeline", RenderTarget::kJax, "P(\"pipeline\", None, *spec)"},
      {"pipeline", RenderTarget::kGkeJobSet, "cloud.google.com/reservation-name"},
      {"experts", RenderTarget::kJax, "\"experts.up_proj\": P(\"expert\", e, \"tensor\")"},
      {"experts", RenderTarget::kJax, "\"experts.down_proj\": P(\"expert\", \"tensor\", e)"},
      {"experts", RenderTarget::kJax, "\"kv_a_proj_with_mqa\": P(d, None)"},
      {"experts", RenderTarget::kJax, "\"kv_b_proj\": P(d, \"tensor\")"},
      {"experts", RenderTarget::kJax, "names_which_can_be_offloaded=[\"query_proj\"]"},
      {"experts", RenderTarget::kMaxText, "query_proj: offload\n"},
      {"experts", RenderTarget::kMaxText, "query_wa_proj: offload\n"},
      {"experts", RenderTarget::kMaxText, "moe_mlpwi_0: device\n"},
      {"experts", RenderTarget::kMaxText, "optimizer_memory_host_offload: true\n"},
      {"fp8", RenderTarget::kMaxText, "quantization: fp8_full\n"},
      {"fp8", RenderTarget::kMaxText, "num_vocab_tiling: 4\n"},
      {"fp8", RenderTarget::kMaxText, "opt_type: muon\n"},
      {"gpu_interleaved", RenderTarget::kMegatron, "--num-virtual-stages-per-pipeline-rank 5"},
      {"gpu_interleaved", RenderTarget::kMegatron, "--recompute-modules layernorm core_attn"},
      {"gpu_interleaved", RenderTarget::kMegatron, "--use-distributed-optimizer"},
      {"gpu_interleaved", RenderTarget::kMegatron, "--sequence-parallel"},
      {"gpu_uneven_fp8", RenderTarget::kMegatron, "--pipeline-model-parallel-layout 'Et*19|t*21|t*21|t*19L'"},
      {"gpu_uneven_fp8", RenderTarget::kMegatron, "--fp8-format hybrid"},
      {"gpu_uneven_fp8", RenderTarget::kMegatron, "--exp-avg-dtype bf16"},
      {"gpu_fsdp", RenderTarget::kMegatron, "--data-parallel-sharding-strategy optim_grads_params"},
      {"gpu_fsdp", RenderTarget::kMegatron, "--num-distributed-optimizer-instances 4"},
      {"gpu_fsdp", RenderTarget::kMegatron, "--recompute-modules layernorm mlp"},
      {"gpu_experts", RenderTarget::kMegatron, "--expert-model-parallel-size 8"},
      {"gpu_experts", RenderTarget::kMegatron, "--recompute-modules layernorm moe_act"},
      // 1e12 tokens in sequences of 4,096.
      {"gpu_experts", RenderTarget::kMegatron, "--train-samples 244140625"},
      {"gpu_experts", RenderTarget::kGkeJobSet, "nvidia.com/gpu: 8"},
      {"gpu_experts", RenderTarget::kKueue, "topologyName: gpu-blocks"},
  };
  for (const WordsCase& c : cases) {
    EXPECT_THAT(Text(c.target, SampleNamed(c.sample).Input()), HasSubstr(c.words)) << c.sample;
  }
}

TEST(Render, TiedEmbeddingsHaveNoHead) {
  EXPECT_THAT(Text(RenderTarget::kJax, SampleNamed("dense_tied_spot_context").Input()), Not(HasSubstr("lm_head")));
}

struct RefusalCase {
  const char* sample;
  RenderTarget target;
  void (*edit)(Sample&);
  const char* words;
};

TEST(Render, RefusesWhatATargetCannotExpress) {
  const RefusalCase cases[] = {
      {"dense", RenderTarget::kVllm, [](Sample&) {}, "vLLM cannot express this plan: it serves models"},
      {"dense", RenderTarget::kMegatron, [](Sample&) {}, "runs on GPUs"},
      {"gpu_fsdp", RenderTarget::kCloudTpu, [](Sample&) {}, "no TPU"},
      {"gpu_fsdp", RenderTarget::kXpk, [](Sample&) {}, "no XPK device type"},
      {"dense", RenderTarget::kCloudTpu, [](Sample& s) { s.names.accelerator_type.clear(); }, "no accelerator type"},
      {"dense", RenderTarget::kGkeJobSet, [](Sample& s) { s.names.gke_tpu_accelerator.clear(); }, "labels"},
      {"gpu_fsdp", RenderTarget::kKueue, [](Sample& s) { s.names.gke_accelerator.clear(); }, "label"},
      {"gpu_fsdp", RenderTarget::kGkeJobSet, [](Sample& s) { s.names.chips_per_host = 0; }, "one host"},
      {"dense", RenderTarget::kJax, [](Sample& s) { s.estimate.idle_chip_count = 1; }, "idle"},
      {"dense", RenderTarget::kMaxText, [](Sample& s) { s.estimate.idle_chip_count = 1; }, "idle"},
      {"gpu_fsdp", RenderTarget::kMegatron, [](Sample& s) { s.estimate.idle_chip_count = 1; }, "idle"},
      {"dense", RenderTarget::kMaxText, [](Sample& s) { s.estimate.parallelism.data_zero_stage = ZeroStage::k3; },
       "ZeRO 1"},
      {"dense", RenderTarget::kMaxText, [](Sample& s) { s.job.workload.optimizer = Optimizer::kAdafactor; },
       "Adafactor"},
      {"dense", RenderTarget::kMaxText, [](Sample& s) { s.job.workload.precision.compute = hardware::DataType::kFp4; },
       "fp4"},
      {"pipeline", RenderTarget::kMaxText,
       [](Sample& s) { s.estimate.parallelism.schedule = PipelineSchedule::kZeroBubble; }, "zero-bubble"},
      {"pipeline", RenderTarget::kMaxText,
       [](Sample& s) {
         s.estimate.parallelism.layers_per_stage = {19, 21, 21, 19};
       },
       "one size"},
      {"pipeline", RenderTarget::kMaxText, [](Sample& s) { s.estimate.microbatch_count = 6; }, "multiple"},
      {"gpu_interleaved", RenderTarget::kMegatron,
       [](Sample& s) { s.estimate.parallelism.schedule = PipelineSchedule::kGpipe; }, "not GPipe"},
      {"gpu_fsdp", RenderTarget::kMegatron, [](Sample& s) { s.estimate.remat_policy = RematPolicy::kSaveQkvProj; },
       "save_qkv_proj"},
      {"gpu_fsdp", RenderTarget::kMegatron, [](Sample& s) { s.job.workload.activation_offload = true; }, "offloads"},
      {"gpu_fsdp", RenderTarget::kMegatron,
       [](Sample& s) { s.job.workload.precision.compute = hardware::DataType::kInt8; }, "int8"},
      {"gpu_fsdp", RenderTarget::kMegatron, [](Sample& s) { s.estimate.parallelism.data_zero_stage = ZeroStage::k1; },
       "everything or nothing"},
      {"gpu_uneven_fp8", RenderTarget::kMegatron,
       [](Sample& s) { s.estimate.parallelism.data_zero_stage = ZeroStage::k0; }, "distributed optimizer"},
  };
  for (const RefusalCase& c : cases) {
    Sample sample = SampleNamed(c.sample);
    c.edit(sample);
    const absl::StatusOr<Rendering> rendering = Render(c.target, sample.Input());
    ASSERT_FALSE(rendering.ok()) << c.sample << " " << RenderTargetName(c.target) << " " << c.words;
    EXPECT_EQ(rendering.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(rendering.status().message()), HasSubstr(c.words));
    EXPECT_EQ(rendering.status().message().back(), '.');
  }
}

TEST(Render, NothingOfTheCallerEscapesItsLine) {
  Sample sample = SampleNamed("dense");
  sample.names.zone = "z\"; rm -rf /\n";
  sample.names.capacity_pool = "pool\nimport os";
  sample.names.topology = "8x8x8\n  evil: true";
  sample.names.accelerator_type = "v5p-8 $(id)";
  sample.names.xpk_device_type = "v5p-8 && id";
  for (const RenderTarget target : DefaultTargets(sample.job.slice)) {
    const std::string text = Text(target, sample.Input());
    EXPECT_THAT(text, Not(HasSubstr("\nimport os"))) << text;
    EXPECT_THAT(text, Not(HasSubstr("\n  evil"))) << text;
    EXPECT_THAT(text, Not(HasSubstr("$(id)"))) << text;
    EXPECT_THAT(text, Not(HasSubstr("&& id"))) << text;
    EXPECT_THAT(text, Not(HasSubstr("; rm"))) << text;
  }
}

TEST(Render, DnsLabels) {
  struct Case {
    const char* text;
    size_t max_size;
    const char* label;
  };
  const Case cases[] = {{"meta-llama/Llama-3.1-70B", 63, "llama-3-1-70b"},
                        {"8B", 63, "m-8b"},
                        {"", 63, "model"},
                        {"///", 63, "model"},
                        {"--a--", 63, "a"},
                        {"abc.def", 4, "abc"},
                        {"Über", 63, "ber"},
                        {"a/", 63, "a"}};
  for (const Case& c : cases) EXPECT_EQ(DnsLabel(c.text, c.max_size), c.label) << c.text;
}

TEST(Render, TargetsByFabric) {
  EXPECT_THAT(DefaultTargets(TorusSlice({4, 4, 4})),
              ElementsAre(RenderTarget::kJax, RenderTarget::kMaxText, RenderTarget::kXpk, RenderTarget::kGkeJobSet,
                          RenderTarget::kKueue, RenderTarget::kCloudTpu));
  EXPECT_THAT(DefaultTargets(SwitchedSlice(8)),
              ElementsAre(RenderTarget::kJax, RenderTarget::kMegatron, RenderTarget::kGkeJobSet, RenderTarget::kKueue));
  for (const RenderTarget target : kAllTargets) EXPECT_FALSE(RenderTargetName(target).empty());
}

}  // namespace
}  // namespace sliceplan::planner
