#include "server/planner/step_load.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace sliceplan::planner {
namespace {

using hardware::BytesPerElement;
using hardware::DataType;
using transformer::Component;
using transformer::LayerOperations;
using transformer::SavedTensor;
using transformer::TensorSplit;
using transformer::WeightMatmul;

// A few kB each.
constexpr size_t kMostRemembered = 1024;
// Bytes of the log-sum-exp that flash attention keeps per query and head (fp32).
constexpr double kLogSumExpBytes = 4;
// What materialised attention keeps per query-key pair and head: scores and probabilities in 16 bits and a mask byte
// (Korthikanti et al. 2022, equation 2: 5 a s^2 b).
constexpr double kMaterializedScoreBytes = 5;
// And once more in fp32 while the softmax runs.
constexpr double kWideScoreBytes = 4;
// Norm outputs and the residual sum in the middle of a layer, in units of hidden_dim, kept when everything is saved.
constexpr double kSavedHiddenCopies = 3;

double PadTo(double size, double tile) { return tile > 1 ? std::ceil(size / tile) * tile : size; }

// Rows that a grouped matmul computes: every border between two experts' tokens lies inside a tile, which runs for
// both. An expert without tokens has no border.
double GroupedRows(double rows, double expert_count, double tile_rows) {
  return rows + std::max(0.0, std::min(expert_count, rows) - 1) * tile_rows;
}

bool IsLowPrecision(DataType type) { return BytesPerElement(type) < 2; }

// The job and plan in the numbers that every count needs.
struct Shape {
  double tokens = 0;  // of a microbatch on a tensor group
  double tensor = 1;
  double hidden_shards = 1;  // of residual-stream activations beyond the batch and context
  double context = 1;
  double expert = 1;
  double sequence_length = 0;
  double microbatch_size = 0;
  double wide_bytes = 2;
  double least_bytes = 2;  // per element that a matmul in the compute type reads or writes, on average
  double mxu = 1;
  double expert_tile = 1;
  bool causal = true;
  bool low_precision = false;
  bool materialized = false;
  bool calibrated = false;
  double attention_block = 0;
  double window_block = 0;
};

Shape ShapeOf(const TrainingJob& job, const StepPlan& plan) {
  Shape shape;
  const Parallelism& parallelism = plan.parallelism;
  shape.tensor = parallelism.Degree(LogicalAxis::kTensor);
  shape.hidden_shards = parallelism.sequence_parallel ? shape.tensor : 1;
  shape.context = parallelism.Degree(LogicalAxis::kContext);
  shape.expert = parallelism.Degree(LogicalAxis::kExpert);
  shape.sequence_length = job.workload.sequence_length;
  shape.microbatch_size = static_cast<double>(plan.microbatch_size);
  shape.tokens = shape.microbatch_size * shape.sequence_length / shape.context;
  shape.wide_bytes = job.workload.precision.compute == DataType::kFp32 ? 4 : 2;
  shape.low_precision = IsLowPrecision(job.workload.precision.compute);
  // Forward and backward, every array is read by two of the three matmuls and written, wide, by the third.
  shape.least_bytes = (2 * BytesPerElement(job.workload.precision.compute) + shape.wide_bytes) / 3;
  shape.causal = job.workload.attention_mask == AttentionMask::kCausal;
  shape.materialized = job.workload.attention_kernel == AttentionKernel::kMaterialized;
  shape.calibrated = job.mode == EstimationMode::kCalibrated && job.profile != nullptr;
  if (shape.calibrated) {
    shape.mxu = job.slice.accelerator.mxu_dim.value_or(1);
    shape.expert_tile = std::max(shape.mxu, job.profile->expert_tile);
    shape.attention_block = job.profile->attention_block_tokens;
    shape.window_block = job.profile->attention_window_block_tokens;
  }
  return shape;
}

// Adds one matmul to its group and returns the bytes of its output on this chip.
double AddMatmul(const WeightMatmul& matmul, const LayerOperations& layer, const Shape& shape, const RematPlan& remat,
                 LayerLoad& load) {
  const double share = TensorShare(matmul, shape.tensor);
  const bool column = matmul.split == TensorSplit::kColumn;
  const bool row = matmul.split == TensorSplit::kRow;
  const double k = static_cast<double>(matmul.k) * (row ? share : 1);
  const double n = static_cast<double>(matmul.n) * (column ? share : 1);
  const bool is_expert = matmul.expert_count > 0;
  double rows = shape.tokens * matmul.rows_per_token;
  if (is_expert) {
    rows *= layer.load_imbalance_ratio * (layer.capacity_factor > 0 ? layer.capacity_factor : 1);
  } else if (matmul.split == TensorSplit::kNone) {
    rows /= shape.hidden_shards;
  }
  const double local_experts = is_expert ? std::ceil(matmul.expert_count / shape.expert) : 1;
  const double weights = k * n * local_experts;
  const bool grouped = is_expert && layer.capacity_factor == 0;
  const double tile = grouped ? shape.expert_tile : shape.mxu;
  const double flops = 2 * rows * k * n;
  const double kernel_rows = grouped ? GroupedRows(rows, local_experts, tile) : rows;
  const double kernel_flops = shape.calibrated ? 2 * kernel_rows * PadTo(k, tile) * PadTo(n, tile) : flops;
  const double operand_bytes = shape.wide_bytes * (rows * (k + n) + weights);

  GroupLoad& group = load.groups[static_cast<size_t>(OpGroupOf(matmul))];
  group.component = matmul.component;
  const bool low = shape.low_precision && matmul.low_precision_allowed;
  (low || !shape.low_precision ? group.matmul_flops : group.wide_matmul_flops) += flops;
  group.kernel_matmul_flops += kernel_flops;
  group.operand_bytes += operand_bytes;
  const double least_operand_bytes = operand_bytes * (low ? shape.least_bytes / shape.wide_bytes : 1);
  group.least_operand_bytes += least_operand_bytes;
  (is_expert ? group.expert_weight_count : group.weight_count) += weights;
  if (remat.Recomputes(matmul, layer.parallel_block)) {
    group.recompute_flops += flops;
    group.recompute_kernel_flops += kernel_flops;
    group.recompute_operand_bytes += operand_bytes;
    group.recompute_least_operand_bytes += least_operand_bytes;
  }
  const double bias = static_cast<double>(matmul.bias_count) * (column ? share : 1);
  (is_expert ? load.expert_parameter_count : load.dense_parameter_count) +=
      weights + (is_expert ? bias / shape.expert : bias);
  return shape.wide_bytes * rows * n / (row ? shape.hidden_shards : 1);
}

void AddAttention(const TrainingJob& job, const LayerOperations& layer, const Shape& shape, const RematPlan& remat,
                  LayerLoad& load) {
  const transformer::SoftmaxAttention& softmax = layer.softmax;
  const double heads = std::ceil(softmax.query_head_count / shape.tensor);
  const double kv_heads = std::ceil(softmax.kv_head_count / shape.tensor);
  const double query_key_width = softmax.qk_head_dim;
  const double value_width = softmax.value_head_dim;
  const double queries = shape.tokens;
  const double keys = transformer::AverageKeys(softmax, job.workload.sequence_length, job.workload.attention_mask);
  const double scan_flops = layer.has_scan ? layer.scan.flops_per_token : 0;
  load.attention_flops =
      queries * heads / softmax.query_head_count *
      (transformer::AttentionFlops(layer, job.workload.sequence_length, job.workload.attention_mask) - scan_flops);
  load.attention_kernel_flops = load.attention_flops;
  if (shape.calibrated) {
    double kernel_keys = shape.causal ? (shape.sequence_length + shape.attention_block) / 2 : shape.sequence_length;
    if (softmax.window > 0) kernel_keys = std::min(kernel_keys, softmax.window + shape.window_block);
    if (softmax.chunk > 0) kernel_keys = std::min(kernel_keys, (softmax.chunk + shape.attention_block) / 2);
    if (softmax.selected_key_count > 0) kernel_keys = std::min<double>(kernel_keys, softmax.selected_key_count);
    kernel_keys = std::max(kernel_keys, keys);
    const double exact_flops = 2 * queries * keys * heads * (query_key_width + value_width);
    load.attention_kernel_flops =
        2 * queries * kernel_keys * heads * (PadTo(query_key_width, shape.mxu) + PadTo(value_width, shape.mxu)) +
        std::max(0.0, load.attention_flops - exact_flops);
  }
  load.attention_bytes = shape.wide_bytes * queries * (heads + kv_heads) * (query_key_width + value_width);
  const double pairs = queries * shape.sequence_length * heads;
  load.attention_score_bytes = shape.materialized ? pairs : 0;
  load.recomputes_attention = remat.RecomputesAttention();
  load.context_bytes = shape.context > 1 ? shape.microbatch_size * shape.sequence_length * kv_heads *
                                               (query_key_width + value_width) * shape.wide_bytes
                                         : 0;

  const double context_bytes = shape.wide_bytes * queries * heads * value_width + kLogSumExpBytes * queries * heads;
  const double score_bytes = shape.materialized ? kMaterializedScoreBytes * pairs : 0;
  load.intermediate_bytes += context_bytes + score_bytes + kWideScoreBytes * load.attention_score_bytes;
  switch (remat.Placement(SavedTensor::kContext)) {
    case TensorPlacement::kRecomputed: break;
    case TensorPlacement::kSaved: load.saved_bytes += context_bytes + score_bytes; break;
    case TensorPlacement::kOffloaded: load.offloaded_bytes += context_bytes + score_bytes; break;
  }
}

// Elementwise traffic goes to the operations that it is fused with: norms to the matmul they feed, activations to the
// up projection.
void SpreadElementwise(const LayerOperations& layer, const Shape& shape, LayerLoad& load) {
  const double bytes =
      shape.wide_bytes * shape.tokens *
      (layer.hidden_elements_per_token / shape.hidden_shards + layer.split_elements_per_token / shape.tensor);
  double operand_bytes = 0;
  for (const GroupLoad& group : load.groups) operand_bytes += group.operand_bytes;
  if (operand_bytes <= 0) {
    load.groups[static_cast<size_t>(OpGroup::kScores)].elementwise_bytes += bytes;
    return;
  }
  for (GroupLoad& group : load.groups) group.elementwise_bytes += bytes * group.operand_bytes / operand_bytes;
}

void CountLayer(const TrainingJob& job, const LayerOperations& layer, const Shape& shape, const StepPlan& plan,
                LayerLoad& load) {
  load = LayerLoad();
  const RematPlan& remat = plan.remat;
  const double hidden_dim = static_cast<double>(job.model->hidden_dim);
  load.layer_group = layer.group_index;
  load.has_experts = layer.expert_count > 0;
  load.recomputes = remat.RecomputesAnything();
  load.groups[static_cast<size_t>(OpGroup::kScores)].component = Component::kAttentionScores;

  const double hidden_bytes = shape.wide_bytes * shape.tokens * hidden_dim / shape.hidden_shards;
  double product_bytes = 0;
  for (const WeightMatmul& matmul : layer.matmuls) {
    const double output_bytes = AddMatmul(matmul, layer, shape, remat, load);
    // Outputs that nothing in the backward pass reads are dead: the down projection, unless a policy names it in vain.
    const bool needed = matmul.output != SavedTensor::kMlpDown &&
                        !(matmul.output == SavedTensor::kOutProjection && layer.parallel_block);
    load.intermediate_bytes += output_bytes;
    if (matmul.output == SavedTensor::kMlpUpGate) product_bytes = std::max(product_bytes, output_bytes);
    if (!needed || (remat.save_everything && matmul.output == SavedTensor::kOutProjection)) continue;
    switch (remat.Placement(matmul.output)) {
      case TensorPlacement::kRecomputed: break;
      case TensorPlacement::kSaved: load.saved_bytes += output_bytes; break;
      case TensorPlacement::kOffloaded: load.offloaded_bytes += output_bytes; break;
    }
  }
  if (layer.has_softmax) AddAttention(job, layer, shape, remat, load);
  if (layer.has_scan) {
    GroupLoad& scan = load.groups[static_cast<size_t>(OpGroup::kScores)];
    const double flops = shape.tokens * layer.scan.flops_per_token / shape.tensor;
    (shape.low_precision ? scan.wide_matmul_flops : scan.matmul_flops) += flops;
    scan.kernel_matmul_flops += flops;
    scan.elementwise_bytes += shape.tokens * layer.scan.bytes_per_token / shape.tensor;
    if (load.recomputes) {
      scan.recompute_flops += flops;
      scan.recompute_kernel_flops += flops;
    }
  }
  SpreadElementwise(layer, shape, load);
  load.dense_parameter_count += static_cast<double>(layer.norm_parameter_count + layer.other_parameter_count);

  // Layer input, always; the rest as the policy says.
  if (remat.checkpoints_per_layer > 0) {
    load.saved_bytes = remat.checkpoints_per_layer * hidden_bytes;
    load.offloaded_bytes = 0;
  } else if (remat.tensors.layer_input == TensorPlacement::kOffloaded) {
    load.offloaded_bytes += hidden_bytes;
  } else {
    load.saved_bytes += hidden_bytes;
  }
  if (remat.save_everything) load.saved_bytes += kSavedHiddenCopies * hidden_bytes + product_bytes;
  load.intermediate_bytes += kSavedHiddenCopies * hidden_bytes + product_bytes;
  if (job.workload.activation_offload) {
    load.offloaded_bytes += load.saved_bytes;
    load.saved_bytes = 0;
  }

  if (shape.tensor > 1) {
    const bool two_branches = !layer.parallel_block && layer.matmuls.size() > 1;
    load.tensor_block_count = two_branches ? 2 : 1;
    load.tensor_bytes = shape.wide_bytes * shape.tokens * hidden_dim;
  }
  if (load.has_experts) {
    const double capacity = layer.capacity_factor > 0 ? layer.capacity_factor : 1;
    const double routed = shape.tokens * layer.experts_per_token * capacity;
    load.permute_bytes = shape.wide_bytes * routed * hidden_dim / shape.hidden_shards;
    if (shape.expert > 1) load.expert_bytes = load.permute_bytes * shape.expert;
    if (layer.capacity_factor > 0) {
      // Dispatch and combine einsums against one-hot masks of a sequence: 2 x 2 x routed x S x D.
      load.dispatch_flops = 2 * 2 * routed * shape.sequence_length * hidden_dim / shape.tensor;
    }
  }
}

void CountEdge(const TrainingJob& job, const Shape& shape, EdgeLoad& edge) {
  const transformer::ModelOperations& model = *job.model;
  const double hidden_dim = static_cast<double>(model.hidden_dim);
  const double vocabulary = std::ceil(static_cast<double>(model.head.n) / shape.tensor);
  const double rows = shape.tokens;
  edge = EdgeLoad();
  edge.embedding_parameter_count = static_cast<double>(model.embedding_parameter_count) / shape.tensor;
  edge.head_parameter_count = static_cast<double>(model.head_parameter_count) / shape.tensor;
  edge.head_weight_count = static_cast<double>(model.head.k) * vocabulary;
  edge.head_flops = 2 * rows * edge.head_weight_count;
  edge.head_kernel_flops =
      shape.calibrated ? 2 * rows * static_cast<double>(model.head.k) * PadTo(vocabulary, shape.mxu) : edge.head_flops;
  edge.head_operand_bytes = shape.wide_bytes * (rows * (hidden_dim + vocabulary) + edge.head_weight_count);
  edge.logits_element_count = rows * vocabulary;
  edge.embedding_bytes = 2 * shape.wide_bytes * rows * hidden_dim / shape.hidden_shards;
  edge.mtp_head_passes = model.mtp_layer_count;
}

}  // namespace

