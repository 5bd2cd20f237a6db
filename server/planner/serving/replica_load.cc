#include "server/planner/serving/replica_load.h"

#include <algorithm>
#include <cmath>

#include "server/planner/serving/replica_buffers.h"
#include "server/roofline/collective.h"
#include "server/transformer/kv_cache.h"
#include "server/transformer/parameter_count.h"

namespace sliceplan::planner {
namespace {

using hardware::BytesPerElement;
using hardware::DataType;
using transformer::Component;
using transformer::LayerOperations;
using transformer::ModelOperations;
using transformer::SoftmaxAttention;
using transformer::TensorSplit;
using transformer::WeightClass;
using transformer::WeightMatmul;

constexpr double kWideBytes = 2;
// A key or value and the operand beside it: a multiply and an add.
constexpr double kFlopsPerMultiplyAdd = 2;
// Logits are sampled from in fp32.
constexpr double kLogitBytes = 4;

bool IsFourBit(DataType type) { return BytesPerElement(type) < 1; }

// Tiles that kernels for experts in MXFP4 (four bits, a scale for 32 inputs) work on: the width of a chip's part of an
// expert and the hidden size are held in whole ones. vLLM, model_executor/layers/quantization/mxfp4.py (v0.10 to
// v0.19), of Marlin, which unpacks, and of FlashInfer and AITER; GPT-OSS on an H100 takes 8.5% more than its checkpoint
// so.
constexpr int32_t kMxfp4Block = 32;
constexpr double kMxfp4UnpackedWidthTile = 128;
constexpr double kMxfp4WidthTile = 256;
constexpr double kMxfp4HiddenTile = 256;

// Caches of attention that selects its keys, as vLLM (fp8_ds_mla) and SGLang (DSATokenToKVPool) lay them out: keys of
// the indexer are always in fp8, and so is the latent when the cache is, both with an fp32 scale for 128 values; the
// rotated part beside the latent stays in 16 bits. DeepSeek-V3.2: 132 and 656 bytes a token and layer.
constexpr double kSelectionScaleBlock = 128;
constexpr double kSelectionScaleBytes = 4;

double ScaledFp8Bytes(double values) {
  return values + kSelectionScaleBytes * std::ceil(values / kSelectionScaleBlock);
}

double RoundUp(double size, double tile) { return std::ceil(size / tile) * tile; }

double CeilShare(double units, double degree) { return std::ceil(units / degree) / units; }

// The job and plan in the numbers that every count needs.
struct Shape {
  double tensor = 1;
  double hidden_shards = 1;  // fsdp: weights are split along their inputs as well, and stay
  double context = 1;
  double expert = 1;
  double activation_bytes = 2;
};

class Counter {
 public:
  Counter(const ServingJob& job, const ServingPool& pool, const ServingPolicy& policy, const Parallelism& parallelism)
      : job_(job),
        model_(*job.model.operations),
        accelerator_(pool.slice.accelerator),
        policy_(policy),
        calibrated_(job.mode == EstimationMode::kCalibrated),
        shape_{static_cast<double>(parallelism.Degree(LogicalAxis::kTensor)),
               static_cast<double>(parallelism.Degree(LogicalAxis::kFsdp)),
               static_cast<double>(parallelism.Degree(LogicalAxis::kContext)),
               static_cast<double>(parallelism.Degree(LogicalAxis::kExpert)), BytesPerElement(policy.activations)} {
    for (const LayerOperations& layer : model_.layers) latent_ |= layer.softmax.absorbed_qk_dim > 0;
  }

