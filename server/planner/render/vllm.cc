#include "server/planner/render/vllm.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "server/planner/render/render_words.h"
#include "server/planner/words.h"

namespace sliceplan::planner {
namespace {

class Arguments {
 public:
  void Add(absl::string_view flag) { absl::StrAppend(&text_, " \\\n  ", flag); }
  void Add(absl::string_view flag, absl::string_view value) { absl::StrAppend(&text_, " \\\n  ", flag, " ", value); }
  void Add(absl::string_view flag, int64_t value) { absl::StrAppend(&text_, " \\\n  ", flag, " ", value); }
  const std::string& Text() const { return text_; }

 private:
  std::string text_;
};

// JSON with shell variables inside: double quotes are escaped for the shell.
std::string SpeculativeConfig(const VllmOptions& options) {
  return absl::StrCat(R"("{\"model\": \"${YOUR_DRAFT_MODEL:?}\", \"num_speculative_tokens\": )",
                      *options.speculative_tokens, R"(}")");
}

std::string ShardingStrategy(const VllmOptions& options) {
  return absl::StrCat("'{\"sharding\": {\"sharding_strategy\": {\"tensor_parallelism\": ", options.tensor_parallel_size,
                      ", \"expert_parallelism\": ", options.expert_parallelism, "}}}'");
}

void AddParallelism(const VllmOptions& options, Arguments& arguments) {
  arguments.Add("--tensor-parallel-size", options.tensor_parallel_size);
  if (options.pipeline_parallel_size > 1) arguments.Add("--pipeline-parallel-size", options.pipeline_parallel_size);
  if (options.data_parallel_size > 1) arguments.Add("--data-parallel-size", options.data_parallel_size);
  if (options.enable_expert_parallel) arguments.Add("--enable-expert-parallel");
  if (options.on_torus && options.expert_parallelism > 1) {
    arguments.Add("--additional_config", ShardingStrategy(options));
  }
  if (!options.on_torus && options.host_count > 1) arguments.Add("--distributed-executor-backend", "ray");
}

absl::string_view RoleWords(PoolRole role) {
  switch (role) {
    case PoolRole::kPrefill: return "prefill, ";
    case PoolRole::kDecode: return "decode, ";
    case PoolRole::kBoth: return "";
  }
  return "";
}

// One line, whatever the text holds.
std::string OneLine(std::string text) {
  for (char& c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) c = ' ';
  }
  return text;
}

}  // namespace

std::string VllmCommand(const VllmOptions& options, bool hands_over) {
  Arguments arguments;
  AddParallelism(options, arguments);
  arguments.Add("--max-model-len", options.max_model_len);
  arguments.Add("--max-num-seqs", options.max_num_seqs);
  arguments.Add("--max-num-batched-tokens", options.max_num_batched_tokens);
  arguments.Add(options.chunked_prefill ? "--enable-chunked-prefill" : "--no-enable-chunked-prefill");
  arguments.Add("--gpu-memory-utilization", absl::StrFormat("%.4g", options.gpu_memory_utilization));
  arguments.Add("--dtype", options.dtype);
  arguments.Add("--kv-cache-dtype", options.kv_cache_dtype);
  if (!options.quantization.empty()) arguments.Add("--quantization", options.quantization);
  if (options.block_size.has_value()) arguments.Add("--block-size", *options.block_size);
  arguments.Add(options.enable_prefix_caching ? "--enable-prefix-caching" : "--no-enable-prefix-caching");
  if (options.keeps_windowed_kv) arguments.Add("--disable-hybrid-kv-cache-manager");
  if (options.speculative_tokens.has_value()) arguments.Add("--speculative-config", SpeculativeConfig(options));
  if (hands_over) {
    arguments.Add("--kv-transfer-config", "'{\"kv_connector\": \"NixlConnector\", \"kv_role\": \"kv_both\"}'");
  }
  std::string text;
  if (!options.layers_per_stage.empty()) {
    absl::StrAppend(&text, "VLLM_PP_LAYER_PARTITION=", absl::StrJoin(options.layers_per_stage, ","), " ");
  }
  return absl::StrCat(text, "vllm serve \"${YOUR_MODEL:?}\"", arguments.Text(), "\n");
}

absl::StatusOr<Rendering> RenderVllm(const ServingRenderInput& input) {
  const ServingJob& job = *input.job;
  const bool apart = job.pools.size() > 1 && input.estimate->disaggregation.has_value();
  std::string text = absl::StrCat("# ", OneLine(input.model_name), ". YOUR_MODEL: the checkpoint, a name or a path.\n");
  for (size_t i = 0; i < job.pools.size(); ++i) {
    const ServingPool& pool = job.pools[i];
    absl::StatusOr<VllmOptions> options = VllmOptionsOf(input, i);
    if (!options.ok()) return options.status();
    const std::string& name =
        pool.slice.accelerator_type.empty() ? pool.slice.accelerator.name : pool.slice.accelerator_type;
    absl::StrAppend(&text, "# ", RoleWords(pool.role), CountWords(input.estimate->pools[i].replica_count), " x ",
                    OneLine(name), ", ", CountWords(pool.slice.TotalChips()), " chips a replica, each started with:\n");
    if (options->host_count > 1) {
      absl::StrAppend(&text, "# Hosts of a replica: ", options->host_count,
                      ", joined by Ray before the command runs on one of them.\n");
    }
    for (const std::string& sentence : options->not_expressed) {
      absl::StrAppend(&text, "# Not expressed: ", sentence, ".\n");
    }
    absl::StrAppend(&text, VllmCommand(*options, apart));
  }
  return Rendering{RenderTarget::kVllm, "shell", std::move(text)};
}

}  // namespace sliceplan::planner