double TensorShare(const WeightMatmul& matmul, double tensor) {
  if (matmul.split == TensorSplit::kNone || tensor <= 1) return 1;
  const double units = matmul.split_unit_count > 0            ? matmul.split_unit_count
                       : matmul.split == TensorSplit::kColumn ? static_cast<double>(matmul.n)
                                                              : static_cast<double>(matmul.k);
  return std::ceil(units / tensor) / units;
}

OpGroup OpGroupOf(const WeightMatmul& matmul) {
  const bool row = matmul.split == TensorSplit::kRow;
  if (matmul.component == Component::kAttentionProjections) {
    return row ? OpGroup::kOutputProjection : OpGroup::kInputProjections;
  }
  if (matmul.component == Component::kRouter) return OpGroup::kRouter;
  if (matmul.expert_count > 0) return row ? OpGroup::kExpertDown : OpGroup::kExpertUp;
  return row ? OpGroup::kDown : OpGroup::kUp;
}

void CountStep(const TrainingJob& job, const StepPlan& plan, StepLoad& load) {
  const Shape shape = ShapeOf(job, plan);
  load.tokens_per_microbatch = shape.tokens;
  load.wide_bytes_per_element = shape.wide_bytes;
  load.layers.resize(job.model->layers.size());
  for (size_t i = 0; i < load.layers.size(); ++i) CountLayer(job, job.model->layers[i], shape, plan, load.layers[i]);
  load.mtp_layer_count = job.model->mtp_layer_count;
  if (load.mtp_layer_count > 0) CountLayer(job, job.model->mtp, shape, plan, load.mtp);
  CountEdge(job, shape, load.edge);
  // Ranks that hold the same copy send a share each and gather it at the other end, over links that are faster by far
  // (Narayanan et al. 2021, section 4.1).
  load.permute_bytes = plan.parallelism.Degree(LogicalAxis::kPipeline) > 1
                           ? shape.wide_bytes * shape.tokens * static_cast<double>(job.model->hidden_dim) / shape.tensor
                           : 0;
}