  PassLayer Layer(const LayerOperations& layer) const {
    PassLayer counted;
    counted.count = static_cast<double>(layer.count);
    counted.has_experts = layer.expert_count > 0;
    double vectors = static_cast<double>(layer.norm_parameter_count + layer.other_parameter_count);
    for (const WeightMatmul& matmul : layer.matmuls) {
      AddMatmul(matmul, layer.positions, counted);
      vectors += static_cast<double>(matmul.bias_count) / (matmul.expert_count > 0 ? shape_.expert : 1);
    }
    counted.resident_bytes += kWideBytes * vectors;
    counted.elementwise_bytes_per_token =
        shape_.activation_bytes *
        (layer.hidden_elements_per_token + layer.split_elements_per_token / shape_.tensor / shape_.hidden_shards);
    const double hidden_bytes = shape_.activation_bytes * static_cast<double>(model_.hidden_dim);
    if (shape_.tensor > 1) SetTensorTraffic(layer, hidden_bytes / shape_.hidden_shards, counted);
    if (counted.has_experts) {
      const double imbalance = job_.workload.expert_load_imbalance_ratio.value_or(layer.load_imbalance_ratio);
      const double capacity = layer.capacity_factor > 0 ? layer.capacity_factor : 1;
      counted.choice_ratio = static_cast<double>(layer.experts_per_token) / layer.expert_count;
      counted.experts_on_chip = std::ceil(layer.expert_count / shape_.expert);
      // A few chips that share the experts cannot be out of balance by more than the rest leaves them.
      counted.routed_rows_per_token =
          layer.experts_per_token * capacity * (shape_.expert > 1 ? std::min(imbalance, shape_.expert) : 1);
      if (shape_.expert > 1) {
        // A token is sent once to each chip that holds some of its experts. Dispatch and combine; the tensor group
        // shares the work.
        const double targets =
            shape_.expert * roofline::RandomRoutingFillRatio(layer.experts_per_token * capacity, shape_.expert);
        counted.expert_exchange_bytes_per_token =
            targets * hidden_bytes / shape_.hidden_shards / shape_.tensor * shape_.expert;
      }
    }
    if (layer.has_softmax) AddSoftmax(layer.softmax, counted.attention);
    if (layer.has_scan) AddScan(layer, counted.attention);
    counted.latent_attention = layer.softmax.absorbed_qk_dim > 0;
    if (counted.latent_attention) counted.absorbed_copy_bytes = AbsorbedCopyBytes(layer.softmax, shape_.tensor);
    SetKernelBytes(layer, counted);
    Sum(counted);
    return counted;
  }

  void Edge(ReplicaLoad& load) const {
    const double hidden = static_cast<double>(model_.hidden_dim);
    const DataType table_type = TypeOf(WeightClass::kEmbedding, true);
    const double vocabulary = std::ceil(static_cast<double>(model_.vocab_size) / shape_.tensor);
    const double shards = shape_.tensor * shape_.hidden_shards;
    load.embedding_bytes_per_token = shape_.activation_bytes * hidden;
    load.embedding_resident_bytes =
        BytesPerElement(table_type) * static_cast<double>(model_.embedding_parameter_count) / shards +
        kWideBytes * static_cast<double>(model_.final_norm_parameter_count);
    for (const WeightMatmul& matmul : model_.embedding_projections) {
      load.embedding_resident_bytes += WeightBytes(matmul, {}) / shards;
    }
    if (model_.head.n > 0) {
      const double columns = std::ceil(static_cast<double>(model_.head.n) / shape_.tensor);
      const double inputs = static_cast<double>(model_.head.k) / shape_.hidden_shards;
      load.head.component = Component::kOutputHead;
      load.head.weight_bytes =
          WeightBytes(model_.head, {}) * columns / static_cast<double>(model_.head.n) / shape_.hidden_shards;
      load.head.flops_per_row = kFlopsPerMultiplyAdd * columns * inputs;
      AddSeconds(TypeOf(WeightClass::kHead, model_.head.low_precision_allowed), load.head.flops_per_row, load.head);
      load.head.activation_bytes_per_row = shape_.activation_bytes * inputs + kLogitBytes * columns;
      load.logits_bytes_per_row = kLogitBytes * vocabulary;
      if (!model_.tied_embeddings) load.head_resident_bytes = load.head.weight_bytes;
    }
    load.permute_bytes_per_token = shape_.activation_bytes * hidden / shards;
  }

