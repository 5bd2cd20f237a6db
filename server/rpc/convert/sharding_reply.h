// Proposals: engine to contract.
#ifndef SLICEPLAN_SERVER_RPC_CONVERT_SHARDING_REPLY_H_
#define SLICEPLAN_SERVER_RPC_CONVERT_SHARDING_REPLY_H_

#include "proto/sliceplan/v1/sharding.pb.h"
#include "server/planner/sharding_search.h"
#include "server/rpc/convert/sharding_request.h"

namespace sliceplan::rpc {

// Fills everything but the elapsed time and the versions.
void ToProto(const SearchQuestion& question, const planner::ShardingAnswer& answer,
             v1::ProposeShardingResponse* response);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_CONVERT_SHARDING_REPLY_H_
