// One operation on a chip or a mesh: what a chip does, how long, what binds. Behind AnalysisService.AnalyzeOperation.
#ifndef SLICEPLAN_SERVER_ROOFLINE_ANALYZE_OPERATION_H_
#define SLICEPLAN_SERVER_ROOFLINE_ANALYZE_OPERATION_H_

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "server/hardware/slice.h"
#include "server/hardware/violation.h"
#include "server/roofline/attention.h"
#include "server/roofline/bound.h"
#include "server/roofline/elementwise.h"
#include "server/roofline/mesh_placement.h"
#include "server/roofline/sharded_matmul.h"

namespace sliceplan::roofline {

// Shares of the peaks that a runtime reaches, each in (0, 1].
struct OperationEfficiency {
  double compute_ratio = 1;
  double hbm_ratio = 1;
  double network_ratio = 1;
  double launch_seconds = 0;  // per operation, not negative
};

struct OperationQuestion {
  hardware::Slice slice;
  // Logical axes, slowest first. Empty: one chip does everything.
  std::vector<MeshAxis> mesh_axes;
  // Sizes are those of the whole operation. The mesh spreads attention over sequences, then KV heads, then the query
  // heads that share one (whose keys and values are then copied), and elementwise work over elements.
  std::variant<ShardedMatmul, AttentionOp, Elementwise> operation;
  // Absent: expected_seconds is the lower bound.
  std::optional<OperationEfficiency> efficiency;
};

struct RooflinePoint {
  double intensity_flops_per_byte = 0;
  double flops_per_second = 0;
};

// All of one chip. Numbers are finite and not negative.
struct OperationAnalysis {
  double flops = 0;  // without padding
  double hbm_bytes = 0;
  double intensity_flops_per_byte = 0;  // 0 when nothing moves
  double compute_seconds = 0;           // the slower of both units at peak, without padding
  double matrix_seconds = 0;            // padding included
  double vector_seconds = 0;
  double hbm_seconds = 0;
  double network_seconds = 0;
  // Everything overlaps, nothing does (without padding).
  Bound bound;
  // Padded work at the efficiencies; compute and HBM overlap, collectives do not.
  double expected_seconds = 0;
  double padding_ratio = 0;  // share of the matrix unit's work that is padding, 0 to below 1
  // Matmul only: rows per chip from which the matmul is bound by compute, weights alone counted, and with activations.
  std::optional<double> critical_batch;
  std::optional<double> exact_critical_batch;
  int matmul_case = 0;
  bool needs_output_sharding = false;
  // The slices' groups of each mesh axis, as placed.
  std::vector<hardware::Group> mesh_groups;
  // The plan used (its collectives in order, its local shape) and the others. Empty unless a matmul.
  std::optional<MatmulPlan> plan;
  std::vector<MatmulPlan> alternatives;
  // The chip's roofline for the type that the operation computes in, ascending, with its knee and this operation.
  std::vector<RooflinePoint> roofline;
};

// Violations are appended under "mesh_axes", "matmul", "attention", "elementwise"; INVALID_ARGUMENT then.
// FAILED_PRECONDITION names a figure of the chip that is not public and that the question needs.
absl::StatusOr<OperationAnalysis> AnalyzeOperation(const OperationQuestion& question,
                                                   std::vector<hardware::Violation>& violations);

}  // namespace sliceplan::roofline

#endif  // SLICEPLAN_SERVER_ROOFLINE_ANALYZE_OPERATION_H_
