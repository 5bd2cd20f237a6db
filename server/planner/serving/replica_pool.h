// Identical replicas of the replay, and which of them takes the next request.
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_REPLICA_POOL_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_REPLICA_POOL_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/planner/serving/engine_replica.h"
#include "server/planner/serving/min_tree.h"
#include "server/planner/serving/serving_load.h"

namespace sliceplan::planner {

class ReplicaPool {
 public:
  ReplicaPool(const Station& station, const RequestMix& mix, bool hands_over, Router router,
              std::vector<ReplayRequest>& requests)
      : state_(station, mix, hands_over),
        router_(router),
        ends_(static_cast<size_t>(station.replica_count), kNever),
        loads_(static_cast<size_t>(station.replica_count), 0) {
    replicas_.reserve(static_cast<size_t>(station.replica_count));
    for (int64_t i = 0; i < station.replica_count; ++i) replicas_.emplace_back(state_, requests);
  }

  void Enqueue(int32_t request, double now) {
    size_t index = loads_.SmallestIndex();
    if (router_ == Router::kRoundRobin) {
      index = next_;
      next_ = next_ + 1 == replicas_.size() ? 0 : next_ + 1;
    }
    replicas_[index].Enqueue(request, now);
    Note(index);
  }
  double NextEnd() const { return ends_.Smallest(); }
  // Ends the step that ends first; `Restart` goes on with the same replica.
  void Complete(EngineReplica::Leavers& leavers) {
    current_ = ends_.SmallestIndex();
    replicas_[current_].Complete(leavers);
    Note(current_);
  }
  void Restart(double now) {
    replicas_[current_].Start(now);
    Note(current_);
  }
  int64_t Waiting() const {
    int64_t waiting = 0;
    for (const EngineReplica& replica : replicas_) waiting += replica.waiting();
    return waiting;
  }
  StationState& state() { return state_; }
  const StationState& state() const { return state_; }
  double replica_count() const { return static_cast<double>(replicas_.size()); }

 private:
  void Note(size_t index) {
    ends_.Set(index, replicas_[index].end());
    loads_.Set(index, static_cast<double>(replicas_[index].outstanding()));
  }

  StationState state_;
  Router router_;
  std::vector<EngineReplica> replicas_;
  MinTree ends_;
  MinTree loads_;
  size_t next_ = 0;
  size_t current_ = 0;
};

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SERVING_REPLICA_POOL_H_
