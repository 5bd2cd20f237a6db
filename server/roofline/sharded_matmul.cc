#include "server/roofline/sharded_matmul.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/roofline/matmul_plan.h"

namespace sliceplan::roofline {
namespace {

using hardware::Violation;

// Combinations of choices weighed exhaustively; beyond, axes are improved one at a time.
constexpr size_t kMaxCombinations = 4096;
constexpr int64_t kMaxDim = int64_t{1} << 40;

// Names of an operand's dimensions, their sizes and their numbers in MatmulDims.
struct OperandDims {
  std::vector<std::string> names;
  std::vector<int64_t> sizes;
  std::vector<int> numbers;
};

OperandDims DimsOf(const MatmulDims& dims, int first, int second) {
  const auto name = [&](int number) -> std::string {
    if (number == dims.M()) return "m";
    if (number == dims.K()) return "k";
    if (number == dims.N()) return "n";
    return absl::StrCat("b", number);
  };
  OperandDims result;
  for (int i = 0; i < dims.BatchCount(); ++i) result.numbers.push_back(i);
  result.numbers.push_back(first);
  result.numbers.push_back(second);
  for (const int number : result.numbers) {
    result.names.push_back(name(number));
    result.sizes.push_back(dims.sizes[static_cast<size_t>(number)]);
  }
  return result;
}

void CheckSizes(const ShardedMatmul& op, const std::string& field, std::vector<Violation>& violations) {
  const size_t violations_before = violations.size();
  const auto check = [&](int64_t size, const std::string& name) {
    if (size >= 1 && size <= kMaxDim) return;
    violations.push_back({absl::StrCat(field, ".", name), absl::StrCat("must be from 1 to 2^40, not ", size),
                          "MATMUL_DIMENSION_OUT_OF_RANGE"});
  };
  double batch = 1;
  for (size_t i = 0; i < op.batch_dims.size(); ++i) {
    check(op.batch_dims[i], absl::StrCat("batch_dims[", i, "]"));
    batch *= static_cast<double>(op.batch_dims[i]);
  }
  check(op.m, "m");
  check(op.k, "k");
  check(op.n, "n");
  if (violations.size() > violations_before) return;
  const double m = static_cast<double>(op.m);
  const double k = static_cast<double>(op.k);
  const double n = static_cast<double>(op.n);
  if (batch * std::max({m * k, k * n, m * n}) > kMaxOperandElements) {
    violations.push_back({field, "each operand may have at most 2^58 elements", "MATMUL_TOO_LARGE"});
  }
}

// A dimension that both operands have must be split in the same order, or shards of the same index would not match.
void CheckOrder(const OperandDims& lhs_dims, const Sharding& lhs, const OperandDims& rhs_dims, const Sharding& rhs,
                const std::string& field, std::vector<Violation>& violations) {
  for (size_t i = 0; i < lhs.size(); ++i) {
    for (size_t j = 0; j < rhs.size(); ++j) {
      if (lhs_dims.numbers[i] != rhs_dims.numbers[j]) continue;
      std::vector<int> lhs_common;
      std::vector<int> rhs_common;
      const auto contains = [](const std::vector<int>& axes, int axis) {
        return std::find(axes.begin(), axes.end(), axis) != axes.end();
      };
      for (const int axis : lhs[i]) {
        if (contains(rhs[j], axis)) lhs_common.push_back(axis);
      }
      for (const int axis : rhs[j]) {
        if (contains(lhs[i], axis)) rhs_common.push_back(axis);
      }
      if (lhs_common == rhs_common) continue;
      violations.push_back({field + ".rhs_sharding",
                            absl::StrCat("dimension ", lhs_dims.names[i],
                                         " is split over the same mesh axes as in lhs, but in another order"),
                            "MESH_AXES_ORDER_DIFFERS"});
    }
  }
}

void SetRoles(const OperandDims& dims, const Sharding& sharding, const std::vector<MeshAxis>& mesh,
              int AxisRole::*member, std::vector<AxisRole>& roles) {
  for (size_t i = 0; i < sharding.size(); ++i) {
    for (const int axis : sharding[i]) {
      const size_t index = static_cast<size_t>(axis);
      if (mesh[index].size > 1) roles[index].*member = dims.numbers[i];
    }
  }
}

// A request with names and sizes checked: what each mesh axis does.
struct ResolvedMatmul {
  MatmulDims dims;
  std::vector<AxisRole> roles;
};

ResolvedMatmul Resolve(const ShardedMatmul& op, const std::vector<MeshAxis>& mesh, const std::string& field,
                       std::vector<Violation>& violations) {
  CheckSizes(op, field, violations);
  ResolvedMatmul resolved;
  MatmulDims& dims = resolved.dims;
  dims.sizes = op.batch_dims;
  dims.sizes.insert(dims.sizes.end(), {op.m, op.k, op.n});
  const OperandDims lhs_dims = DimsOf(dims, dims.M(), dims.K());
  const OperandDims rhs_dims = DimsOf(dims, dims.K(), dims.N());
  const OperandDims output_dims = DimsOf(dims, dims.M(), dims.N());
  const auto resolve = [&](const std::vector<DimensionSharding>& entries, const OperandDims& operand,
                           const char* member) {
    return ResolveSharding(entries, operand.names, operand.sizes, mesh, absl::StrCat(field, ".", member), violations);
  };
  const Sharding lhs = resolve(op.lhs_sharding, lhs_dims, "lhs_sharding");
  const Sharding rhs = resolve(op.rhs_sharding, rhs_dims, "rhs_sharding");
  const Sharding output =
      resolve(op.output_sharding.value_or(std::vector<DimensionSharding>{}), output_dims, "output_sharding");
  CheckOrder(lhs_dims, lhs, rhs_dims, rhs, field, violations);
  resolved.roles.resize(mesh.size());
  SetRoles(lhs_dims, lhs, mesh, &AxisRole::lhs, resolved.roles);
  SetRoles(rhs_dims, rhs, mesh, &AxisRole::rhs, resolved.roles);
  SetRoles(output_dims, output, mesh, &AxisRole::output, resolved.roles);
  for (AxisRole& role : resolved.roles) role.output_is_free = !op.output_sharding.has_value();
  return resolved;
}

// What makes plans comparable without keeping them.
struct Weighed {
  double network_seconds;
  double lower_seconds;
  double upper_seconds;
  std::vector<AxisChoice> choices;
};

bool MovesLess(const Weighed& a, const Weighed& b) {
  return std::tie(a.network_seconds, a.lower_seconds, a.upper_seconds) <
         std::tie(b.network_seconds, b.lower_seconds, b.upper_seconds);
}

bool IsFaster(const Weighed& a, const Weighed& b) {
  return std::tie(a.lower_seconds, a.network_seconds, a.upper_seconds) <
         std::tie(b.lower_seconds, b.network_seconds, b.upper_seconds);
}

class Weigher {
 public:
  Weigher(MatmulPlanner& planner, std::vector<std::vector<AxisChoice>> options)
      : planner_(planner), options_(std::move(options)) {}

