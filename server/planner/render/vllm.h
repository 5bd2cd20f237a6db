// A serving plan as arguments of vLLM: on GPUs vLLM itself, on a torus its TPU plug-in (tpu-inference).
#ifndef SLICEPLAN_SERVER_PLANNER_RENDER_VLLM_H_
#define SLICEPLAN_SERVER_PLANNER_RENDER_VLLM_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/planner/render/rendering.h"
#include "server/planner/serving/serving_estimate.h"
#include "server/planner/serving/serving_job.h"

namespace sliceplan::planner {

// All pointers are required and outlive the call. The estimate is one of the job: a plan and a batch for each pool.
struct ServingRenderInput {
  std::string model_name;  // any text
  const ServingJob* job = nullptr;
  const ServingEstimate* estimate = nullptr;
  std::vector<SliceNames> names;  // one for each pool
};

// What one replica of a pool is started with. Unset: the runtime's own default is what the plan means.
struct VllmOptions {
  int64_t tensor_parallel_size = 1;
  int64_t pipeline_parallel_size = 1;
  int64_t data_parallel_size = 1;
  bool enable_expert_parallel = false;
  int64_t max_model_len = 0;
  int64_t max_num_seqs = 0;            // of one data rank
  int64_t max_num_batched_tokens = 0;  // of one data rank, decodes included
  bool chunked_prefill = true;
  double gpu_memory_utilization = 1;
  std::string dtype;           // "bfloat16"
  std::string kv_cache_dtype;  // "auto", "fp8"
  std::string quantization;    // of the weights on the way in; empty: as the checkpoint stores them
  std::optional<int32_t> block_size;
  bool enable_prefix_caching = false;
  bool keeps_windowed_kv = false;
  std::optional<int32_t> speculative_tokens;
  bool drafts_with_model = false;
  std::vector<int32_t> layers_per_stage;  // when they are uneven
  int64_t expert_parallelism = 1;         // of the TPU plug-in's mesh; GPUs: all ranks share the experts
  bool on_torus = false;
  int64_t host_count = 1;
  std::vector<std::string> not_expressed;  // sentences
};

// FAILED_PRECONDITION: vLLM cannot express the plan; the message is a sentence for people.
absl::StatusOr<VllmOptions> VllmOptionsOf(const ServingRenderInput& input, size_t pool);

// One command, "vllm serve ...", with ${YOUR_MODEL:?} for a shell to fill in. `hands_over`: caches go between pools.
std::string VllmCommand(const VllmOptions& options, bool hands_over);

// One command for each pool.
absl::StatusOr<Rendering> RenderVllm(const ServingRenderInput& input);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_RENDER_VLLM_H_
