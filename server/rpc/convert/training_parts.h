// The parts of a training estimate, one function each: engine to contract.
#ifndef SLICEPLAN_SERVER_RPC_CONVERT_TRAINING_PARTS_H_
#define SLICEPLAN_SERVER_RPC_CONVERT_TRAINING_PARTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "proto/sliceplan/v1/training.pb.h"
#include "server/planner/training_estimate.h"
#include "server/planner/training_job.h"

namespace sliceplan::rpc {

void ToProto(const planner::StepTime& time, v1::StepTime* proto);
void ToProto(const planner::Fix& fix, v1::Fix* proto);
void ToProto(const planner::MemoryUse& use, int32_t layer_count, v1::TrainingMemory* proto);
void ToProto(const planner::Thresholds& thresholds, v1::TrainingThresholds* proto);
void ToProto(const planner::Bottleneck& bottleneck, v1::Bottleneck* proto);
void ToProto(const planner::Padding& padding, v1::Padding* proto);
void ToProto(const planner::Cost& cost, int64_t chip_count, v1::TrainingCost* proto);
void ToProto(const planner::Energy& energy, const hardware::AcceleratorSpec& accelerator, v1::Energy* proto);
void ToProto(const planner::Advice& advice, double expected_seconds, v1::Advice* proto);

// Entries that take no time are left out.
void AddBreakdown(const std::vector<std::string>& group_names, const std::vector<planner::BreakdownEntry>& breakdown,
                  google::protobuf::RepeatedPtrField<v1::BreakdownEntry>* proto);

// Goodput and its interval, when the request says how often things break.
void SetRun(const planner::TrainingJob& job, const planner::TrainingEstimate& estimate, v1::TrainingEstimate* proto);

// Layers of one pipeline stage, all its chunks together.
int32_t LayersOfStage(const planner::TrainingEstimate& estimate, int32_t stage);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_CONVERT_TRAINING_PARTS_H_
