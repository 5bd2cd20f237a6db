// Dense MLPs and mixtures of experts as matmuls.
#include <cstdint>

#include "server/transformer/layer_operations.h"

namespace sliceplan::transformer {
namespace {

// The activation reads the up projections and writes their product: three passes over the width when gated, two when
// not.
constexpr double kGatedPasses = 3;
constexpr double kPlainPasses = 2;

double ActivationPasses(bool gated) { return gated ? kGatedPasses : kPlainPasses; }

struct Mlp {
  const char* gate_name;
  const char* up_name;
  const char* down_name;
  WeightClass weight_class;
  int64_t in_dim = 0;
  int64_t ffn_dim = 0;
  bool gated = true;
  bool bias = false;
  int32_t expert_count = 0;
  double rows_per_token = 1;
};

void AddMlp(const Mlp& mlp, LayerOperations& operations) {
  const int64_t copies = mlp.expert_count > 0 ? mlp.expert_count : 1;
  WeightMatmul up;
  up.name = mlp.up_name;
  up.weight_class = mlp.weight_class;
  up.component = Component::kFeedForward;
  up.output = SavedTensor::kMlpUpGate;
  up.split = TensorSplit::kColumn;
  up.k = mlp.in_dim;
  up.n = mlp.ffn_dim;
  up.expert_count = mlp.expert_count;
  up.rows_per_token = mlp.rows_per_token;
  up.bias_count = mlp.bias ? copies * mlp.ffn_dim : 0;
  if (mlp.gated) {
    operations.matmuls.push_back(up);
    operations.matmuls.back().name = mlp.gate_name;
  }
  operations.matmuls.push_back(up);

  WeightMatmul down = up;
  down.name = mlp.down_name;
  down.output = SavedTensor::kMlpDown;
  down.split = TensorSplit::kRow;
  down.k = mlp.ffn_dim;
  down.n = mlp.in_dim;
  down.bias_count = mlp.bias ? copies * mlp.in_dim : 0;
  operations.matmuls.push_back(down);
  operations.split_elements_per_token +=
      ActivationPasses(mlp.gated) * mlp.rows_per_token * static_cast<double>(mlp.ffn_dim);
}

// A projection that every chip of the tensor group computes whole.
WeightMatmul Replicated(const char* name, WeightClass weight_class, Component component, int64_t k, int64_t n) {
  WeightMatmul matmul;
  matmul.name = name;
  matmul.weight_class = weight_class;
  matmul.component = component;
  matmul.k = k;
  matmul.n = n;
  return matmul;
}

void AddDense(const DenseFeedForward& dense, int64_t hidden_dim, LayerOperations& operations) {
  AddMlp({"gate_proj", "up_proj", "down_proj", WeightClass::kDenseFeedForward, hidden_dim, dense.ffn_dim, dense.gated,
          dense.bias},
         operations);
}

void AddExperts(const MixtureOfExperts& moe, int64_t hidden_dim, LayerOperations& operations) {
  WeightMatmul router = Replicated("router", WeightClass::kRouter, Component::kRouter, hidden_dim, moe.expert_count);
  router.output = SavedTensor::kRouterOut;
  router.low_precision_allowed = false;
  router.bias_count = (moe.router_bias ? moe.expert_count : 0) + (moe.router_correction_bias ? moe.expert_count : 0);
  operations.matmuls.push_back(router);

  const int64_t expert_dim = moe.latent_dim > 0 ? moe.latent_dim : hidden_dim;
  if (moe.latent_dim > 0) {
    operations.matmuls.push_back(Replicated("latent_down_proj", WeightClass::kSharedExpert, Component::kFeedForward,
                                            hidden_dim, moe.latent_dim));
    operations.matmuls.push_back(
        Replicated("latent_up_proj", WeightClass::kSharedExpert, Component::kFeedForward, moe.latent_dim, hidden_dim));
    operations.hidden_elements_per_token += 2 * static_cast<double>(moe.latent_dim);
  }
  AddMlp({"experts.gate_proj", "experts.up_proj", "experts.down_proj", WeightClass::kExpert, expert_dim,
          moe.expert_ffn_dim, moe.gated, moe.expert_bias, moe.expert_count, static_cast<double>(moe.experts_per_token)},
         operations);
  if (moe.shared_expert_count > 0) {
    const int64_t one = moe.shared_expert_ffn_dim > 0 ? moe.shared_expert_ffn_dim : moe.expert_ffn_dim;
    AddMlp({"shared_experts.gate_proj", "shared_experts.up_proj", "shared_experts.down_proj",
            WeightClass::kSharedExpert, hidden_dim, one * moe.shared_expert_count, moe.gated, false},
           operations);
    if (moe.shared_expert_gate) {
      operations.matmuls.push_back(
          Replicated("shared_expert_gate", WeightClass::kRouter, Component::kRouter, hidden_dim, 1));
      operations.matmuls.back().low_precision_allowed = false;
    }
  }
  if (moe.dense_residual_ffn_dim > 0) {
    AddMlp({"gate_proj", "up_proj", "down_proj", WeightClass::kDenseFeedForward, hidden_dim, moe.dense_residual_ffn_dim,
            moe.dense_residual_gated, false},
           operations);
  }
  operations.expert_count = moe.expert_count;
  operations.experts_per_token = moe.experts_per_token;
  operations.capacity_factor = moe.capacity_factor;
  operations.load_imbalance_ratio = moe.load_imbalance_ratio;
  operations.expert_ffn_dim = moe.expert_ffn_dim;
}

struct Adder {
  int64_t hidden_dim;
  LayerOperations& operations;
  void operator()(const NoFeedForward&) const {}
  void operator()(const DenseFeedForward& dense) const { AddDense(dense, hidden_dim, operations); }
  void operator()(const MixtureOfExperts& moe) const { AddExperts(moe, hidden_dim, operations); }
};

}  // namespace

void AddFeedForward(const FeedForward& feed_forward, int64_t hidden_dim, LayerOperations& operations) {
  std::visit(Adder{hidden_dim, operations}, feed_forward);
}

}  // namespace sliceplan::transformer
