// The parts of a serving estimate, one function each: engine to contract.
#ifndef SLICEPLAN_SERVER_RPC_CONVERT_SERVING_PARTS_H_
#define SLICEPLAN_SERVER_RPC_CONVERT_SERVING_PARTS_H_

#include <optional>
#include <string>
#include <vector>

#include "proto/sliceplan/v1/serving.pb.h"
#include "server/planner/serving/serving_estimate.h"
#include "server/planner/serving/serving_job.h"

namespace sliceplan::rpc {

void ToProto(const planner::ServingShortfall& shortfall, v1::Shortfall* proto);
void ToProto(const planner::ServingMemory& memory, v1::ServingMemory* proto);
void ToProto(const planner::PassTime& pass, v1::PrefillEstimate* proto);
void ToProto(const planner::PassTime& pass, v1::DecodeEstimate* proto);
void ToProto(const planner::Latency& latency, v1::LatencyEstimate* proto);
void ToProto(const planner::ServingThroughput& throughput, v1::ServingThroughput* proto);
void ToProto(const planner::ServingCost& cost, v1::ServingCost* proto);
void ToProto(const planner::CostSplit& split, v1::CostSplit* proto);
void ToProto(const planner::ServingPoint& point, v1::ServingPoint* proto);
void ToProto(const planner::Disaggregation& disaggregation, v1::Disaggregation* proto);
void ToProto(const planner::PoolEstimate& estimate, const planner::ServingPool& pool, v1::PoolEstimate* proto);

// A line of the engine, "workload.kv_cache_split: Why." or "Why.".
void ToProto(const std::string& line, v1::Assumption* proto);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_CONVERT_SERVING_PARTS_H_
