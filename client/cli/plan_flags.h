// How a job is spread over chips, and pieces of physical axes.
#ifndef SLICEPLAN_CLIENT_CLI_PLAN_FLAGS_H_
#define SLICEPLAN_CLIENT_CLI_PLAN_FLAGS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/flags.h"
#include "proto/sliceplan/v1/collective.pb.h"
#include "proto/sliceplan/v1/parallelism.pb.h"

namespace sliceplan::cli {

// "fsdp=512,context=2,tensor=4,dcn.data=2": degrees within a slice, and with "dcn." across slices. dp, tp, cp, ep, pp
// are short for data, tensor, context, expert, pipeline.
absl::Status ReadParallelism(const std::string& text, v1::Parallelism* parallelism);

// "tensor=2:4,fsdp=0:16:2": logical axis = physical axis : factor [: stride].
absl::Status ReadMapping(const std::string& text, v1::Parallelism* parallelism);

// "0:4:2,1,-1": physical axis [: factor [: stride]]; -1 is the slices. A factor of 0 in the result means that none was
// given: the whole axis.
absl::StatusOr<std::vector<v1::GroupPiece>> ReadPieces(const std::string& text);

// Adds --parallelism and what belongs to it for the field `parallelism` of a request: degrees, mapping, what is
// allowed.
// `example` is one of --parallelism.
void AddPlanFlags(Flags& flags, const std::string& example, const std::function<v1::Parallelism*()>& parallelism);
// And what training adds: ZeRO and the schedule of a pipeline.
void AddParallelismFlags(Flags& flags, const std::function<v1::Parallelism*()>& parallelism);

}  // namespace sliceplan::cli

#endif  // SLICEPLAN_CLIENT_CLI_PLAN_FLAGS_H_
