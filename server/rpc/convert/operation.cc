#include "server/rpc/convert/operation.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

#include "server/rpc/convert/enums.h"
#include "server/rpc/convert/ranges.h"

namespace sliceplan::rpc {
namespace {

// Copies and triads of large arrays reach 80% to 90% of the peak on GPUs (BabelStream) and TPUs.
constexpr double kOneKernelHbmRatio = 0.85;

constexpr int64_t kMaxDim = int64_t{1} << 40;
constexpr int kMaxBatchDims = 8;
constexpr int64_t kMaxHeads = 1 << 16;
constexpr int64_t kMaxInputs = 1024;
constexpr double kMaxFlopsPerElement = 1e6;
constexpr size_t kMaxAxisNameBytes = 64;
constexpr int kMaxShardingEntries = 16;
constexpr int kMaxPieces = 16;

hardware::DataType DtypeOr(v1::DataType value, hardware::DataType fallback, const FieldPath& path,
                           Violations& violations) {
  return FromProto(kDataTypes, value, path, violations).value_or(fallback);
}

std::vector<roofline::DimensionSharding> ToSharding(
    const google::protobuf::RepeatedPtrField<v1::DimensionSharding>& proto, absl::string_view name,
    const FieldPath& path, Violations& violations) {
  std::vector<roofline::DimensionSharding> sharding;
  if (!CheckCount(proto.size(), kMaxShardingEntries, FieldPath(path, name), violations)) return sharding;
  for (int i = 0; i < proto.size(); ++i) {
    if (!CheckCount(proto[i].axes_size(), kMaxShardingEntries, FieldPath(path, name, i), violations)) continue;
    sharding.push_back({proto[i].dimension(), {proto[i].axes().begin(), proto[i].axes().end()}});
  }
  return sharding;
}

roofline::ShardedMatmul ToMatmul(const v1::MatmulOperation& proto, const FieldPath& path, Violations& violations) {
  roofline::ShardedMatmul matmul;
  if (CheckCount(proto.batch_dims_size(), kMaxBatchDims, FieldPath(path, "batch_dims"), violations)) {
    matmul.batch_dims.assign(proto.batch_dims().begin(), proto.batch_dims().end());
  }
  matmul.m = proto.m();
  matmul.k = proto.k();
  matmul.n = proto.n();
  using hardware::DataType;
  matmul.lhs_type = DtypeOr(proto.lhs_dtype(), DataType::kBf16, FieldPath(path, "lhs_dtype"), violations);
  matmul.rhs_type = DtypeOr(proto.rhs_dtype(), DataType::kBf16, FieldPath(path, "rhs_dtype"), violations);
  matmul.output_type = DtypeOr(proto.output_dtype(), DataType::kBf16, FieldPath(path, "output_dtype"), violations);
  matmul.compute = FromProto(kDataTypes, proto.compute_dtype(), FieldPath(path, "compute_dtype"), violations);
  matmul.lhs_sharding = ToSharding(proto.lhs_sharding(), "lhs_sharding", path, violations);
  matmul.rhs_sharding = ToSharding(proto.rhs_sharding(), "rhs_sharding", path, violations);
  if (proto.output_sharding_size() > 0) {
    matmul.output_sharding = ToSharding(proto.output_sharding(), "output_sharding", path, violations);
  }
  return matmul;
}

roofline::AttentionOp ToAttention(const v1::AttentionOperation& proto, const FieldPath& path, Violations& violations) {
  roofline::AttentionOp op;
  bool sized =
      CheckRange(int64_t{proto.query_length()}, 1, kMaxTokensOfSequence, FieldPath(path, "query_length"), violations);
  sized &= CheckRange(int64_t{proto.key_length()}, 1, kMaxTokensOfSequence, FieldPath(path, "key_length"), violations);
  bool headed =
      CheckRange(int64_t{proto.query_head_count()}, 1, kMaxHeads, FieldPath(path, "query_head_count"), violations);
  headed &= CheckRange(int64_t{proto.kv_head_count()}, 1, kMaxHeads, FieldPath(path, "kv_head_count"), violations);
  CheckRange(int64_t{proto.head_dim()}, 1, kMaxHeads, FieldPath(path, "head_dim"), violations);
  if (headed && proto.query_head_count() % proto.kv_head_count() != 0) {
    violations.Add(
        FieldPath(path, "query_head_count"),
        absl::StrCat(proto.query_head_count(), " query heads do not divide over ", proto.kv_head_count(), " KV heads."),
        "NOT_DIVISIBLE");
  }
  op.query_length = proto.query_length();
  op.key_length = proto.key_length();
  op.query_head_count = proto.query_head_count();
  op.kv_head_count = proto.kv_head_count();
  op.head_dim = proto.head_dim();
  if (proto.has_batch_size() &&
      CheckRange(int64_t{proto.batch_size()}, 1, kMaxTokensOfSequence, FieldPath(path, "batch_size"), violations)) {
    op.batch_size = proto.batch_size();
  }
  const auto mask = FromProto(kAttentionMasks, proto.mask(), FieldPath(path, "mask"), violations);
  op.mask = mask == planner::AttentionMask::kFull ? roofline::AttentionMask::kFull : roofline::AttentionMask::kCausal;
  if (sized && op.mask == roofline::AttentionMask::kCausal && op.query_length > op.key_length) {
    violations.Add(FieldPath(path, "query_length"),
                   absl::StrCat(op.query_length, " queries have only ", op.key_length,
                                " keys; under a causal mask queries are the last positions of the keys."),
                   "CONFLICT");
  }
  op.type = DtypeOr(proto.dtype(), hardware::DataType::kBf16, FieldPath(path, "dtype"), violations);
  op.kv_type = DtypeOr(proto.kv_dtype(), op.type, FieldPath(path, "kv_dtype"), violations);
  const auto kernel = FromProto(kAttentionKernels, proto.kernel(), FieldPath(path, "kernel"), violations);
  op.materializes_scores = kernel == planner::AttentionKernel::kMaterialized;
  return op;
}

roofline::Elementwise ToElementwise(const v1::ElementwiseOperation& proto, const FieldPath& path,
                                    Violations& violations) {
  roofline::Elementwise op;
  if (CheckRange(proto.element_count(), 1, kMaxExactInteger, FieldPath(path, "element_count"), violations)) {
    op.element_count = proto.element_count();
  }
  if (proto.has_input_count() &&
      CheckRange(int64_t{proto.input_count()}, 0, kMaxInputs, FieldPath(path, "input_count"), violations)) {
    op.input_count = proto.input_count();
  }
  if (proto.has_flops_per_element() &&
      CheckRange(proto.flops_per_element(), 0, kMaxFlopsPerElement, FieldPath(path, "flops_per_element"), violations)) {
    op.flops_per_element = proto.flops_per_element();
  }
  op.type = DtypeOr(proto.dtype(), hardware::DataType::kBf16, FieldPath(path, "dtype"), violations);
  return op;
}

}  // namespace

void ToOperation(const v1::AnalyzeOperationRequest& request, const FieldPath& path,
                 roofline::OperationQuestion& question, Violations& violations) {
  if (CheckCount(request.mesh_axes_size(), static_cast<int>(roofline::kMaxMeshAxes), FieldPath(path, "mesh_axes"),
                 violations)) {
    for (int i = 0; i < request.mesh_axes_size(); ++i) {
      const v1::MeshAxis& proto = request.mesh_axes(i);
      const FieldPath axis_path(path, "mesh_axes", i);
      CheckLength(proto.name(), kMaxAxisNameBytes, FieldPath(axis_path, "name"), violations);
      roofline::MeshAxis axis;
      axis.name = proto.name();
      axis.size = proto.size();
      if (CheckCount(proto.pieces_size(), kMaxPieces, FieldPath(axis_path, "pieces"), violations)) {
        for (const v1::GroupPiece& piece : proto.pieces()) {
          axis.pieces.push_back({piece.axis(), piece.factor(), piece.has_stride() ? piece.stride() : 1});
        }
      }
      question.mesh_axes.push_back(std::move(axis));
    }
  }
  switch (request.operation_case()) {
    case v1::AnalyzeOperationRequest::kMatmul: {
      const FieldPath matmul_path(path, "matmul");
      question.operation = ToMatmul(request.matmul(), matmul_path, violations);
      // Reported here and not by the engine alone, so that they come with whatever else is wrong.
      CheckRange(request.matmul().m(), 1, kMaxDim, FieldPath(matmul_path, "m"), violations);
      CheckRange(request.matmul().k(), 1, kMaxDim, FieldPath(matmul_path, "k"), violations);
      CheckRange(request.matmul().n(), 1, kMaxDim, FieldPath(matmul_path, "n"), violations);
      break;
    }
    case v1::AnalyzeOperationRequest::kAttention:
      question.operation = ToAttention(request.attention(), FieldPath(path, "attention"), violations);
      break;
    case v1::AnalyzeOperationRequest::kElementwise:
      question.operation = ToElementwise(request.elementwise(), FieldPath(path, "elementwise"), violations);
      break;
    case v1::AnalyzeOperationRequest::OPERATION_NOT_SET:
      AddRequired("matmul, attention or elementwise", path, violations);
      break;
  }
}

void AddRestOfViolations(const roofline::OperationQuestion& question, std::vector<hardware::Violation>& found) {
  roofline::PlaceMesh(question.slice, question.mesh_axes, found);
  if (const auto* matmul = std::get_if<roofline::ShardedMatmul>(&question.operation)) {
    roofline::CheckShardedMatmul(*matmul, question.mesh_axes, "matmul", found);
  }
}

roofline::OperationEfficiency EfficiencyFor(const roofline::EfficiencyProfile& profile,
                                            const hardware::AcceleratorSpec& accelerator, bool is_attention) {
  roofline::OperationEfficiency efficiency;
  const double sustained = accelerator.sustained_matmul_ratio.value_or(profile.default_sustained_ratio);
  efficiency.compute_ratio = is_attention
                                 ? profile.attention_ratio * (profile.attention_uses_sustained_rate ? sustained : 1)
                                 : sustained / profile.matmul_inverse_ratio;
  efficiency.compute_ratio = std::min(efficiency.compute_ratio, 1.0);
  // The profile's share is that of a training step's many small passes; one large kernel streams faster.
  efficiency.hbm_ratio = std::max(profile.elementwise_hbm_ratio, kOneKernelHbmRatio);
  efficiency.network_ratio = profile.collective_ratio;
  return efficiency;
}

}  // namespace sliceplan::rpc