  void Buffers(const LayerOperations& layer, ReplicaLoad& load) const {
    const BufferShape shape = {shape_.tensor, CopiesHeads(), shape_.activation_bytes};
    load.projection_bytes_per_token = std::max(load.projection_bytes_per_token, ProjectionBytesPerToken(layer, shape));
    // Kernels for four-bit experts are fused: no buffers between their matmuls.
    const bool four_bit = std::any_of(layer.matmuls.begin(), layer.matmuls.end(), [this](const WeightMatmul& matmul) {
      return matmul.expert_count > 0 && IsFourBit(TypeOf(matmul.weight_class, matmul.low_precision_allowed));
    });
    if (four_bit) return;
    load.expert_workspace_bytes_per_token =
        std::max(load.expert_workspace_bytes_per_token,
                 ExpertWorkspaceBytesPerToken(layer, static_cast<double>(model_.hidden_dim), shape));
  }

 private:
  // Norms, rotary embedding, quantisation and residuals read and write the residual stream eight times in all, the
  // activation function its inputs four times, and tokens are gathered for experts and scattered back.
  void SetKernelBytes(const LayerOperations& layer, PassLayer& counted) const {
    constexpr double kStreamPasses = 8;
    constexpr double kWidthPasses = 4;
    constexpr double kRoutedPasses = 2;
    double width = 0;
    for (const WeightMatmul& matmul : layer.matmuls) {
      if (matmul.component != Component::kFeedForward || matmul.split != TensorSplit::kRow) continue;
      width += static_cast<double>(matmul.k) * ServedShare(matmul, shape_.tensor, CopiesHeads()) *
               (matmul.expert_count > 0 ? layer.experts_per_token : 1);
    }
    const double hidden = static_cast<double>(model_.hidden_dim);
    counted.kernel_bytes_per_token =
        shape_.activation_bytes *
        (kStreamPasses * hidden + kWidthPasses * width + kRoutedPasses * layer.experts_per_token * hidden) /
        shape_.hidden_shards;
  }

  static void Sum(PassLayer& layer) {
    for (const PassGroup& group : layer.groups) {
      const double rows = group.experts ? layer.routed_rows_per_token : 1;
      for (size_t c = 0; c < kRateClassCount; ++c) layer.seconds_per_token[c] += rows * group.seconds_per_row[c];
      (group.experts ? layer.expert_weight_bytes : layer.dense_weight_bytes) += group.weight_bytes;
      layer.activation_bytes_per_token += rows * group.activation_bytes_per_row;
    }
    layer.activation_bytes_per_token += layer.elementwise_bytes_per_token;
  }

  bool CopiesHeads() const { return policy_.kv_cache_split == KvCacheSplit::kCopies; }

  // What a weight is stored as. Unset policy: of quantised checkpoints the format, else 16 bits.
  DataType TypeOf(WeightClass weight_class, bool narrow_allowed) const {
    const bool table = weight_class == WeightClass::kHead || weight_class == WeightClass::kEmbedding;
    if (policy_.weights) {
      const bool narrow = BytesPerElement(*policy_.weights) < kWideBytes;
      if (latent_ && weight_class == WeightClass::kAttention && IsFourBit(*policy_.weights) &&
          !policy_.four_bit_latent_attention) {
        return DataType::kBf16;
      }
      if (narrow && (!(narrow_allowed || table) || (table && !policy_.head_in_weights_type))) return DataType::kBf16;
      return *policy_.weights;
    }
    const transformer::Quantization& quantization = job_.model.architecture->quantization;
    if (!quantization.method.empty() && quantization.Quantizes(weight_class)) {
      return quantization.FormatOf(weight_class).dtype;
    }
    return DataType::kBf16;
  }

  // Whole weight, all experts.
  double WeightBytes(const WeightMatmul& matmul, const std::vector<int32_t>& positions) const {
    const double elements =
        static_cast<double>(matmul.k) * static_cast<double>(matmul.n) * std::max(1, matmul.expert_count);
    if (policy_.weights) {
      const DataType type = TypeOf(matmul.weight_class, matmul.low_precision_allowed);
      const double scale_bytes = type == DataType::kInt4 ? policy_.int4_scale_bytes
                                 : IsFourBit(type)       ? policy_.four_bit_scale_bytes
                                                         : 0;
      return elements * (BytesPerElement(type) + scale_bytes);
    }
    return transformer::ServedWeightBytes(*job_.model.architecture, matmul, positions);
  }

