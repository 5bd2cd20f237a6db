// Internal to sharded_matmul: one mesh axis at a time, what it splits before, during and after the local
// multiplication, and what a choice for every axis costs.
#ifndef SLICEPLAN_SERVER_ROOFLINE_MATMUL_PLAN_H_
#define SLICEPLAN_SERVER_ROOFLINE_MATMUL_PLAN_H_

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/roofline/sharded_matmul.h"

namespace sliceplan::roofline {

// A dimension of the matmul by number: batch dimensions first, then m, k, n. kWholeDim: the axis splits nothing.
inline constexpr int kWholeDim = -1;

struct MatmulDims {
  std::vector<int64_t> sizes;  // batch dimensions, m, k, n
  int BatchCount() const { return static_cast<int>(sizes.size()) - 3; }
  int M() const { return BatchCount(); }
  int K() const { return BatchCount() + 1; }
  int N() const { return BatchCount() + 2; }
};

// What one mesh axis splits in each operand as the request has it.
struct AxisRole {
  int lhs = kWholeDim;
  int rhs = kWholeDim;
  int output = kWholeDim;
  bool output_is_free = false;  // the request does not say
};

// What it splits in the operands of the local multiplication: nothing, one operand's own dimension, or the same
// dimension in both.
struct AxisChoice {
  int lhs = kWholeDim;
  int rhs = kWholeDim;
};

// Which of the four cases this axis is; 0 when it splits no operand.
int CaseOf(const AxisRole& role, const MatmulDims& dims);

// Choices worth weighing: one without communication is the only one where it exists.
std::vector<AxisChoice> ChoicesOf(const AxisRole& role, const MatmulDims& dims);

// Costs choices for all axes; keeps the laws of collectives that it has met.
class MatmulPlanner {
 public:
  MatmulPlanner(const ShardedMatmul& op, MatmulDims dims, const std::vector<MeshAxis>& mesh,
                std::vector<AxisRole> roles, const MeshNetwork& network, const hardware::AcceleratorSpec& accelerator);

  // nullopt when a dimension does not divide that way.
  absl::StatusOr<std::optional<MatmulPlan>> PlanOf(const std::vector<AxisChoice>& choices);

 private:
  struct Move;
  absl::Status Add(const Move& move, MatmulPlan& plan);
  void MoveOperand(MatmulOperand operand, const std::vector<AxisChoice>& choices, std::vector<Move>& moves) const;
  void MoveOutput(const std::vector<AxisChoice>& choices, std::vector<Move>& moves) const;
  bool SetLocalShape(const std::vector<AxisChoice>& choices, MatmulPlan& plan) const;
  // Product of the sizes of `axes`.
  double Product(AxisSet axes) const;
  std::string Sentence(const MatmulPlan& plan) const;

  const ShardedMatmul& op_;
  MatmulDims dims_;
  const std::vector<MeshAxis>& mesh_;
  std::vector<AxisRole> roles_;
  const MeshNetwork& network_;
  const hardware::AcceleratorSpec& accelerator_;
  MatmulBytes global_bytes_;
  std::map<std::pair<CollectiveKind, AxisSet>, CollectiveLaw> laws_;
};

}  // namespace sliceplan::roofline

#endif  // SLICEPLAN_SERVER_ROOFLINE_MATMUL_PLAN_H_
