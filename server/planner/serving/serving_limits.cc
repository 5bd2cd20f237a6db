#include "server/planner/serving/serving_limits.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "server/planner/serving/batch_point.h"
#include "server/planner/serving_closed_form.h"
#include "server/planner/words.h"
#include "server/transformer/kv_cache.h"

namespace sliceplan::planner {
namespace {

using hardware::Violation;

constexpr int64_t kNominalBatch = 32;

// What engines multiply weights as: floats in their own format where the chip has units for it, all else in 16 bits.
hardware::DataType OperandsOf(hardware::DataType weights, const hardware::AcceleratorSpec& accelerator) {
  const bool own = hardware::BytesPerElement(weights) > 1 ||
                   (weights == hardware::DataType::kFp8 && accelerator.fp8_flops_per_second) ||
                   (weights == hardware::DataType::kFp4 && accelerator.fp4_flops_per_second);
  return own ? weights : hardware::DataType::kBf16;
}

std::string PrefixOf(const ServingJob& job, size_t index) {
  return job.pools_given ? absl::StrCat("pools[", index, "].") : "";
}

// Elements of one layer's feed-forward input width that tensor splits: the book's F.
double FeedForwardWidth(const transformer::ModelOperations& model) {
  double width = 0;
  for (const transformer::LayerOperations& layer : model.layers) {
    for (const transformer::WeightMatmul& matmul : layer.matmuls) {
      if (matmul.component == transformer::Component::kFeedForward && matmul.split == transformer::TensorSplit::kRow) {
        width = std::max(width, static_cast<double>(matmul.k));
      }
    }
  }
  return width;
}

// Both directions of the best axis of a torus; the scale-up rate of a GPU.
std::optional<double> NetworkRate(const hardware::Slice& slice) {
  const hardware::AcceleratorSpec& accelerator = slice.accelerator;
  if (accelerator.fabric == hardware::FabricKind::kSwitched) return accelerator.scale_up_bytes_per_second;
  constexpr double kDirections = 2;
  if (!accelerator.ici_link_bytes_per_second) return std::nullopt;
  return kDirections * *accelerator.ici_link_bytes_per_second;
}

}  // namespace

int64_t NominalBatch(const ServingWorkload& workload) {
  return workload.load == ServingLoadKind::kBatch ? workload.batch_size : kNominalBatch;
}

void CheckPools(const ServingJob& job, std::vector<Violation>& violations) {
  int prefill = 0;
  int decode = 0;
  int both = 0;
  for (size_t i = 0; i < job.pools.size(); ++i) {
    const ServingPool& pool = job.pools[i];
    prefill += pool.role == PoolRole::kPrefill ? 1 : 0;
    decode += pool.role == PoolRole::kDecode ? 1 : 0;
    both += pool.role == PoolRole::kBoth ? 1 : 0;
    const hardware::AcceleratorSpec& accelerator = pool.slice.accelerator;
    const auto require = [&](bool known, absl::string_view figure) {
      if (known) return;
      violations.push_back({absl::StrCat(PrefixOf(job, i), "slice"),
                            absl::StrCat("the ", figure, " of this chip is not public; set it in slice.override"),
                            "ACCELERATOR_FIGURE_UNKNOWN", Violation::Kind::kInvalid});
    };
    require(accelerator.MatmulRate(hardware::DataType::kBf16).has_value(), "bf16_flops_per_second");
    require(accelerator.hbm_bytes_per_second.has_value(), "hbm_bytes_per_second");
    require(accelerator.AllocatableBytes().has_value(), "hbm_bytes");
  }
  const auto refuse = [&](absl::string_view why) {
    violations.push_back({"pools", std::string(why), "POOL_ROLES", Violation::Kind::kInvalid});
  };
  if (both > 0 && prefill + decode > 0) refuse("pools of role BOTH cannot stand beside pools of PREFILL or DECODE");
  if (prefill > 1 || (prefill > 0 && decode > 1)) refuse("at most one pool of PREFILL and one of DECODE");
  if (prefill > 0 && decode == 0) refuse("a pool of PREFILL needs one of DECODE to hand its caches to");
}

Violation ViolationOf(const absl::Status& status, const std::string& prefix) {
  const bool figure = absl::IsFailedPrecondition(status);
  return {absl::StrCat(prefix, figure ? "slice" : "parallelism"),
          figure ? absl::StrCat(status.message(), "; set it in slice.override or slice.custom")
                 : std::string(status.message()),
          figure ? "ACCELERATOR_FIGURE_UNKNOWN" : "PLAN_CANNOT_BE_PLACED", Violation::Kind::kInvalid};
}

void FillLoadUsed(const ServingJob& job, const ReplicaPlan& plan, ServingEstimate& estimate) {
  const ServingPolicy& policy = plan.policy();
  LoadUsed& load = estimate.load;
  load.kind = job.workload.load;
  const transformer::Quantization& quantization = job.model.architecture->quantization;
  const bool quantized = !quantization.method.empty();
  load.weights_as_stored = !policy.weights.has_value();
  load.weights = policy.weights.value_or(hardware::DataType::kBf16);
  if (!policy.weights && quantized) {
    for (size_t i = 0; i < quantization.quantized.size(); ++i) {
      if (quantization.quantized[i]) load.weights = quantization.formats[i].dtype;
    }
  }
  load.compute = policy.compute.value_or(OperandsOf(load.weights, plan.pool().slice.accelerator));
  load.prefill_chunk_tokens = policy.prefill_chunk_tokens;
  load.hbm_utilization_ratio = policy.hbm_utilization_ratio;
  load.kv_cache_split = policy.kv_cache_split;
  load.windowed_kv_policy = policy.windowed_kv_policy;
  load.max_batch_size = policy.max_batch_size;
  load.max_context_tokens = job.workload.max_context_tokens.value_or(
      static_cast<int32_t>(std::min<int64_t>(FullContext(job.workload), std::numeric_limits<int32_t>::max())));
  const bool read_here = std::any_of(job.pools.begin(), job.pools.end(),
                                     [](const ServingPool& pool) { return pool.role != PoolRole::kDecode; });
  if (!read_here) {
    estimate.assumptions.push_back(
        "pools: prompts arrive with their caches; reading them and handing them over takes no time and costs nothing "
        "here");
  }
  if (job.workload.speculation && !job.workload.speculation->draft_model && plan.load().mtp.count > 0) {
    estimate.assumptions.push_back(absl::StrCat(
        "workload.speculative: the model's own ", CountWords(job.model.operations->mtp_layer_count),
        " multi-token-prediction layers draft; their weights and caches are in the memory of the last stage"));
  }
  if (!policy.weights) {
    estimate.assumptions.push_back(
        quantized ? absl::StrCat("workload.precision.weights: as the config is quantised (", quantization.method, ")")
                  : std::string("workload.precision.weights: bf16, the config is not quantised"));
  }
  if (job.workload.load == ServingLoadKind::kConcurrency && job.mode == EstimationMode::kCalibrated) {
    estimate.assumptions.push_back(
        "workload.concurrency: users of a benchmark, who all start at once; means are over the run, the first burst "
        "included");
  }
  if (job.workload.load == ServingLoadKind::kBatch || job.workload.load == ServingLoadKind::kLargestBatch) {
    estimate.assumptions.push_back(
        job.mode == EstimationMode::kRoofline
            ? "throughput: batch / step time, prefill on chips of its own, as the book counts it"
        : job.workload.load == ServingLoadKind::kBatch
            ? "throughput: all requests of a batch start together; their prefill, then their decode steps"
            : "throughput: the batch stays full; every prompt delays the other sequences' next token");
  }
}

void FillLimits(const ServingJob& job, const ReplicaPlan& plan, int64_t batch_size, ServingEstimate& estimate) {
  const ReplicaLoad& load = plan.load();
  const PassRates rates = PassRatesOf(plan.pool().slice.accelerator);
  double bytes = load.head.weight_bytes;
  const auto sum = [](const ClassSeconds& seconds) { return std::accumulate(seconds.begin(), seconds.end(), 0.0); };
  double seconds_per_row = sum(load.head.seconds_per_row);
  for (const PassLayer& layer : load.layers) {
    bytes += layer.count * (layer.dense_weight_bytes + layer.expert_weight_bytes * layer.experts_on_chip);
    seconds_per_row += layer.count * sum(layer.seconds_per_token);
  }
  if (seconds_per_row > 0) {
    estimate.critical_batch_size = bytes / rates.hbm_bytes_per_second / seconds_per_row * load.data_ranks;
  }
  const std::optional<double> network = NetworkRate(plan.pool().slice);
  const double width = FeedForwardWidth(*job.model.operations);
  const double rows = std::max<double>(1, static_cast<double>(batch_size) / load.data_ranks);
  if (network && *network > 0 && width > 0) {
    const double weight_bytes = hardware::BytesPerElement(estimate.load.weights);
    const double activation_bytes = hardware::BytesPerElement(plan.policy().activations);
    estimate.tensor_degree_limit =
        DecodeTensorLimit(width, rows, rates.hbm_bytes_per_second / *network) * weight_bytes / activation_bytes;
  }
  estimate.kv_bytes_per_token =
      transformer::GrowingBytesPerToken(transformer::KvCacheOf(*job.model.architecture), plan.policy().kv_cache);
}

std::vector<AxisPlacement> PlacementsOf(const ReplicaPlan& plan) {
  std::vector<AxisPlacement> placements;
  const PlanLaws& laws = plan.laws();
  for (const LogicalAxis axis : kLogicalAxes) {
    const int32_t degree = plan.parallelism().Degree(axis);
    if (degree <= 1) continue;
    AxisPlacement placement;
    placement.axis = axis;
    placement.degree = degree;
    placement.group = plan.mapping().groups[static_cast<size_t>(axis)];
    placement.slowest_tier = SlowestTierOf(laws, axis);
    placements.push_back(std::move(placement));
  }
  return placements;
}

}  // namespace sliceplan::planner