  // Bytes of an expert's weight in memory to those it has in the checkpoint, 1 or more.
  double TileRatio(const WeightMatmul& matmul, double share) const {
    const transformer::Quantization& quantization = job_.model.architecture->quantization;
    if (!calibrated_ || policy_.weights || !quantization.Quantizes(matmul.weight_class)) return 1;
    const transformer::WeightFormat& format = quantization.FormatOf(matmul.weight_class);
    if (format.dtype != DataType::kFp4 || format.block_columns != kMxfp4Block) return 1;
    const bool row = matmul.split == TensorSplit::kRow;
    const double width = static_cast<double>(row ? matmul.k : matmul.n) * share;
    const auto hidden = static_cast<double>(row ? matmul.n : matmul.k);
    const double tile = accelerator_.fp4_flops_per_second ? kMxfp4WidthTile : kMxfp4UnpackedWidthTile;
    return RoundUp(width, tile) * RoundUp(hidden, kMxfp4HiddenTile) / (width * hidden);
  }

  // What a weight in `stored` is multiplied as. Where the request leaves it open: in its own type as far as the chip
  // has a rate for that; integers are widened (weight-only quantisation).
  RateClass ClassOf(DataType stored) const {
    if (policy_.compute) {
      if (BytesPerElement(*policy_.compute) >= kWideBytes || BytesPerElement(stored) >= kWideBytes) {
        return policy_.weights || BytesPerElement(*policy_.compute) >= kWideBytes ? OwnClass(*policy_.compute)
                                                                                  : RateClass::kWide;
      }
      return OwnClass(*policy_.compute);
    }
    switch (stored) {
      case DataType::kFp4: return accelerator_.fp4_flops_per_second ? RateClass::kFourBit : RateClass::kUnpackedFourBit;
      case DataType::kFp8: return accelerator_.fp8_flops_per_second ? RateClass::kEightBit : RateClass::kWide;
      default: return RateClass::kWide;
    }
  }
  static RateClass OwnClass(DataType type) {
    if (BytesPerElement(type) >= kWideBytes) return RateClass::kWide;
    return BytesPerElement(type) == 1 ? RateClass::kEightBit : RateClass::kFourBit;
  }

  void AddSeconds(DataType stored, double flops, PassGroup& group) const {
    const RateClass rate_class = ClassOf(stored);
    const double wide_rate = accelerator_.MatmulRate(DataType::kBf16).value_or(1);  // unknown: refused before
    double rate = wide_rate;
    if (rate_class == RateClass::kEightBit || rate_class == RateClass::kFourBit) {
      rate = accelerator_.MatmulRate(policy_.compute.value_or(stored)).value_or(wide_rate);
    }
    group.seconds_per_row[static_cast<size_t>(rate_class)] += flops / rate;
  }

  void AddMatmul(const WeightMatmul& matmul, const std::vector<int32_t>& positions, PassLayer& layer) const {
    PassGroup& group = layer.groups[static_cast<size_t>(OpGroupOf(matmul))];
    const double share = ServedShare(matmul, shape_.tensor, CopiesHeads());
    const bool column = matmul.split == TensorSplit::kColumn;
    const bool row = matmul.split == TensorSplit::kRow;
    const double k = static_cast<double>(matmul.k) * (row ? share : 1) / (row ? 1 : shape_.hidden_shards);
    const double n = static_cast<double>(matmul.n) * (column ? share : 1) / (row ? shape_.hidden_shards : 1);
    const double copies = std::max(1, matmul.expert_count);
    const double all_bytes = WeightBytes(matmul, positions) * share / shape_.hidden_shards;
    const double flops = kFlopsPerMultiplyAdd * k * n;
    group.component = matmul.component;
    group.experts = matmul.expert_count > 0;
    group.flops_per_row += flops * (group.experts ? 1 : matmul.rows_per_token);
    AddSeconds(TypeOf(matmul.weight_class, matmul.low_precision_allowed),
               flops * (group.experts ? 1 : matmul.rows_per_token), group);
    group.weight_bytes += all_bytes / copies;
    const DataType stored = TypeOf(matmul.weight_class, matmul.low_precision_allowed);
    const bool integer = stored == DataType::kInt8 || stored == DataType::kInt4;
    if (!group.experts && integer && ClassOf(stored) == RateClass::kWide) layer.widened_weight_bytes += all_bytes;
    if (group.experts) layer.unpacked_experts |= ClassOf(stored) == RateClass::kUnpackedFourBit;
    if (matmul.component == Component::kAttentionProjections) {
      layer.four_bit_attention |= ClassOf(stored) == RateClass::kFourBit;
    }
    group.activation_bytes_per_row += shape_.activation_bytes * (k + n);
    layer.resident_bytes +=
        group.experts ? all_bytes / copies * std::ceil(copies / shape_.expert) * TileRatio(matmul, share) : all_bytes;
    // Partial sums of the columns over the chips that split the inputs.
    if (column && shape_.hidden_shards > 1) group.hidden_reduce_bytes_per_token += shape_.activation_bytes * n;
  }

