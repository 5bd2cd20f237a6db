#include "server/roofline/analyze_operation.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/roofline/critical_batch.h"
#include "server/roofline/memory_tiers.h"
#include "server/roofline/mesh_network.h"
#include "server/roofline/op_cost.h"

namespace sliceplan::roofline {
namespace {

using hardware::AcceleratorSpec;
using hardware::DataType;
using hardware::Violation;

// The curve runs over this many doublings of intensity on both sides of the knee, further when the operation lies
// outside.
constexpr int kCurveDoublings = 6;

absl::Status FirstViolation(const std::vector<Violation>& violations, size_t before) {
  return absl::InvalidArgumentError(violations[before].description);
}

void CheckAtLeast(int64_t least, int64_t value, const std::string& field, std::vector<Violation>& violations) {
  if (value >= least) return;
  violations.push_back({field, absl::StrCat("must be at least ", least, ", not ", value), "COUNT_OUT_OF_RANGE"});
}

int64_t MeshChips(const std::vector<MeshAxis>& axes) {
  int64_t chips = 1;
  for (const MeshAxis& axis : axes) chips *= axis.size;
  return chips;
}

// Adds the time and the shape of the curve once the work of one chip is known. `peak`: FLOPs per second of the unit
// that the operation runs on; unset when that is not public.
void AddCurve(std::optional<double> peak, const AcceleratorSpec& accelerator, OperationAnalysis& analysis) {
  if (!peak || *peak <= 0 || !accelerator.hbm_bytes_per_second || *accelerator.hbm_bytes_per_second <= 0) return;
  const double bytes_per_second = *accelerator.hbm_bytes_per_second;
  const double knee = *peak / bytes_per_second;
  std::vector<double> intensities;
  for (int i = -kCurveDoublings; i <= kCurveDoublings; ++i) intensities.push_back(std::ldexp(knee, i));
  if (analysis.intensity_flops_per_byte > 0) intensities.push_back(analysis.intensity_flops_per_byte);
  std::sort(intensities.begin(), intensities.end());
  intensities.erase(std::unique(intensities.begin(), intensities.end()), intensities.end());
  for (const double intensity : intensities) {
    analysis.roofline.push_back({intensity, std::min(*peak, intensity * bytes_per_second)});
  }
}

// `padded_over_useful`: work of the matrix unit with padding over the work without, at least 1.
void AddTimes(const OpCost& cost, const ResourceSeconds& seconds, double padded_over_useful,
              const std::optional<OperationEfficiency>& efficiency, OperationAnalysis& analysis) {
  analysis.flops = cost.TotalFlops();
  analysis.hbm_bytes = cost.hbm_bytes;
  analysis.intensity_flops_per_byte = cost.Intensity();
  analysis.compute_seconds = std::max(seconds.matrix_unit, seconds.vector_unit);
  analysis.matrix_seconds = seconds.matrix_unit * padded_over_useful;
  analysis.vector_seconds = seconds.vector_unit;
  analysis.hbm_seconds = seconds.hbm;
  analysis.padding_ratio = 1 - 1 / padded_over_useful;
  analysis.bound = BoundOf(seconds);
  if (!efficiency) {
    analysis.expected_seconds = analysis.bound.lower_seconds;
    return;
  }
  const double compute_seconds = std::max(analysis.matrix_seconds, seconds.vector_unit) / efficiency->compute_ratio;
  const double hbm_seconds = seconds.hbm / efficiency->hbm_ratio;
  analysis.expected_seconds = std::max(compute_seconds, hbm_seconds) +
                              analysis.network_seconds / efficiency->network_ratio + efficiency->launch_seconds;
}

absl::Status AnalyzeMatmul(const OperationQuestion& question, const ShardedMatmul& op, OperationAnalysis& analysis,
                           std::vector<Violation>& violations) {
  const AcceleratorSpec& accelerator = question.slice.accelerator;
  const SliceNetwork network(question.slice, analysis.mesh_groups);
  absl::StatusOr<ShardedMatmulAnalysis> sharded =
      AnalyzeShardedMatmul(op, question.mesh_axes, network, accelerator, "matmul", violations);
  if (!sharded.ok()) return sharded.status();
  analysis.matmul_case = sharded->matmul_case;
  analysis.needs_output_sharding = sharded->needs_output_sharding;
  analysis.network_seconds = sharded->plan.network_seconds;
  const Matmul& local = sharded->plan.local;
  const double padded =
      accelerator.mxu_dim && *accelerator.mxu_dim > 0 ? PaddedOverUseful(local, *accelerator.mxu_dim) : 1;
  AddTimes(CostOf(local), sharded->plan.seconds, padded, question.efficiency, analysis);

  const std::optional<double> peak = accelerator.MatmulRate(local.Compute());
  if (peak && accelerator.hbm_bytes_per_second && *accelerator.hbm_bytes_per_second > 0) {
    const double bytes_per_second = *accelerator.hbm_bytes_per_second;
    analysis.critical_batch = CriticalBatch(*peak, bytes_per_second, hardware::BytesPerElement(local.rhs));
    analysis.exact_critical_batch = ExactCriticalBatch(local, *peak, bytes_per_second);
  }
  AddCurve(peak, accelerator, analysis);
  analysis.plan = std::move(sharded->plan);
  analysis.alternatives = std::move(sharded->alternatives);
  return absl::OkStatus();
}

void CheckAttention(const AttentionOp& op, std::vector<Violation>& violations) {
  CheckAtLeast(1, op.batch_size, "attention.batch_size", violations);
  CheckAtLeast(1, op.query_length, "attention.query_length", violations);
  CheckAtLeast(1, op.key_length, "attention.key_length", violations);
  CheckAtLeast(1, op.query_head_count, "attention.query_head_count", violations);
  CheckAtLeast(1, op.kv_head_count, "attention.kv_head_count", violations);
  CheckAtLeast(1, op.head_dim, "attention.head_dim", violations);
  if (op.kv_head_count >= 1 && op.query_head_count % op.kv_head_count != 0) {
    violations.push_back(
        {"attention.query_head_count",
         absl::StrCat(op.query_head_count, " query heads do not share ", op.kv_head_count, " KV heads evenly"),
         "HEADS_NOT_DIVISIBLE"});
  }
  if (op.mask == AttentionMask::kCausal && op.query_length > op.key_length) {
    violations.push_back({"attention.query_length",
                          absl::StrCat("under a causal mask the ", op.query_length,
                                       " queries are the last of the keys, of which there are ", op.key_length),
                          "QUERY_LENGTH_ABOVE_KEY_LENGTH"});
  }
  const double longest = static_cast<double>(std::max(op.query_length, op.key_length));
  const double width =
      static_cast<double>(op.query_head_count) * (op.materializes_scores ? longest : static_cast<double>(op.head_dim));
  if (static_cast<double>(op.batch_size) * longest * width > kMaxOperandElements) {
    violations.push_back(
        {"attention", "queries, keys and scores may each have at most 2^58 elements", "ATTENTION_TOO_LARGE"});
  }
}

// One chip's share: sequences first, then KV heads, then the query heads of one KV head.
absl::Status SplitAttention(int64_t chips, AttentionOp& op, std::vector<Violation>& violations) {
  int64_t left = chips;
  const auto take = [&left](int64_t& count) {
    const int64_t parts = std::gcd(count, left);
    count /= parts;
    left /= parts;
    return parts;
  };
  take(op.batch_size);
  op.query_head_count /= take(op.kv_head_count);
  int64_t queries_per_kv_head = op.query_head_count / op.kv_head_count;
  op.query_head_count /= take(queries_per_kv_head);  // keys and values copied
  if (left == 1) return absl::OkStatus();
  violations.push_back({"mesh_axes",
                        absl::StrCat("the ", chips, " chips of the mesh do not divide the sequences and heads: ", left,
                                     " of them are left over"),
                        "ATTENTION_NOT_DIVISIBLE"});
  return absl::InvalidArgumentError(violations.back().description);
}

absl::Status AnalyzeAttention(const OperationQuestion& question, AttentionOp op, OperationAnalysis& analysis,
                              std::vector<Violation>& violations) {
  const size_t violations_before = violations.size();
  CheckAttention(op, violations);
  if (violations.size() > violations_before) return FirstViolation(violations, violations_before);
  if (absl::Status status = SplitAttention(MeshChips(question.mesh_axes), op, violations); !status.ok()) return status;

  const AcceleratorSpec& accelerator = question.slice.accelerator;
  const OpCost cost = CostOf(op);
  const absl::StatusOr<ResourceSeconds> seconds = SecondsOf(cost, accelerator);
  if (!seconds.ok()) return seconds.status();
  const double padded =
      accelerator.mxu_dim && *accelerator.mxu_dim > 0 ? PaddedOverUseful(op, *accelerator.mxu_dim) : 1;
  AddTimes(cost, *seconds, padded, question.efficiency, analysis);
  AddCurve(accelerator.MatmulRate(op.type), accelerator, analysis);
  return absl::OkStatus();
}

void CheckElementwise(const Elementwise& op, std::vector<Violation>& violations) {
  CheckAtLeast(1, op.element_count, "elementwise.element_count", violations);
  CheckAtLeast(0, op.input_count, "elementwise.input_count", violations);
  if (!(op.flops_per_element >= 0) || !std::isfinite(op.flops_per_element)) {
    violations.push_back(
        {"elementwise.flops_per_element", "must be a finite number that is not negative", "FLOPS_OUT_OF_RANGE"});
  }
  if (static_cast<double>(op.element_count) * (static_cast<double>(op.input_count) + 1) > kMaxOperandElements) {
    violations.push_back(
        {"elementwise", "inputs and result may have at most 2^58 elements together", "ELEMENTWISE_TOO_LARGE"});
  }
}

absl::Status AnalyzeElementwise(const OperationQuestion& question, Elementwise op, OperationAnalysis& analysis,
                                std::vector<Violation>& violations) {
  const size_t violations_before = violations.size();
  CheckElementwise(op, violations);
  if (violations.size() > violations_before) return FirstViolation(violations, violations_before);
  const int64_t chips = MeshChips(question.mesh_axes);
  op.element_count = op.element_count / chips + (op.element_count % chips != 0 ? 1 : 0);

  const AcceleratorSpec& accelerator = question.slice.accelerator;
  const OpCost cost = CostOf(op);
  const absl::StatusOr<ResourceSeconds> seconds = SecondsOf(cost, accelerator);
  if (!seconds.ok()) return seconds.status();
  AddTimes(cost, *seconds, /*padded_over_useful=*/1, question.efficiency, analysis);
  AddCurve(accelerator.vector_flops_per_second, accelerator, analysis);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<OperationAnalysis> AnalyzeOperation(const OperationQuestion& question,
                                                   std::vector<Violation>& violations) {
  const size_t violations_before = violations.size();
  OperationAnalysis analysis;
  analysis.mesh_groups = PlaceMesh(question.slice, question.mesh_axes, violations);
  if (violations.size() > violations_before) {
    // The operation itself is still checked, so that everything wrong is reported at once.
    if (const auto* matmul = std::get_if<ShardedMatmul>(&question.operation)) {
      CheckShardedMatmul(*matmul, question.mesh_axes, "matmul", violations);
    } else if (const auto* attention = std::get_if<AttentionOp>(&question.operation)) {
      CheckAttention(*attention, violations);
    } else {
      CheckElementwise(std::get<Elementwise>(question.operation), violations);
    }
    return FirstViolation(violations, violations_before);
  }
  absl::Status status;
  if (const auto* matmul = std::get_if<ShardedMatmul>(&question.operation)) {
    status = AnalyzeMatmul(question, *matmul, analysis, violations);
  } else if (const auto* attention = std::get_if<AttentionOp>(&question.operation)) {
    status = AnalyzeAttention(question, *attention, analysis, violations);
  } else {
    status = AnalyzeElementwise(question, std::get<Elementwise>(question.operation), analysis, violations);
  }
  if (!status.ok()) return status;
  return analysis;
}

}  // namespace sliceplan::roofline