const StepLoad& StepLoadCache::Of(const TrainingJob& job, const StepPlan& plan) {
  const Parallelism& parallelism = plan.parallelism;
  const Key key = {int64_t{parallelism.Degree(LogicalAxis::kTensor)} << 32 | parallelism.Degree(LogicalAxis::kContext),
                   int64_t{parallelism.Degree(LogicalAxis::kExpert)} << 32 | static_cast<int64_t>(plan.remat_policy),
                   plan.microbatch_size,
                   (parallelism.Degree(LogicalAxis::kPipeline) > 1 ? 1 : 0) | (parallelism.sequence_parallel ? 2 : 0)};
  if (const auto found = loads_.find(key); found != loads_.end()) return *found->second;
  if (loads_.size() >= kMostRemembered) {
    for (auto& [forgotten, load] : loads_) spare_.push_back(std::move(load));
    loads_.clear();
  }
  std::unique_ptr<StepLoad>& load = loads_[key];
  if (spare_.empty()) {
    load = std::make_unique<StepLoad>();
  } else {
    load = std::move(spare_.back());
    spare_.pop_back();
  }
  CountStep(job, plan, *load);
  return *load;
}

void StepLoadCache::Clear() {
  loads_.clear();
  spare_.clear();
}

}  // namespace sliceplan::planner