  // Each residual branch is gathered before its first matmul and reduced after its last: together an all-reduce.
  void SetTensorTraffic(const LayerOperations& layer, double hidden_bytes, PassLayer& counted) const {
    const auto group = [&](OpGroup g) -> PassGroup& { return counted.groups[static_cast<size_t>(g)]; };
    const auto used = [&](OpGroup g) { return group(g).weight_bytes > 0; };
    const bool attention = used(OpGroup::kOutputProjection);
    const OpGroup up = used(OpGroup::kUp) ? OpGroup::kUp : OpGroup::kExpertUp;
    const OpGroup down = used(OpGroup::kDown) ? OpGroup::kDown : OpGroup::kExpertDown;
    if (attention) {
      group(OpGroup::kInputProjections).gather_bytes_per_token = hidden_bytes;
      if (!layer.parallel_block || !used(down)) group(OpGroup::kOutputProjection).reduce_bytes_per_token = hidden_bytes;
    }
    if (used(down)) {
      if (!layer.parallel_block || !attention) group(up).gather_bytes_per_token = hidden_bytes;
      group(down).reduce_bytes_per_token = hidden_bytes;
    }
  }

  // Of one cache head.
  double CacheEntryBytes(const SoftmaxAttention& softmax) const {
    const bool selected_latent = softmax.indexer_head_count > 0 && softmax.absorbed_qk_dim > 0;
    if (calibrated_ && selected_latent && policy_.kv_cache == DataType::kFp8) {
      return ScaledFp8Bytes(softmax.absorbed_value_dim) +
             kWideBytes * (softmax.absorbed_qk_dim - softmax.absorbed_value_dim);
    }
    return BytesPerElement(policy_.kv_cache) * softmax.cache_width;
  }

  void AddSoftmax(const SoftmaxAttention& softmax, PassAttention& attention) const {
    attention.present = true;
    const double kv_bytes = BytesPerElement(policy_.kv_cache);
    const double parts = std::max(1, softmax.cache_head_count);
    const double heads = std::ceil(softmax.query_head_count / shape_.tensor);
    const bool surplus = shape_.tensor > parts;
    double share = shape_.tensor <= parts ? CeilShare(parts, shape_.tensor) : 1 / parts;
    if (policy_.kv_cache_split != KvCacheSplit::kCopies) {
      if (surplus) share = 1 / shape_.tensor;
      share /= shape_.hidden_shards;
      if (surplus || shape_.hidden_shards > 1) {
        const double width = static_cast<double>(softmax.qk_head_dim) + softmax.value_head_dim;
        attention.exchange_bytes_per_token = shape_.activation_bytes * softmax.query_head_count * width;
      }
    }
    share /= shape_.context;
    attention.kv_bytes_per_key = CacheEntryBytes(softmax) * parts * share;
    if (softmax.indexer_head_count > 0) {
      const double values = softmax.indexer_head_dim;
      attention.indexer_bytes_per_key = (calibrated_ ? ScaledFp8Bytes(values) : kv_bytes * values) / shape_.context;
    }
    if (!softmax.reads_earlier_cache) {
      attention.kv_bytes_per_stored_key = attention.kv_bytes_per_key;
      attention.indexer_bytes_per_stored_key = attention.indexer_bytes_per_key;
    }
    attention.key_limit = std::max(softmax.window, softmax.chunk);
    attention.compression = softmax.compression;
    attention.selected = softmax.selected_key_count;
    const double prefill_width = static_cast<double>(softmax.qk_head_dim) + softmax.value_head_dim;
    const double decode_width = softmax.absorbed_qk_dim > 0
                                    ? static_cast<double>(softmax.absorbed_qk_dim) + softmax.absorbed_value_dim
                                    : prefill_width;
    const double per_key = kFlopsPerMultiplyAdd * heads / shape_.hidden_shards / shape_.context;
    attention.decode_flops_per_key = per_key * decode_width;
    attention.prefill_flops_per_key = per_key * prefill_width;
    attention.indexer_flops_per_key =
        kFlopsPerMultiplyAdd * softmax.indexer_head_count * softmax.indexer_head_dim / shape_.context;
    if (shape_.context > 1) {
      attention.context_bytes_per_token = shape_.activation_bytes * heads *
                                          (static_cast<double>(softmax.qk_head_dim) + softmax.value_head_dim) *
                                          shape_.context;
    }
  }

