// Engine to contract; the other way is in operation.cc.
#include <cmath>
#include <limits>

#include "server/rpc/convert/enums.h"
#include "server/rpc/convert/operation.h"

namespace sliceplan::rpc {
namespace {

using roofline::MatmulPlan;
using roofline::MeshAxis;

constexpr EnumPair<v1::MatmulOperand, roofline::MatmulOperand> kOperands[] = {
    {v1::MATMUL_OPERAND_LHS, roofline::MatmulOperand::kLhs},
    {v1::MATMUL_OPERAND_RHS, roofline::MatmulOperand::kRhs},
    {v1::MATMUL_OPERAND_OUTPUT, roofline::MatmulOperand::kOutput},
};

int64_t WholeBytes(double bytes) {
  constexpr double kMaxBytes = 9.2e18;
  return bytes >= kMaxBytes ? std::numeric_limits<int64_t>::max() : static_cast<int64_t>(std::ceil(bytes));
}

void AddCollectives(const MatmulPlan& plan, const std::vector<MeshAxis>& mesh,
                    google::protobuf::RepeatedPtrField<v1::InsertedCollective>* proto) {
  int64_t mesh_size = 1;
  for (const MeshAxis& axis : mesh) mesh_size *= axis.size;
  for (const roofline::InsertedCollective& ours : plan.collectives) {
    v1::InsertedCollective* const collective = proto->Add();
    collective->set_kind(rpc::ToProto(kCollectiveKinds, ours.kind));
    collective->set_operand(rpc::ToProto(kOperands, ours.operand));
    int64_t group_size = 1;
    for (const int axis : ours.axes) {
      collective->add_axes(mesh[static_cast<size_t>(axis)].name);
      group_size *= mesh[static_cast<size_t>(axis)].size;
    }
    collective->set_seconds(ours.seconds);
    collective->set_bytes(WholeBytes(ours.bytes));
    collective->set_group_count(static_cast<int32_t>(mesh_size / group_size));
  }
}

void ToProto(const MatmulPlan& plan, v1::LocalMatmul* proto) {
  for (const int64_t dim : plan.local_batch_dims) proto->add_batch_dims(dim);
  proto->set_m(plan.local.m);
  proto->set_k(plan.local.k);
  proto->set_n(plan.local.n);
}

}  // namespace

void ToProto(const roofline::OperationAnalysis& analysis, const std::vector<MeshAxis>& mesh,
             v1::AnalyzeOperationResponse* response) {
  response->set_flops(analysis.flops);
  response->set_hbm_bytes(WholeBytes(analysis.hbm_bytes));
  response->set_intensity_flops_per_byte(analysis.intensity_flops_per_byte);
  response->set_compute_seconds(analysis.compute_seconds);
  response->set_matrix_seconds(analysis.matrix_seconds);
  response->set_vector_seconds(analysis.vector_seconds);
  response->set_hbm_seconds(analysis.hbm_seconds);
  response->set_network_seconds(analysis.network_seconds);
  response->set_roofline_lower_seconds(analysis.bound.lower_seconds);
  response->set_roofline_upper_seconds(analysis.bound.upper_seconds);
  response->set_bound(rpc::ToProto(kResources, analysis.bound.binding));
  response->set_expected_seconds(analysis.expected_seconds);
  response->set_padding_ratio(analysis.padding_ratio);
  if (analysis.critical_batch.has_value()) response->set_critical_batch(*analysis.critical_batch);
  if (analysis.exact_critical_batch.has_value()) response->set_exact_critical_batch(*analysis.exact_critical_batch);
  response->set_matmul_case(analysis.matmul_case);
  if (analysis.plan.has_value()) {
    AddCollectives(*analysis.plan, mesh, response->mutable_inserted_collectives());
    ToProto(*analysis.plan, response->mutable_local_matmul());
  }
  for (const MatmulPlan& ours : analysis.alternatives) {
    v1::CollectiveAlternative* const alternative = response->add_alternatives();
    AddCollectives(ours, mesh, alternative->mutable_collectives());
    alternative->set_roofline_lower_seconds(ours.bound.lower_seconds);
    alternative->set_sentence(ours.sentence);
  }
  for (const roofline::RooflinePoint& ours : analysis.roofline) {
    v1::RooflinePoint* const point = response->add_roofline();
    point->set_intensity_flops_per_byte(ours.intensity_flops_per_byte);
    point->set_flops_per_second(ours.flops_per_second);
  }
  if (analysis.needs_output_sharding) {
    v1::Warning* const warning = response->add_warnings();
    warning->set_code("OUTPUT_SHARDING_AMBIGUOUS");
    warning->set_field("matmul.output_sharding");
    warning->set_sentence(
        "The contraction is split and output_sharding does not say whether partial sums become copies or shards: "
        "copies were assumed.");
  }
}

}  // namespace sliceplan::rpc
