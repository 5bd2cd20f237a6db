// Plans of every kind that renderings must express, on made-up chips with real labels.
#ifndef SLICEPLAN_TESTS_PLANNER_RENDER_SAMPLES_H_
#define SLICEPLAN_TESTS_PLANNER_RENDER_SAMPLES_H_

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "server/planner/render/rendering.h"
#include "tests/planner/training_fixture.h"

namespace sliceplan::planner {

// 80 layers, 64 query and 8 KV heads, as LLaMA 3 70B.
inline transformer::ModelOperations DenseModel(bool tied = false) {
  transformer::Architecture model;
  model.hidden_dim = 8192;
  model.vocab_size = 128256;
  model.tied_embeddings = tied;
  transformer::Layer layer;
  transformer::GroupedQueryAttention attention;
  attention.query_head_count = 64;
  attention.kv_head_count = 8;
  attention.head_dim = 128;
  layer.attention = attention;
  transformer::DenseFeedForward feed_forward;
  feed_forward.ffn_dim = 28672;
  layer.feed_forward = feed_forward;
  model.layer_groups = {{80, {layer}}};
  absl::StatusOr<transformer::ModelOperations> operations = transformer::OperationsOf(model);
  EXPECT_TRUE(operations.ok()) << operations.status();
  return *std::move(operations);
}

// Latent attention, two dense layers and then 64 experts with a shared one.
inline transformer::ModelOperations ExpertModel() {
  transformer::Architecture model;
  model.hidden_dim = 4096;
  model.vocab_size = 129280;
  transformer::Layer layer;
  transformer::LatentAttention attention;
  attention.query_head_count = 64;
  attention.q_lora_rank = 1536;
  attention.kv_lora_rank = 512;
  attention.qk_nope_head_dim = 128;
  attention.qk_rope_head_dim = 64;
  attention.v_head_dim = 128;
  layer.attention = attention;
  transformer::DenseFeedForward dense;
  dense.ffn_dim = 16384;
  layer.feed_forward = dense;
  model.layer_groups = {{2, {layer}}};
  transformer::MixtureOfExperts experts;
  experts.expert_count = 64;
  experts.experts_per_token = 6;
  experts.expert_ffn_dim = 2048;
  experts.shared_expert_count = 1;
  layer.feed_forward = experts;
  model.layer_groups.push_back({30, {layer}});
  absl::StatusOr<transformer::ModelOperations> operations = transformer::OperationsOf(model);
  EXPECT_TRUE(operations.ok()) << operations.status();
  return *std::move(operations);
}

// A plan with everything that its renderings are made from.
struct Sample {
  std::string name;
  transformer::ModelOperations model;
  TrainingJob job;
  TrainingEstimate estimate;
  SliceNames names;