  void AddScan(const LayerOperations& layer, PassAttention& attention) const {
    attention.present = true;
    const double shards = shape_.tensor;
    attention.scan_flops_per_token += layer.scan.flops_per_token / shards;
    attention.scan_bytes_per_token += layer.scan.bytes_per_token / kWideBytes * shape_.activation_bytes / shards;
    attention.state_held_bytes +=
        (transformer::kRecurrentStateBytes * static_cast<double>(layer.scan.state_elements) +
         BytesPerElement(policy_.kv_cache) * static_cast<double>(layer.scan.convolution_state_elements)) /
        shards;
    attention.state_bytes = 2 * attention.state_held_bytes;
  }

  const ServingJob& job_;
  const ModelOperations& model_;
  const hardware::AcceleratorSpec& accelerator_;
  const ServingPolicy& policy_;
  const bool calibrated_;
  const Shape shape_;
  bool latent_ = false;
};

}  // namespace

ReplicaLoad CountReplica(const ServingJob& job, const ServingPool& pool, const ServingPolicy& policy,
                         const Parallelism& parallelism) {
  ReplicaLoad load;
  load.tensor = parallelism.Degree(LogicalAxis::kTensor);
  load.expert_ranks = parallelism.Degree(LogicalAxis::kExpert);
  load.data_ranks = parallelism.Degree(LogicalAxis::kData) * load.expert_ranks;
  load.context = parallelism.Degree(LogicalAxis::kContext);
  load.pipeline = parallelism.Degree(LogicalAxis::kPipeline);
  const Counter counter(job, pool, policy, parallelism);
  for (const LayerOperations& layer : job.model.operations->layers) {
    load.layers.push_back(counter.Layer(layer));
    const PassLayer& counted = load.layers.back();
    for (size_t c = 0; c < kRateClassCount; ++c) {
      load.seconds_per_token[c] += counted.count * counted.seconds_per_token[c];
    }
    load.dense_weight_bytes += counted.count * counted.dense_weight_bytes;
    load.widened_weight_bytes += counted.count * counted.widened_weight_bytes;
    load.all_activation_bytes_per_token += counted.count * counted.activation_bytes_per_token;
    load.kernel_bytes_per_token += counted.count * counted.kernel_bytes_per_token;
    load.latent_attention |= load.layers.back().latent_attention;
    counter.Buffers(layer, load);
  }
  if (job.model.operations->mtp_layer_count > 0) {
    load.mtp = counter.Layer(job.model.operations->mtp);
    load.mtp.count = job.model.operations->mtp_layer_count;
  }
  load.rotary_table_bytes = RotaryTableBytes(*job.model.architecture, *job.model.operations);
  counter.Edge(load);
  return load;
}

double ResidentBytes(const ReplicaLoad& load) {
  double bytes = load.embedding_resident_bytes + load.head_resident_bytes;
  for (const PassLayer& layer : load.layers) bytes += layer.count * layer.resident_bytes;
  return bytes;
}

}  // namespace sliceplan::planner
