// One operation on a chip or a mesh: contract to engine, and back.
#ifndef SLICEPLAN_SERVER_RPC_CONVERT_OPERATION_H_
#define SLICEPLAN_SERVER_RPC_CONVERT_OPERATION_H_

#include <optional>
#include <vector>

#include "proto/sliceplan/v1/operation.pb.h"
#include "server/roofline/analyze_operation.h"
#include "server/roofline/efficiency.h"
#include "server/rpc/field_path.h"
#include "server/rpc/violations.h"

namespace sliceplan::rpc {

// Sets `mesh_axes` and `operation` of `question`. Ranges that the engine checks itself (mesh_axes, matmul) are left to
// it.
void ToOperation(const v1::AnalyzeOperationRequest& request, const FieldPath& path,
                 roofline::OperationQuestion& question, Violations& violations);

// What the engine would say of mesh and matmul, beside a request that is wrong already. `question.slice` must be set.
void AddRestOfViolations(const roofline::OperationQuestion& question, std::vector<hardware::Violation>& found);

// The shares of the peaks that a runtime reaches with this kind of operation on this chip.
roofline::OperationEfficiency EfficiencyFor(const roofline::EfficiencyProfile& profile,
                                            const hardware::AcceleratorSpec& accelerator, bool is_attention);

void ToProto(const roofline::OperationAnalysis& analysis, const std::vector<roofline::MeshAxis>& mesh,
             v1::AnalyzeOperationResponse* response);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_CONVERT_OPERATION_H_