  absl::StatusOr<std::vector<Weighed>> Weigh() {
    size_t combinations = 1;
    for (const auto& choices : options_) combinations = std::min(combinations * choices.size(), kMaxCombinations + 1);
    absl::Status status = combinations <= kMaxCombinations ? WeighAll() : Improve();
    if (!status.ok()) return status;
    std::stable_sort(weighed_.begin(), weighed_.end(), MovesLess);
    return std::move(weighed_);
  }

 private:
  absl::Status Visit(const std::vector<AxisChoice>& choices) {
    std::vector<std::pair<int, int>> key;
    for (const AxisChoice& choice : choices) key.emplace_back(choice.lhs, choice.rhs);
    if (!seen_.insert(std::move(key)).second) return absl::OkStatus();
    absl::StatusOr<std::optional<MatmulPlan>> plan = planner_.PlanOf(choices);
    if (!plan.ok()) return plan.status();
    if (plan->has_value()) {
      const MatmulPlan& found = **plan;
      weighed_.push_back({found.network_seconds, found.bound.lower_seconds, found.bound.upper_seconds, choices});
    }
    return absl::OkStatus();
  }

  absl::Status WeighAll() {
    std::vector<size_t> digits(options_.size(), 0);
    std::vector<AxisChoice> choices(options_.size());
    while (true) {
      for (size_t i = 0; i < options_.size(); ++i) choices[i] = options_[i][digits[i]];
      if (absl::Status status = Visit(choices); !status.ok()) return status;
      size_t at = 0;
      while (at < digits.size() && ++digits[at] == options_[at].size()) digits[at++] = 0;
      if (at == digits.size()) return absl::OkStatus();
    }
  }

  // Starts with every axis whole, which always divides, and changes one axis at a time while that moves less.
  absl::Status Improve() {
    std::vector<AxisChoice> current;
    for (const auto& choices : options_) current.push_back(choices.back());
    if (absl::Status status = Visit(current); !status.ok()) return status;
    for (bool improved = true; improved;) {
      improved = false;
      for (size_t i = 0; i < options_.size(); ++i) {
        for (const AxisChoice& choice : options_[i]) {
          std::vector<AxisChoice> tried = current;
          tried[i] = choice;
          const size_t before = weighed_.size();
          if (absl::Status status = Visit(tried); !status.ok()) return status;
          const auto best = std::min_element(weighed_.begin(), weighed_.end(), MovesLess);
          if (weighed_.size() > before && best == weighed_.end() - 1) {
            current = std::move(tried);
            improved = true;
          }
        }
      }
    }
    return absl::OkStatus();
  }

