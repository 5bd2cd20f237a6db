// Blocks of quantised weights that share a scale, cut by tensor parallelism.
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_WEIGHT_BLOCKS_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_WEIGHT_BLOCKS_H_

#include <cstdint>
#include <vector>

#include "server/planner/serving/serving_job.h"
#include "server/planner/training_estimate.h"

namespace sliceplan::planner {

// Adds one padding for each feed-forward width, of experts or not, that `tensor` cuts inside blocks of the checkpoint's
// format. Nothing for checkpoints that are not quantised in blocks.
void DescribeWeightBlocks(const ServedModel& model, int32_t tensor, std::vector<Padding>& paddings);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SERVING_WEIGHT_BLOCKS_H_
