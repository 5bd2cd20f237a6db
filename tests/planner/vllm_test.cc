// Serving plans as arguments of vLLM. Whether its parser takes them: render_check.py, which has the samples written by
// this program.
#include "server/planner/render/vllm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>
#include <fstream>
#include <functional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/planner/render/gke_serving.h"
#include "tests/planner/render_samples.h"

namespace sliceplan::planner {
namespace {

using hardware::DataType;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

struct ServingSample {
  std::string name;
  transformer::Architecture architecture;
  transformer::ModelOperations model;
  ServingJob job;
  ServingEstimate estimate;

  ServingRenderInput Input() const {
    ServingRenderInput input;
    input.model_name = "org/some-model\n$(id)";
    input.job = &job;
    input.estimate = &estimate;
    input.names.resize(job.pools.size());
    for (size_t i = 0; i < input.names.size(); ++i) {
      SliceNames& names = input.names[i];
      const bool torus = job.pools[i].slice.accelerator.fabric == hardware::FabricKind::kTorus;
      names.chips_per_host = torus ? 4 : 8;
      if (torus) {
        names.gke_tpu_accelerator = "tpu-v6e-slice";
        names.topology = "4x4";
      } else {
        names.gke_accelerator = "nvidia-h100-80gb";
        names.machine_type = "a3-highgpu-8g";
      }
    }
    return input;
  }
};

void AddPool(PoolRole role, hardware::Slice slice, const Degrees& degrees, ServingSample& sample) {
  ServingPool& pool = sample.job.pools.emplace_back();
  pool.role = role;
  pool.slice = std::move(slice);
  PoolEstimate& estimate = sample.estimate.pools.emplace_back();
  estimate.parallelism = PlanOf(degrees);
  estimate.replica_count = 2;
}

// Samples keep their places: jobs point into them.
ServingSample& NewSample(const char* name, transformer::ModelOperations model, std::deque<ServingSample>& samples) {
  ServingSample& sample = samples.emplace_back();
  sample.name = name;
  sample.model = std::move(model);
  sample.architecture.max_position_count = 131072;
  sample.job.model = {&sample.architecture, &sample.model};
  sample.job.workload.prompt = TokenLengths::Constant(2048);
  sample.job.workload.output = TokenLengths::Constant(500);
  sample.job.workload.load = ServingLoadKind::kBatch;
  sample.estimate.batch_size = 64;
  sample.estimate.max_batch_size = 96;
  sample.estimate.max_context_tokens = 400000;
  sample.estimate.load.hbm_utilization_ratio = 0.9;
  sample.estimate.load.prefill_chunk_tokens = 2048;
  return sample;
}

std::deque<ServingSample> MakeSamples() {
  std::deque<ServingSample> samples;
  ServingSample& dense = NewSample("serve_dense", DenseModel(), samples);
  AddPool(PoolRole::kBoth, SwitchedSlice(8), {.tensor = 8}, dense);

  ServingSample& quantized = NewSample("serve_fp8_pipeline", DenseModel(), samples);
  AddPool(PoolRole::kBoth, SwitchedSlice(16), {.tensor = 8, .pipeline = 2}, quantized);
  quantized.estimate.pools[0].parallelism.layers_per_stage = {38, 42};
  quantized.job.workload.precision.weights = DataType::kFp8;
  quantized.job.workload.precision.kv_cache = DataType::kFp8;
  quantized.job.workload.prefix_cache_hit_ratio = 0.3;
  quantized.job.workload.speculation = Speculation{4, 0.7, 0.05, std::nullopt};
  quantized.estimate.load.prefill_chunk_tokens.reset();

  ServingSample& experts = NewSample("serve_experts", ExpertModel(), samples);
  AddPool(PoolRole::kBoth, SwitchedSlice(32), {.data = 2, .expert = 16}, experts);
  experts.job.workload.load = ServingLoadKind::kRate;
  experts.job.workload.kv_block_tokens = 64;

  ServingSample& apart = NewSample("serve_apart", DenseModel(), samples);
  AddPool(PoolRole::kPrefill, SwitchedSlice(8), {.tensor = 8}, apart);
  AddPool(PoolRole::kDecode, SwitchedSlice(8), {.data = 2, .tensor = 4}, apart);
  apart.estimate.disaggregation.emplace();

  ServingSample& torus = NewSample("serve_torus", ExpertModel(), samples);
  AddPool(PoolRole::kBoth, TorusSlice({4, 4}), {.data = 2, .tensor = 2, .expert = 4}, torus);
  torus.job.workload.precision.activations = DataType::kFp16;
  return samples;
}

const std::deque<ServingSample>& AllSamples() {
  static const auto* const samples = new std::deque<ServingSample>(MakeSamples());
  return *samples;
}

ServingSample Copied(const std::string& name) {
  for (const ServingSample& sample : AllSamples()) {
    if (sample.name == name) return sample;
  }
  ADD_FAILURE() << "no sample " << name;
  return AllSamples().front();
}

VllmOptions OptionsOf(const ServingSample& sample, size_t pool = 0) {
  absl::StatusOr<VllmOptions> options = VllmOptionsOf(sample.Input(), pool);
  EXPECT_TRUE(options.ok()) << options.status();
  return options.ok() ? *std::move(options) : VllmOptions();
}

// Writes for render_check.py.
TEST(RenderSamples, VllmOfEveryServingSample) {
  const char* const directory = std::getenv("SLICEPLAN_RENDER_SAMPLES_DIR");
  for (const ServingSample& sample : AllSamples()) {
    const absl::StatusOr<Rendering> rendering = RenderVllm(sample.Input());
    ASSERT_TRUE(rendering.ok()) << sample.name << ": " << rendering.status();
    EXPECT_EQ(rendering->format, "shell");
    EXPECT_EQ(rendering->text.back(), '\n');
    EXPECT_THAT(rendering->text, Not(HasSubstr("\n$(id)")));
    if (directory == nullptr) continue;
    std::ofstream(absl::StrCat(directory, "/", sample.name, ".vLLM.shell")) << rendering->text;
    for (const auto& [name, target] :
         {std::pair{"GKE_serving", RenderTarget::kGkeJobSet}, std::pair{"Kueue_serving", RenderTarget::kKueue}}) {
      const absl::StatusOr<Rendering> yaml = RenderServing(target, sample.Input());
      ASSERT_TRUE(yaml.ok()) << sample.name << ": " << yaml.status();
      EXPECT_EQ(yaml->format, "yaml");
      std::ofstream(absl::StrCat(directory, "/", sample.name, ".", name, ".yaml")) << yaml->text;
    }
    std::ofstream facts(absl::StrCat(directory, "/", sample.name, ".facts"));
    facts << "pools " << sample.job.pools.size() << "\nbatch " << sample.estimate.batch_size << "\nmax_batch "
          << sample.estimate.max_batch_size << "\ncontext 2548\nlayers " << sample.model.layer_kind.size()
          << "\nkv_heads " << sample.model.layers[0].softmax.kv_head_count << "\ntorus "
          << (sample.job.pools[0].slice.accelerator.fabric == hardware::FabricKind::kTorus ? 1 : 0) << "\n";
    for (size_t i = 0; i < sample.job.pools.size(); ++i) {
      const Parallelism& plan = sample.estimate.pools[i].parallelism;
      facts << "chips" << i << " " << sample.job.pools[i].slice.TotalChips() << "\n";
      facts << "replicas" << i << " " << sample.estimate.pools[i].replica_count << "\n";
      for (const LogicalAxis axis : kLogicalAxes)
        facts << LogicalAxisName(axis) << i << " " << plan.Degree(axis) << "\n";
    }
  }
}

TEST(VllmTest, DegreesBecomeRanks) {
  const VllmOptions dense = OptionsOf(Copied("serve_dense"));
  EXPECT_EQ(dense.tensor_parallel_size, 8);
  EXPECT_EQ(dense.data_parallel_size, 1);
  EXPECT_FALSE(dense.enable_expert_parallel);
  EXPECT_EQ(dense.host_count, 1);
  // Ranks of data and of experts alike are data ranks of the attention.
  const VllmOptions experts = OptionsOf(Copied("serve_experts"));
  EXPECT_EQ(experts.tensor_parallel_size, 1);
  EXPECT_EQ(experts.data_parallel_size, 32);
  EXPECT_TRUE(experts.enable_expert_parallel);
  EXPECT_EQ(experts.host_count, 4);
  EXPECT_THAT(experts.not_expressed, testing::Contains(HasSubstr("over all 32 ranks")));
  const VllmOptions torus = OptionsOf(Copied("serve_torus"));
  EXPECT_EQ(torus.data_parallel_size, 2);
  EXPECT_EQ(torus.expert_parallelism, 4);
  EXPECT_EQ(torus.dtype, "float16");
  const VllmOptions pipeline = OptionsOf(Copied("serve_fp8_pipeline"));
  EXPECT_EQ(pipeline.pipeline_parallel_size, 2);
  EXPECT_THAT(pipeline.layers_per_stage, ElementsAre(38, 42));
}

TEST(VllmTest, SchedulingIsThatOfOneRank) {
  const VllmOptions dense = OptionsOf(Copied("serve_dense"));
  EXPECT_EQ(dense.max_num_seqs, 64);
  EXPECT_EQ(dense.max_num_batched_tokens, 2048 + 64);
  EXPECT_TRUE(dense.chunked_prefill);
  // 2,048 + 500 tokens in whole blocks of 16.
  EXPECT_EQ(dense.max_model_len, 2560);
  EXPECT_EQ(dense.block_size, 16);
  // A rate fills what there is room for: 96 over 32 ranks.
  EXPECT_EQ(OptionsOf(Copied("serve_experts")).max_num_seqs, 3);
  const VllmOptions whole = OptionsOf(Copied("serve_fp8_pipeline"));
  EXPECT_FALSE(whole.chunked_prefill);
  EXPECT_EQ(whole.max_num_batched_tokens, 2560);
  const ServingSample apart = Copied("serve_apart");
  EXPECT_EQ(OptionsOf(apart, 0).max_num_seqs, 1);
  EXPECT_EQ(OptionsOf(apart, 1).max_num_seqs, 32);
}

TEST(VllmTest, ContextEndsWhereTheModelOrTheMemoryDoes) {
  ServingSample sample = Copied("serve_dense");
  sample.architecture.max_position_count = 2100;
  sample.job.model.architecture = &sample.architecture;
  EXPECT_EQ(OptionsOf(sample).max_model_len, 2100);
  sample.estimate.max_context_tokens = 2000;
  EXPECT_EQ(OptionsOf(sample).max_model_len, 2000);
}

TEST(VllmTest, Formats) {
  EXPECT_EQ(OptionsOf(Copied("serve_dense")).kv_cache_dtype, "auto");
  const VllmOptions fp8 = OptionsOf(Copied("serve_fp8_pipeline"));
  EXPECT_EQ(fp8.quantization, "fp8");
  EXPECT_EQ(fp8.kv_cache_dtype, "fp8");
  EXPECT_EQ(fp8.dtype, "bfloat16");
  ServingSample sample = Copied("serve_fp8_pipeline");
  sample.estimate.load.weights_as_stored = true;
  EXPECT_THAT(OptionsOf(sample).quantization, IsEmpty());
  sample.estimate.load.weights_as_stored = false;
  sample.job.workload.precision.weights = DataType::kInt4;
  sample.job.workload.precision.kv_cache = DataType::kInt8;
  const VllmOptions int4 = OptionsOf(sample);
  EXPECT_THAT(int4.quantization, IsEmpty());
  EXPECT_THAT(int4.not_expressed, ElementsAre(HasSubstr("a cache in int8"), HasSubstr("weights in int4")));
}

TEST(VllmTest, TextHoldsWhatWasAskedFor) {
  const auto text = [](const char* name) {
    const absl::StatusOr<Rendering> rendering = RenderVllm(Copied(name).Input());
    return rendering.ok() ? rendering->text : rendering.status().ToString();
  };
  EXPECT_THAT(text("serve_dense"), HasSubstr("--no-enable-prefix-caching"));
  EXPECT_THAT(text("serve_fp8_pipeline"), HasSubstr("\nVLLM_PP_LAYER_PARTITION=38,42 vllm serve "));
  EXPECT_THAT(text("serve_fp8_pipeline"), HasSubstr("  --enable-prefix-caching"));
  EXPECT_THAT(text("serve_fp8_pipeline"), HasSubstr("--speculative-config"));
  EXPECT_THAT(text("serve_fp8_pipeline"), HasSubstr("joined by Ray"));
  EXPECT_THAT(text("serve_apart"), HasSubstr("# prefill, 2 x "));
  EXPECT_THAT(text("serve_apart"), HasSubstr("NixlConnector"));
  EXPECT_THAT(text("serve_torus"), HasSubstr("--additional_config"));
}

TEST(GkeServingTest, OneHostIsADeploymentAndSeveralALeaderWithWorkers) {
  const auto text = [](const ServingSample& sample) {
    const absl::StatusOr<Rendering> rendering = RenderServing(RenderTarget::kGkeJobSet, sample.Input());
    return rendering.ok() ? rendering->text : rendering.status().ToString();
  };
  EXPECT_THAT(text(Copied("serve_dense")), HasSubstr("kind: Deployment"));
  EXPECT_THAT(text(Copied("serve_dense")), Not(HasSubstr("LeaderWorkerSet")));
  EXPECT_THAT(text(Copied("serve_torus")), HasSubstr("kind: LeaderWorkerSet"));
  EXPECT_THAT(text(Copied("serve_torus")), HasSubstr("size: 4  # hosts"));
  EXPECT_THAT(text(Copied("serve_fp8_pipeline")), HasSubstr("- name: YOUR_DRAFT_MODEL"));
  ServingSample joined = Copied("serve_dense");
  joined.job.pools[0].slice.slice_count = 2;
  joined.estimate.pools[0].parallelism = PlanOf({.tensor = 16});
  EXPECT_THAT(text(joined), HasSubstr("cannot express this plan"));
  const absl::StatusOr<Rendering> jax = RenderServing(RenderTarget::kJax, Copied("serve_dense").Input());
  EXPECT_EQ(jax.status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(VllmTest, SaysWhatItCannotExpress) {
  struct Case {
    const char* sample;
    std::function<void(ServingSample&)> change;
    const char* words;
  };
  const Case cases[] = {
      {"serve_dense", [](ServingSample& s) { s.estimate.pools[0].parallelism = PlanOf({.tensor = 4}); }, "idle"},
      {"serve_dense", [](ServingSample& s) { s.estimate.pools[0].parallelism = PlanOf({.tensor = 4, .context = 2}); },
       "context parallelism"},
      {"serve_torus", [](ServingSample& s) { s.estimate.pools[0].parallelism = PlanOf({.tensor = 8, .pipeline = 2}); },
       "no pipeline"},
      {"serve_dense", [](ServingSample& s) { s.job.workload.precision.kv_cache = DataType::kInt4; }, "cache in int4"},
  };
  for (const Case& c : cases) {
    ServingSample sample = Copied(c.sample);
    c.change(sample);
    const absl::StatusOr<Rendering> rendering = RenderVllm(sample.Input());
    ASSERT_FALSE(rendering.ok()) << c.words;
    EXPECT_EQ(rendering.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(rendering.status().message()), HasSubstr(c.words));
  }
}

}  // namespace
}  // namespace sliceplan::planner