  MatmulPlanner& planner_;
  std::vector<std::vector<AxisChoice>> options_;
  std::set<std::vector<std::pair<int, int>>> seen_;
  std::vector<Weighed> weighed_;
};

std::vector<DimensionSharding> Renamed(const std::vector<DimensionSharding>& entries,
                                       const std::vector<std::pair<std::string, std::string>>& names) {
  std::vector<DimensionSharding> result = entries;
  for (DimensionSharding& entry : result) {
    for (const auto& [from, to] : names) {
      if (entry.dimension == from) {
        entry.dimension = to;
        break;
      }
    }
  }
  return result;
}

}  // namespace

void CheckShardedMatmul(const ShardedMatmul& op, const std::vector<MeshAxis>& mesh, const std::string& field,
                        std::vector<Violation>& violations) {
  Resolve(op, mesh, field, violations);
}

absl::StatusOr<ShardedMatmulAnalysis> AnalyzeShardedMatmul(const ShardedMatmul& op, const std::vector<MeshAxis>& mesh,
                                                           const MeshNetwork& network,
                                                           const hardware::AcceleratorSpec& accelerator,
                                                           const std::string& field,
                                                           std::vector<Violation>& violations) {
  const size_t violations_before = violations.size();
  const ResolvedMatmul resolved = Resolve(op, mesh, field, violations);
  if (violations.size() > violations_before) {
    return absl::InvalidArgumentError(violations[violations_before].description);
  }
  ShardedMatmulAnalysis analysis;
  std::vector<std::vector<AxisChoice>> options;
  for (const AxisRole& role : resolved.roles) {
    analysis.matmul_case = std::max(analysis.matmul_case, CaseOf(role, resolved.dims));
    options.push_back(ChoicesOf(role, resolved.dims));
  }
  analysis.needs_output_sharding = analysis.matmul_case >= 2;

  MatmulPlanner planner(op, resolved.dims, mesh, resolved.roles, network, accelerator);
  absl::StatusOr<std::vector<Weighed>> weighed = Weigher(planner, std::move(options)).Weigh();
  if (!weighed.ok()) return weighed.status();
  if (weighed->empty()) {
    violations.push_back({field, "no order of collectives divides the dimensions", "SHARDING_NOT_DIVISIBLE"});
    return absl::InvalidArgumentError(violations.back().description);
  }
  std::stable_sort(weighed->begin() + 1, weighed->end(), IsFaster);
  for (size_t i = 0; i < std::min(weighed->size(), kMaxAlternatives + 1); ++i) {
    absl::StatusOr<std::optional<MatmulPlan>> plan = planner.PlanOf((*weighed)[i].choices);
    if (!plan.ok()) return plan.status();
    if (i == 0) {
      analysis.plan = **std::move(plan);
    } else {
      analysis.alternatives.push_back(**std::move(plan));
    }
  }
  return analysis;
}

BackwardMatmuls BackwardOf(const ShardedMatmul& op) {
  const std::vector<DimensionSharding> output = op.output_sharding.value_or(std::vector<DimensionSharding>{});
  BackwardMatmuls backward;
  backward.lhs_gradient = op;
  backward.lhs_gradient.k = op.n;
  backward.lhs_gradient.n = op.k;
  backward.lhs_gradient.lhs_type = op.output_type;
  backward.lhs_gradient.output_type = op.lhs_type;
  backward.lhs_gradient.lhs_sharding = Renamed(output, {{"n", "k"}});
  backward.lhs_gradient.rhs_sharding = Renamed(op.rhs_sharding, {{"n", "k"}, {"k", "n"}});
  backward.lhs_gradient.output_sharding = Renamed(op.lhs_sharding, {{"k", "n"}});

  backward.rhs_gradient = op;
  backward.rhs_gradient.m = op.k;
  backward.rhs_gradient.k = op.m;
  backward.rhs_gradient.rhs_type = op.output_type;
  backward.rhs_gradient.output_type = op.rhs_type;
  backward.rhs_gradient.lhs_sharding = Renamed(op.lhs_sharding, {{"k", "m"}, {"m", "k"}});
  backward.rhs_gradient.rhs_sharding = Renamed(output, {{"m", "k"}});
  backward.rhs_gradient.output_sharding = Renamed(op.rhs_sharding, {{"k", "m"}});
  return backward;
}

GatherOrReduce GatherOrReduceThresholds(double k, double alpha) {
  // T1 = max(2BDF / C, 2DF / W) against T2 = max(2BDF / (X C), 4BF / W).
  constexpr double kAllReducePasses = 2;
  return {.gather_network_bound_below_rows = alpha,
          .reduce_compute_bound_below_shards = k / (kAllReducePasses * alpha),
          .reduce_moves_less_above_k_over_rows = kAllReducePasses,
          .reduce_faster_above_k = kAllReducePasses * alpha};
}

double CriticalContractingDim(double flops_per_second, double shard_count, const CollectiveLaw& all_reduce) {
  return shard_count * flops_per_second * all_reduce.pipelined_seconds_per_byte;
}

}  // namespace sliceplan::roofline
