// Slices and chips: requests to the engine, and back.
#ifndef SLICEPLAN_SERVER_RPC_CONVERT_SLICE_H_
#define SLICEPLAN_SERVER_RPC_CONVERT_SLICE_H_

#include <optional>
#include <vector>

#include "proto/sliceplan/v1/hardware.pb.h"
#include "server/catalog/catalog.h"
#include "server/catalog/slice_resolver.h"
#include "server/rpc/field_path.h"
#include "server/rpc/violations.h"

namespace sliceplan::rpc {

enum class MissingShape { kRefused, kOneChip };

// The slice that the words of a request mean; nullopt with violations under `path` when they mean none.
std::optional<catalog::ResolvedSlice> ToSlice(const v1::Slice& slice, const catalog::Catalog& catalog,
                                              MissingShape missing_shape, const FieldPath& path,
                                              Violations& violations);

// Larger slices of the same chip of the catalog, ascending by chips: the listed shapes of a torus, twice as many GPUs
// again and again. As many slices each, constants as in `slice`.
std::vector<hardware::Slice> LargerSlices(const catalog::Catalog& catalog, const hardware::Slice& slice);

void ToProto(const catalog::ResolvedSlice& resolved, v1::SliceUsed* used);
void ToProto(const catalog::v1::SliceRecord& record, v1::SliceInfo* info);
void ToProto(const catalog::v1::GpuMachineRecord& record, v1::SliceInfo* info);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_CONVERT_SLICE_H_
