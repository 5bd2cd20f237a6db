// Constant-state layers: projections as matmuls, the recurrence as a scan in its parallel (chunked) form.
//   Mamba-1: Gu, Dao 2023, the selective scan. Mamba-2: Dao, Gu 2024, the state-space dual form.
//   Gated delta rule: Yang, Kautz, Hatamizadeh 2024. Lightning attention: Qin et al. 2024; MiniMax-01, 2025.
#include <cstdint>

#include "server/transformer/layer_operations.h"
#include "server/transformer/linear_attention.h"

namespace sliceplan::transformer {
namespace {

constexpr double kActivationBytes = 2;  // bf16
// Selective scan: exp(dt*A), dt*B*x, the state update and the product with C, per channel and state; the count of the
// authors' own benchmark.
constexpr double kSelectiveScanFlops = 9;

WeightMatmul Projection(const char* name, SavedTensor output, TensorSplit split, int64_t k, int64_t n, int32_t units) {
  WeightMatmul matmul;
  matmul.name = name;
  matmul.weight_class = WeightClass::kAttention;
  matmul.component = Component::kAttentionProjections;
  matmul.output = output;
  matmul.split = split;
  matmul.k = k;
  matmul.n = n;
  matmul.split_unit_count = units;
  return matmul;
}

// Forward FLOPs per token of the recurrence. Chunked forms pay for the full square of each chunk.
double ScanFlops(const LinearAttention& attention, int64_t inner_dim) {
  const double heads = attention.value_head_count;
  const double key_dim = attention.key_head_dim;
  const double value_dim = attention.value_head_dim;
  const double chunk = ChunkSize(attention);
  switch (attention.kind) {
    case LinearAttention::Kind::kMamba1: return kSelectiveScanFlops * static_cast<double>(inner_dim) * key_dim;
    case LinearAttention::Kind::kMamba2:
      // C*B^T once a group, its product with x, the chunk's state and the product of state and C once a head.
      return 2 * chunk * (attention.key_head_count * key_dim + heads * value_dim) + 4 * heads * value_dim * key_dim;
    case LinearAttention::Kind::kGatedDelta:
    case LinearAttention::Kind::kKimiDelta:
      // K*K^T, Q*K^T and the triangular system applied to K; the same applied to V and the scores times V; state
      // update, state times K and state times Q.
      return heads * (2 * chunk * (3 * key_dim + 2 * value_dim) + 6 * key_dim * value_dim);
    case LinearAttention::Kind::kLightning:
      return heads * (2 * chunk * (key_dim + value_dim) + 4 * key_dim * value_dim);
  }
  return 0;
}

void AddMamba1(const LinearAttention& attention, int64_t hidden_dim, LayerOperations& operations) {
  const int64_t inner = attention.inner_dim;
  const int64_t state = attention.key_head_dim;
  const int64_t dt_rank = attention.dt_rank;
  auto& matmuls = operations.matmuls;
  matmuls.push_back(Projection("in_proj", SavedTensor::kQuery, TensorSplit::kColumn, hidden_dim, 2 * inner, 0));
  matmuls.back().bias_count = attention.projection_bias ? 2 * inner : 0;
  matmuls.push_back(Projection("x_proj", SavedTensor::kNone, TensorSplit::kRow, inner, dt_rank + 2 * state, 0));
  matmuls.push_back(Projection("dt_proj", SavedTensor::kNone, TensorSplit::kColumn, dt_rank, inner, 0));
  matmuls.back().bias_count = inner;
  matmuls.push_back(Projection("out_proj", SavedTensor::kOutProjection, TensorSplit::kRow, inner, hidden_dim, 0));
  matmuls.back().bias_count = attention.projection_bias ? hidden_dim : 0;
  operations.other_parameter_count += inner * state + inner;  // A_log, D
  if (attention.state_norms) operations.norm_parameter_count += dt_rank + 2 * state;
}

void AddMamba2(const LinearAttention& attention, int64_t hidden_dim, LayerOperations& operations) {
  const int64_t inner = attention.inner_dim;
  const int64_t heads = attention.value_head_count;
  const int64_t group_width = static_cast<int64_t>(attention.key_head_count) * attention.key_head_dim;
  const int64_t in_width = 2 * inner + 2 * group_width + heads;
  auto& matmuls = operations.matmuls;
  matmuls.push_back(Projection("in_proj", SavedTensor::kQuery, TensorSplit::kColumn, hidden_dim, in_width,
                               attention.value_head_count));
  matmuls.back().bias_count = attention.projection_bias ? in_width : 0;
  matmuls.push_back(Projection("out_proj", SavedTensor::kOutProjection, TensorSplit::kRow, inner, hidden_dim,
                               attention.value_head_count));
  matmuls.back().bias_count = attention.projection_bias ? hidden_dim : 0;
  operations.other_parameter_count += 3 * heads;  // dt_bias, A_log, D
  if (attention.output_norm) operations.norm_parameter_count += inner;
}

void AddGatedDelta(const LinearAttention& attention, int64_t hidden_dim, LayerOperations& operations) {
  const int64_t key_width = static_cast<int64_t>(attention.key_head_count) * attention.key_head_dim;
  const int64_t value_width = static_cast<int64_t>(attention.value_head_count) * attention.value_head_dim;
  const int64_t heads = attention.value_head_count;
  auto& matmuls = operations.matmuls;
  matmuls.push_back(Projection("in_proj_qkvz", SavedTensor::kQuery, TensorSplit::kColumn, hidden_dim,
                               2 * key_width + 2 * value_width, attention.key_head_count));
  matmuls.push_back(Projection("in_proj_ba", SavedTensor::kKeyValue, TensorSplit::kColumn, hidden_dim, 2 * heads,
                               attention.key_head_count));
  matmuls.push_back(Projection("out_proj", SavedTensor::kOutProjection, TensorSplit::kRow, value_width, hidden_dim,
                               attention.key_head_count));
  operations.other_parameter_count += 2 * heads;  // dt_bias, A_log
  if (attention.output_norm) operations.norm_parameter_count += attention.value_head_dim;
}

// Kimi Delta Attention: a decay per channel, which like the output gate comes from a projection of rank head_dim.
void AddKimiDelta(const LinearAttention& attention, int64_t hidden_dim, LayerOperations& operations) {
  const int64_t key_width = static_cast<int64_t>(attention.key_head_count) * attention.key_head_dim;
  const int64_t value_width = static_cast<int64_t>(attention.value_head_count) * attention.value_head_dim;
  const int32_t units = attention.key_head_count;
  auto& matmuls = operations.matmuls;
  matmuls.push_back(Projection("q_proj", SavedTensor::kQuery, TensorSplit::kColumn, hidden_dim, key_width, units));
  matmuls.push_back(Projection("k_proj", SavedTensor::kKeyValue, TensorSplit::kColumn, hidden_dim, key_width, units));
  matmuls.push_back(Projection("v_proj", SavedTensor::kKeyValue, TensorSplit::kColumn, hidden_dim, value_width, units));
  matmuls.push_back(
      Projection("f_a_proj", SavedTensor::kNone, TensorSplit::kNone, hidden_dim, attention.key_head_dim, 0));
  matmuls.push_back(
      Projection("f_b_proj", SavedTensor::kNone, TensorSplit::kColumn, attention.key_head_dim, key_width, units));
  matmuls.push_back(Projection("b_proj", SavedTensor::kNone, TensorSplit::kColumn, hidden_dim, units, units));
  matmuls.push_back(
      Projection("g_a_proj", SavedTensor::kNone, TensorSplit::kNone, hidden_dim, attention.value_head_dim, 0));
  matmuls.push_back(
      Projection("g_b_proj", SavedTensor::kNone, TensorSplit::kColumn, attention.value_head_dim, value_width, units));
  matmuls.push_back(
      Projection("o_proj", SavedTensor::kOutProjection, TensorSplit::kRow, value_width, hidden_dim, units));
  operations.other_parameter_count += units + key_width;  // A_log, dt_bias
  if (attention.output_norm) operations.norm_parameter_count += attention.value_head_dim;
}

void AddLightning(const LinearAttention& attention, int64_t hidden_dim, LayerOperations& operations) {
  const int64_t width = static_cast<int64_t>(attention.value_head_count) * attention.value_head_dim;
  const int32_t units = attention.value_head_count;
  auto& matmuls = operations.matmuls;
  matmuls.push_back(Projection("qkv_proj", SavedTensor::kQuery, TensorSplit::kColumn, hidden_dim, 3 * width, units));
  matmuls.push_back(Projection("output_gate", SavedTensor::kKeyValue, TensorSplit::kColumn, hidden_dim, width, units));
  matmuls.push_back(Projection("out_proj", SavedTensor::kOutProjection, TensorSplit::kRow, width, hidden_dim, units));
  if (attention.output_norm) operations.norm_parameter_count += width;
}

}  // namespace

int64_t ConvolutionChannels(const LinearAttention& attention) {
  if (attention.conv_width == 0) return 0;
  const int64_t key_width = static_cast<int64_t>(attention.key_head_count) * attention.key_head_dim;
  const int64_t value_width = static_cast<int64_t>(attention.value_head_count) * attention.value_head_dim;
  switch (attention.kind) {
    case LinearAttention::Kind::kMamba1: return attention.inner_dim;
    case LinearAttention::Kind::kMamba2: return attention.inner_dim + 2 * key_width;
    case LinearAttention::Kind::kGatedDelta:
    case LinearAttention::Kind::kKimiDelta: return 2 * key_width + value_width;
    case LinearAttention::Kind::kLightning: return value_width;
  }
  return 0;
}

int64_t InnerDim(const LinearAttention& attention) {
  if (attention.kind == LinearAttention::Kind::kMamba1 || attention.kind == LinearAttention::Kind::kMamba2) {
    return attention.inner_dim;
  }
  return static_cast<int64_t>(attention.value_head_count) * attention.value_head_dim;
}

int64_t RecurrentStateElements(const LinearAttention& attention) {
  if (attention.kind == LinearAttention::Kind::kMamba1) {
    return static_cast<int64_t>(attention.inner_dim) * attention.key_head_dim;
  }
  return static_cast<int64_t>(attention.value_head_count) * attention.key_head_dim * attention.value_head_dim;
}

int64_t ConvolutionStateElements(const LinearAttention& attention) {
  return attention.conv_width > 0 ? ConvolutionChannels(attention) * (attention.conv_width - 1) : 0;
}

int32_t ChunkSize(const LinearAttention& attention) {
  if (attention.chunk_size > 0) return attention.chunk_size;
  switch (attention.kind) {
    case LinearAttention::Kind::kGatedDelta:
    case LinearAttention::Kind::kKimiDelta: return 64;
    case LinearAttention::Kind::kMamba1:
    case LinearAttention::Kind::kMamba2: return 128;
    case LinearAttention::Kind::kLightning: return 256;
  }
  return 1;
}

void AddLinearAttention(const LinearAttention& attention, int64_t hidden_dim, LayerOperations& operations) {
  switch (attention.kind) {
    case LinearAttention::Kind::kMamba1: AddMamba1(attention, hidden_dim, operations); break;
    case LinearAttention::Kind::kMamba2: AddMamba2(attention, hidden_dim, operations); break;
    case LinearAttention::Kind::kGatedDelta: AddGatedDelta(attention, hidden_dim, operations); break;
    case LinearAttention::Kind::kKimiDelta: AddKimiDelta(attention, hidden_dim, operations); break;
    case LinearAttention::Kind::kLightning: AddLightning(attention, hidden_dim, operations); break;
  }
  const int64_t channels = ConvolutionChannels(attention);
  operations.other_parameter_count += channels * (attention.conv_width + (attention.conv_bias ? 1 : 0));

  const int64_t inner = InnerDim(attention);
  operations.has_scan = true;
  // One multiply-add per tap and channel.
  operations.scan.flops_per_token =
      ScanFlops(attention, inner) + 2.0 * static_cast<double>(channels) * attention.conv_width;
  // The convolution reads and writes its channels, the recurrence reads them and writes its output, the gated norm
  // reads output and gate and writes once.
  const double inputs = static_cast<double>(channels > 0 ? channels : 3 * inner);
  operations.scan.bytes_per_token =
      kActivationBytes * ((channels > 0 ? 3 : 1) * inputs + 4 * static_cast<double>(inner));
  operations.scan.state_elements = RecurrentStateElements(attention);
  operations.scan.convolution_state_elements = ConvolutionStateElements(attention);
}

}  // namespace sliceplan::transformer
