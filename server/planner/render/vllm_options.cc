// From a plan to vLLM's options. Names and meaning: vLLM's engine arguments (docs.vllm.ai, 0.8 to 0.11) and, for a
// torus, the sharding strategy of vllm-project/tpu-inference (tpu_inference/layers/common/sharding.py).
#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "server/planner/render/render_words.h"
#include "server/planner/render/vllm.h"
#include "server/planner/stage_split.h"

namespace sliceplan::planner {
namespace {

using hardware::DataType;

constexpr RenderTarget kTarget = RenderTarget::kVllm;
// Of requests, whose prompt and output each are no longer than this share of theirs.
constexpr double kLongestShare = 0.999;
// What --block-size takes on GPUs.
constexpr std::array<int32_t, 5> kBlockSizes = {8, 16, 32, 64, 128};

int64_t RoundUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

bool HasExperts(const transformer::ModelOperations& model) {
  return std::any_of(model.layers.begin(), model.layers.end(),
                     [](const transformer::LayerOperations& layer) { return layer.expert_count > 0; });
}

bool HasWindows(const transformer::ModelOperations& model) {
  return std::any_of(model.layers.begin(), model.layers.end(), [](const transformer::LayerOperations& layer) {
    return layer.has_softmax && (layer.softmax.window > 0 || layer.softmax.chunk > 0);
  });
}

// The longest context that is planned for, which engines must be told: the config's own limit may need more memory
// than there is.
int64_t LongestContext(const ServingJob& job, const ServingEstimate& estimate) {
  int64_t tokens = job.workload.prompt.Quantile(kLongestShare) + job.workload.output.Quantile(kLongestShare);
  tokens = RoundUp(tokens, job.workload.kv_block_tokens);
  const int64_t limit = job.model.architecture->max_position_count;
  if (limit > 0) tokens = std::min(tokens, limit);
  if (estimate.max_context_tokens > 0) tokens = std::min<int64_t>(tokens, estimate.max_context_tokens);
  return tokens;
}

absl::Status SetDegrees(const ServingJob& job, const Parallelism& plan, const hardware::Slice& slice,
                        VllmOptions& options) {
  const int64_t expert = plan.Degree(LogicalAxis::kExpert);
  const int64_t data = plan.Degree(LogicalAxis::kData);
  const bool has_experts = HasExperts(*job.model.operations);
  if (plan.Degree(LogicalAxis::kContext) > 1) {
    return CannotExpress(kTarget, "its context parallelism lies inside tensor, and the plan has an axis of its own");
  }
  if (plan.Degree(LogicalAxis::kFsdp) > 1) {
    return CannotExpress(kTarget, "it splits weights one way, and the plan splits their inputs over fsdp as well");
  }
  options.tensor_parallel_size = plan.Degree(LogicalAxis::kTensor);
  options.pipeline_parallel_size = plan.Degree(LogicalAxis::kPipeline);
  if (options.on_torus) {
    if (options.pipeline_parallel_size > 1) return CannotExpress(kTarget, "its mesh on TPUs has no pipeline axis");
    // JAX shows a chip of two devices as two: tensor takes both.
    options.tensor_parallel_size *= std::max(1, slice.accelerator.devices_per_chip);
    options.data_parallel_size = data;
    options.expert_parallelism = has_experts ? expert : 1;
    return absl::OkStatus();
  }
  options.data_parallel_size = data * expert;
  options.enable_expert_parallel = has_experts && expert > 1;
  if (options.enable_expert_parallel && (options.tensor_parallel_size > 1 || data > 1)) {
    options.not_expressed.push_back(absl::StrCat("experts over ", expert, " ranks alone: vLLM places them over all ",
                                                 options.data_parallel_size * options.tensor_parallel_size,
                                                 " ranks of data and tensor"));
  } else if (has_experts && data > 1 && expert == 1) {
    options.not_expressed.emplace_back("experts whole on each data rank: vLLM splits them over data and tensor");
  }
  return absl::OkStatus();
}

absl::Status SetFormats(const ServingJob& job, const LoadUsed& load, VllmOptions& options) {
  switch (job.workload.precision.activations) {
    case DataType::kFp16: options.dtype = "float16"; break;
    case DataType::kFp32: options.dtype = "float32"; break;
    default: options.dtype = "bfloat16"; break;
  }
  switch (job.workload.precision.kv_cache) {
    case DataType::kBf16:
    case DataType::kFp16: options.kv_cache_dtype = "auto"; break;
    case DataType::kFp8: options.kv_cache_dtype = "fp8"; break;
    case DataType::kInt8:
      options.kv_cache_dtype = "fp8";
      options.not_expressed.emplace_back("a cache in int8: fp8 takes the same bytes");
      break;
    default:
      return CannotExpress(
          kTarget, absl::StrCat("it keeps no cache in ", hardware::DataTypeName(job.workload.precision.kv_cache)));
  }
  if (load.weights_as_stored || !job.workload.precision.weights.has_value()) return absl::OkStatus();
  switch (*job.workload.precision.weights) {
    case DataType::kBf16:
    case DataType::kFp16:
    case DataType::kFp32: break;
    case DataType::kFp8: options.quantization = "fp8"; break;
    default:
      options.not_expressed.push_back(
          absl::StrCat("weights in ", hardware::DataTypeName(*job.workload.precision.weights),
                       ": they come with a checkpoint that is stored so, which vLLM recognises by its config"));
  }
  return absl::OkStatus();
}

void SetScheduling(const ServingJob& job, const ServingPool& pool, const ServingEstimate& estimate,
                   VllmOptions& options) {
  const int64_t ranks = options.data_parallel_size;
  int64_t batch = std::max(estimate.batch_size, 1);
  // A rate and users bring as many as there is room for.
  if (job.workload.load == ServingLoadKind::kRate || job.workload.load == ServingLoadKind::kConcurrency) {
    batch = std::max<int64_t>(batch, estimate.max_batch_size);
  }
  if (estimate.load.max_batch_size.has_value()) batch = std::min<int64_t>(batch, *estimate.load.max_batch_size);
  if (pool.role == PoolRole::kPrefill) batch = ranks;
  options.max_num_seqs = (batch + ranks - 1) / ranks;
  if (estimate.load.prefill_chunk_tokens.has_value()) {
    options.max_num_batched_tokens = *estimate.load.prefill_chunk_tokens + options.max_num_seqs;
  } else {
    options.chunked_prefill = false;
    options.max_num_batched_tokens = std::max(options.max_model_len, options.max_num_seqs);
  }
}

}  // namespace

absl::StatusOr<VllmOptions> VllmOptionsOf(const ServingRenderInput& input, size_t index) {
  const ServingJob& job = *input.job;
  const ServingEstimate& estimate = *input.estimate;
  const ServingPool& pool = job.pools[index];
  const Parallelism& plan = estimate.pools[index].parallelism;
  VllmOptions options;
  options.on_torus = pool.slice.accelerator.fabric == hardware::FabricKind::kTorus;
  if (plan.ici.Product() * plan.dcn.Product() < pool.slice.TotalChips()) {
    return CannotExpress(kTarget, "its ranks fill the replica, and some chips stay idle");
  }
  if (absl::Status status = SetDegrees(job, plan, pool.slice, options); !status.ok()) return status;
  if (absl::Status status = SetFormats(job, estimate.load, options); !status.ok()) return status;
  options.max_model_len = LongestContext(job, estimate);
  SetScheduling(job, pool, estimate, options);
  options.gpu_memory_utilization = estimate.load.hbm_utilization_ratio;
  if (options.on_torus ||
      std::find(kBlockSizes.begin(), kBlockSizes.end(), job.workload.kv_block_tokens) != kBlockSizes.end()) {
    options.block_size = job.workload.kv_block_tokens;
  } else {
    options.not_expressed.push_back(absl::StrCat("KV blocks of ", job.workload.kv_block_tokens, " tokens"));
  }
  options.enable_prefix_caching = job.workload.prefix_cache_hit_ratio > 0;
  options.keeps_windowed_kv =
      HasWindows(*job.model.operations) && estimate.load.windowed_kv_policy == WindowedKvPolicy::kKeep;
  if (job.workload.speculation.has_value()) {
    options.speculative_tokens = job.workload.speculation->draft_tokens;
    options.drafts_with_model = job.workload.speculation->draft_model.has_value();
  }
  const auto [least, most] = std::minmax_element(plan.layers_per_stage.begin(), plan.layers_per_stage.end());
  if (options.pipeline_parallel_size > 1 && least != plan.layers_per_stage.end() && *least != *most) {
    options.layers_per_stage = plan.layers_per_stage;
  }
  const SliceNames names = index < input.names.size() ? input.names[index] : SliceNames();
  const int64_t chips_per_host = names.chips_per_host > 0 ? names.chips_per_host : pool.slice.chips_per_host;
  if (chips_per_host > 0) {
    options.host_count = (pool.slice.TotalChips() + chips_per_host - 1) / chips_per_host;
  }
  return options;
}

}  // namespace sliceplan::planner
