#include "server/planner/search_site.h"

#include <algorithm>

#include "server/planner/optimizer_state.h"
#include "server/planner/step_load.h"
#include "server/transformer/flops.h"

namespace sliceplan::planner {

TrainingJob JobOf(const ShardingQuestion& question, size_t index) {
  const SearchCandidate& candidate = question.candidates[index];
  TrainingJob job;
  job.model = question.model;
  job.slice = candidate.slice;
  job.workload = candidate.workload;
  job.allow_idle_chips = question.constraints.allow_idle_chips;
  job.allow_padding = question.constraints.allow_padding;
  job.mode = question.mode;
  job.profile = candidate.profile;
  job.usd_per_chip_hour = candidate.usd_per_chip_hour;
  job.reliability = question.reliability;
  job.min_headroom_ratio = question.constraints.hbm_headroom_ratio;
  if (question.constraints.deadline_seconds) {
    // What waiting leaves of it. A slice that comes too late misses a second as well as none.
    job.deadline_seconds = std::max(1.0, *question.constraints.deadline_seconds - candidate.available_after_seconds);
  }
  job.budget_usd = question.constraints.budget_usd;
  return job;
}

size_t PlaceOf(const ShardingQuestion& question, size_t candidate) {
  return question.candidates[candidate].variant_of.value_or(candidate);
}

std::vector<size_t> AddOffloadVariants(ShardingQuestion& question) {
  std::vector<size_t> left_out;
  const size_t count = question.candidates.size();
  for (size_t i = 0; i < count; ++i) {
    const SearchCandidate plain = question.candidates[i];
    const hardware::Slice& slice = plain.slice;
    const bool host_known = slice.host_memory_bytes && slice.chips_per_host > 0;
    if (!host_known || slice.accelerator.pcie_bytes_per_second.value_or(0) <= 0) {
      left_out.push_back(i);
      continue;
    }
    const auto add = [&](bool optimizer, bool activations) {
      if ((optimizer && plain.workload.optimizer_offload) || (activations && plain.workload.activation_offload)) return;
      SearchCandidate& variant = question.candidates.emplace_back(plain);
      variant.workload.optimizer_offload |= optimizer;
      variant.workload.activation_offload |= activations;
      variant.variant_of = i;
    };
    add(true, false);
    add(false, true);
    add(true, true);
  }
  return left_out;
}

double LeastStateBytes(const TrainingJob& job) {
  const TrainingWorkload& workload = job.workload;
  StepPlan whole;
  whole.microbatch_size = workload.global_batch_size;
  StepLoad load;
  CountStep(job, whole, load);
  double parameters = load.edge.embedding_parameter_count + load.edge.head_parameter_count;
  for (size_t kind = 0; kind < load.layers.size(); ++kind) {
    const LayerLoad& layer = load.layers[kind];
    parameters += static_cast<double>(job.model->layers[kind].count) *
                  (layer.dense_parameter_count + layer.expert_parameter_count);
  }
  double bytes = hardware::BytesPerElement(workload.precision.parameters);
  if (!workload.optimizer_offload) bytes += MatrixStateBytes(workload);
  return bytes * parameters / static_cast<double>(job.slice.TotalChips());
}

double FloorSeconds(const TrainingJob& job) {
  for (const transformer::LayerOperations& layer : job.model->layers) {
    if (layer.capacity_factor > 0 && layer.capacity_factor < 1) return 0;
  }
  const transformer::FlopsPerToken flops =
      transformer::CountFlops(*job.model, job.workload.sequence_length, job.workload.attention_mask);
  const double tokens =
      static_cast<double>(job.workload.global_batch_size) * static_cast<double>(job.workload.sequence_length);
  const double rate = job.slice.accelerator.MatmulRate(job.workload.precision.compute).value_or(0);
  return tokens * transformer::kTrainingPasses * flops.forward_matmuls /
         (static_cast<double>(job.slice.TotalChips()) * rate);
}

}  // namespace sliceplan::planner
