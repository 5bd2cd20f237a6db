// A matmul whose operands are split over a mesh: which collectives it needs and in which order they are cheapest. The
// four cases of "How To Scale Your Model", chapter 3:
//   1  the contraction is whole on every chip: no communication
//   2  it is split in one operand only (or in both over different axes): gather, or slice the other one and reduce
//   3  it is split alike in both: partial sums, reduced at the end
//   4  both operands split a dimension of the result over the same axis: one of them must be gathered
#ifndef SLICEPLAN_SERVER_ROOFLINE_SHARDED_MATMUL_H_
#define SLICEPLAN_SERVER_ROOFLINE_SHARDED_MATMUL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/hardware/accelerator.h"
#include "server/hardware/data_type.h"
#include "server/hardware/violation.h"
#include "server/roofline/bound.h"
#include "server/roofline/matmul.h"
#include "server/roofline/mesh_network.h"
#include "server/roofline/mesh_placement.h"
#include "server/roofline/sharding.h"

namespace sliceplan::roofline {

// [batch_dims, m, k] x [batch_dims, k, n] -> [batch_dims, m, n], sizes of the whole operation. Dimensions are named
// "b0", "b1", ..., "m", "k", "n".
struct ShardedMatmul {
  std::vector<int64_t> batch_dims;
  int64_t m = 1;
  int64_t k = 1;
  int64_t n = 1;
  hardware::DataType lhs_type = hardware::DataType::kBf16;
  hardware::DataType rhs_type = hardware::DataType::kBf16;
  hardware::DataType output_type = hardware::DataType::kBf16;
  std::optional<hardware::DataType> compute = std::nullopt;
  std::vector<DimensionSharding> lhs_sharding;
  std::vector<DimensionSharding> rhs_sharding;
  // Absent: whatever the operands give, with partial sums reduced to copies. Present and empty: a whole copy on every
  // chip.
  std::optional<std::vector<DimensionSharding>> output_sharding = std::nullopt;
};

enum class MatmulOperand { kLhs, kRhs, kOutput };

struct InsertedCollective {
  CollectiveKind kind = CollectiveKind::kAllGather;
  MatmulOperand operand = MatmulOperand::kLhs;
  std::vector<int> axes;  // of the mesh, ascending
  double bytes = 0;       // as CollectiveLaw counts them
  double seconds = 0;
};

// One way to run it.
struct MatmulPlan {
  std::vector<InsertedCollective> collectives;  // in the order that they run
  std::vector<int64_t> local_batch_dims;
  Matmul local;             // what one chip multiplies
  ResourceSeconds seconds;  // of one chip, collectives included
  double network_seconds = 0;
  Bound bound;
  std::string sentence;  // "all-gather lhs over X, then multiply"
};

struct ShardedMatmulAnalysis {
  // The highest case among the mesh axes that the operation uses; 0 when it uses none.
  int matmul_case = 0;
  // True when the operands alone do not say how the result is sharded: the contraction is split, and partial sums can
  // become copies or shards. JAX's explicit mode asks for an output sharding then.
  bool needs_output_sharding = false;
  // Least network time; ties go to the smaller lower bound, then to the smaller sum.
  MatmulPlan plan;
  // The others, by lower bound, then by network time: a plan that moves more can still be faster when it keeps chips
  // from repeating each other's work. At most kMaxAlternatives.
  std::vector<MatmulPlan> alternatives;
};
inline constexpr size_t kMaxAlternatives = 8;

// Sizes: each dimension 1 to 2^40, each operand at most kMaxOperandElements. Appends violations of `field`.lhs_sharding
// and so on ("matmul" in AnalyzeOperation).
inline constexpr double kMaxOperandElements = 288230376151711744.0;  // 2^58
void CheckShardedMatmul(const ShardedMatmul& op, const std::vector<MeshAxis>& mesh, const std::string& field,
                        std::vector<hardware::Violation>& violations);

// Checks as above and returns INVALID_ARGUMENT when something is wrong. FAILED_PRECONDITION names a missing figure of
// the chip or its network.
absl::StatusOr<ShardedMatmulAnalysis> AnalyzeShardedMatmul(const ShardedMatmul& op, const std::vector<MeshAxis>& mesh,
                                                           const MeshNetwork& network,
                                                           const hardware::AcceleratorSpec& accelerator,
                                                           const std::string& field,
                                                           std::vector<hardware::Violation>& violations);

// The two matmuls of the backward pass: the gradient of lhs from that of the output and rhs, and the gradient of rhs.
// Their outputs are sharded as the operand is, and collectives turn into their transposes (BackwardOf). An absent
// output sharding counts as whole.
struct BackwardMatmuls {
  ShardedMatmul lhs_gradient;  // [m, n] x [n, k] -> [m, k]
  ShardedMatmul rhs_gradient;  // [k, m] x [m, n] -> [k, n]
};
BackwardMatmuls BackwardOf(const ShardedMatmul& op);

// Weights [D, F] split over D in X shards, B rows: gather the weights first, or multiply shards and reduce the result.
// Book, chapter 3, question 4. `alpha` = C / W_ici of the ring that both use.
struct GatherOrReduce {
  double gather_network_bound_below_rows = 0;      // B below alpha: the gather is slower than the matmul
  double reduce_compute_bound_below_shards = 0;    // X below D / (2 alpha): the matmul is slower than the reduction
  double reduce_moves_less_above_k_over_rows = 0;  // D / B above 2
  double reduce_faster_above_k = 0;                // many rows: D above 2 alpha
};
GatherOrReduce GatherOrReduceThresholds(double k, double alpha);

// The contraction that two-byte partial sums need so that `shard_count` chips multiply longer than they reduce:
// 2 m k n / (shards C) > 2 m n x law. Book, chapter 1: two chips, k > 2 C / W.
double CriticalContractingDim(double flops_per_second, double shard_count, const CollectiveLaw& all_reduce);

}  // namespace sliceplan::roofline

#endif  // SLICEPLAN_SERVER_ROOFLINE_SHARDED_MATMUL_H_