  RenderInput Input() const {
    RenderInput input;
    input.model_name = "meta-llama/Llama-3.1-70B \"test\"\n" + name;
    input.model = &model;
    input.slice = &job.slice;
    input.workload = &job.workload;
    input.estimate = &estimate;
    input.names = names;
    return input;
  }
};

inline SliceNames TorusNames(absl::string_view topology) {
  SliceNames names;
  names.accelerator_type = "v5p-8192";
  names.topology = std::string(topology);
  names.gke_tpu_accelerator = "tpu-v5p-slice";
  names.machine_type = "ct5p-hightpu-4t";
  names.xpk_device_type = "v5p-8192";
  names.chips_per_host = 4;
  return names;
}

inline SliceNames SwitchedNames() {
  SliceNames names;
  names.gke_accelerator = "nvidia-h100-80gb";
  names.machine_type = "a3-highgpu-8g";
  names.chips_per_host = 8;
  return names;
}

struct SampleEdit {
  transformer::ModelOperations model;
  hardware::Slice slice;
  SliceNames names;
  Degrees degrees;
  void (*edit)(Sample&) = nullptr;  // of the job and names, before the estimate
};

inline Sample MakeSample(std::string name, SampleEdit made) {
  Sample sample;
  sample.name = std::move(name);
  sample.model = std::move(made.model);
  sample.names = std::move(made.names);
  sample.job.slice = std::move(made.slice);
  sample.job.mode = EstimationMode::kRoofline;
  sample.job.allow_padding = true;
  sample.job.workload.global_batch_size = 2048;
  sample.job.workload.sequence_length = 4096;
  sample.job.workload.remat_policy = RematPolicy::kFull;
  sample.job.parallelism = PlanOf(made.degrees);
  if (made.edit != nullptr) made.edit(sample);
  sample.job.model = &sample.model;
  sample.estimate = Estimated(sample.job);
  return sample;
}

inline std::deque<Sample> Samples() {
  std::deque<Sample> samples;
  const auto add = [&](std::string name, SampleEdit made) {
    samples.push_back(MakeSample(std::move(name), std::move(made)));
    samples.back().job.model = &samples.back().model;
  };
  const SliceNames cube = TorusNames("8x8x8");
  add("dense", {DenseModel(), TorusSlice({8, 8, 8}), cube, {.fsdp = 128, .tensor = 4}, [](Sample& sample) {
                  sample.job.workload.total_tokens = 1'000'000'000'000;
                  sample.names.zone = "us-east5-a";
                }});
  add("dense_tied_spot_context",
      {DenseModel(true), TorusSlice({8, 8, 8}), cube, {.fsdp = 32, .tensor = 4, .context = 4}, [](Sample& sample) {
         sample.names.price_model = hardware::PriceModel::kSpot;
         sample.job.workload.remat_policy = RematPolicy::kSaveQkvProj;
         sample.job.workload.gradient_accumulation = 2;
       }});
  add("multi_slice_two_devices",
      {DenseModel(), TorusSlice({8, 8, 8}, 4), cube, {.fsdp = 512, .dcn_data = 4}, [](Sample& sample) {
         sample.job.slice.accelerator.devices_per_chip = 2;
         sample.job.workload.global_batch_size = 8192;
         sample.job.parallelism->data_zero_stage = ZeroStage::k1;
         sample.names.price_model = hardware::PriceModel::kFlexStart;
         sample.names.gke_workload_policy_required = true;
       }});
  add("two_devices_one_sequence", {DenseModel(), TorusSlice({8, 8, 8}), cube, {.fsdp = 512}, [](Sample& sample) {
                                     sample.job.slice.accelerator.devices_per_chip = 2;
                                     sample.job.workload.global_batch_size = 512;
                                   }});
  add("pipeline",
      {DenseModel(), TorusSlice({8, 8, 8}), cube, {.fsdp = 64, .tensor = 2, .pipeline = 4}, [](Sample& sample) {
         sample.job.parallelism->schedule = PipelineSchedule::kGpipe;
         sample.job.parallelism->microbatch_count = 8;
         sample.job.workload.remat_policy = RematPolicy::kSaveDotExceptMlp;
         sample.names.price_model = hardware::PriceModel::kCalendar;
       }});
  add("experts",
      {ExpertModel(), TorusSlice({8, 8, 8}), cube, {.fsdp = 32, .tensor = 2, .expert = 8}, [](Sample& sample) {
         sample.job.workload.remat_policy = RematPolicy::kCustom;
         sample.job.workload.custom_remat.context = TensorPlacement::kSaved;
         sample.job.workload.custom_remat.query = TensorPlacement::kOffloaded;
         sample.job.workload.custom_remat.mlp_up_gate = TensorPlacement::kSaved;
         sample.job.workload.optimizer_offload = true;
       }});
  add("fp8", {DenseModel(), TorusSlice({8, 8, 8}), cube, {.data = 4, .fsdp = 128}, [](Sample& sample) {
                sample.job.slice.accelerator.fp8_flops_per_second = 9.18e14;
                sample.job.workload.precision.compute = hardware::DataType::kFp8;
                sample.job.workload.remat_policy = RematPolicy::kNone;
                sample.job.workload.optimizer = Optimizer::kMuon;
                sample.job.workload.logits_chunk_count = 4;
              }});
  add("gpu_interleaved",
      {DenseModel(), SwitchedSlice(512), SwitchedNames(), {.data = 16, .tensor = 8, .pipeline = 4}, [](Sample& sample) {
         sample.job.parallelism->schedule = PipelineSchedule::kInterleaved1F1B;
         sample.job.parallelism->virtual_stage_count = 5;
         sample.job.parallelism->data_zero_stage = ZeroStage::k1;
         sample.job.workload.remat_policy = RematPolicy::kMinimal;
       }});
  add("gpu_uneven_fp8",
      {DenseModel(), SwitchedSlice(512), SwitchedNames(), {.data = 64, .tensor = 2, .pipeline = 4}, [](Sample& sample) {
         sample.job.slice.accelerator.fp8_flops_per_second = 1.98e15;
         sample.job.workload.precision.compute = hardware::DataType::kFp8;
         sample.job.workload.precision.optimizer_state = hardware::DataType::kBf16;
         sample.job.parallelism->layers_per_stage = {19, 21, 21, 19};
         sample.job.parallelism->data_zero_stage = ZeroStage::k1;
         sample.job.workload.optimizer_offload = true;
       }});
  add("gpu_fsdp",
      {DenseModel(), SwitchedSlice(512), SwitchedNames(), {.data = 4, .fsdp = 64, .context = 2}, [](Sample& sample) {
         sample.job.workload.remat_policy = RematPolicy::kSaveDotWithContextExceptMlp;
         sample.names.price_model = hardware::PriceModel::kSpot;
       }});
  add("gpu_experts",
      {ExpertModel(), SwitchedSlice(512), SwitchedNames(), {.data = 16, .tensor = 4, .expert = 8}, [](Sample& sample) {
         sample.job.parallelism->data_zero_stage = ZeroStage::k1;
         sample.job.workload.remat_policy = RematPolicy::kMinimalFlash;
         sample.job.workload.total_tokens = 1'000'000'000'000;
       }});
  return samples;
}

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_TESTS_PLANNER_RENDER_SAMPLES_H_
