// PlannerService: the main job.
#ifndef SLICEPLAN_SERVER_RPC_HANDLERS_PLANNER_HANDLERS_H_
#define SLICEPLAN_SERVER_RPC_HANDLERS_PLANNER_HANDLERS_H_

#include "absl/time/time.h"
#include "proto/sliceplan/v1/serving.pb.h"
#include "proto/sliceplan/v1/sharding.pb.h"
#include "proto/sliceplan/v1/training.pb.h"
#include "server/rpc/call_context.h"
#include "server/rpc/handlers/engine.h"
#include "server/rpc/method_table.h"
#include "server/rpc/result.h"

namespace sliceplan::rpc {

class PlannerHandlers {
 public:
  // `engine` must outlive the handlers.
  explicit PlannerHandlers(Engine* engine) : engine_(*engine) {}

  Result EstimateTraining(const v1::EstimateTrainingRequest& request, v1::EstimateTrainingResponse* response,
                          const CallContext& call);
  Result EstimateServing(const v1::EstimateServingRequest& request, v1::EstimateServingResponse* response,
                         const CallContext& call);
  Result ProposeSharding(const v1::ProposeShardingRequest& request, v1::ProposeShardingResponse* response,
                         const CallContext& call);

  // Short when the plan is given and the model need not be read; a search is long.
  Effort EffortOf(const v1::EstimateTrainingRequest& request) const;
  // Short when the plans and the batch are given too; replays and searches are long.
  Effort EffortOf(const v1::EstimateServingRequest& request) const;
  Effort EffortOf(const v1::ProposeShardingRequest& request) const;

 private:
  // The same for a serving load; `start` is when the call came.
  Result ProposeServing(const v1::ProposeShardingRequest& request, v1::ProposeShardingResponse* response,
                        const CallContext& call, absl::Time start);

  Engine& engine_;
};

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_HANDLERS_PLANNER_HANDLERS_H_
