// How many replicas carry a rate.
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_REPLICA_COUNT_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_REPLICA_COUNT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include "server/planner/serving/pool_system.h"

namespace sliceplan::planner {

// Without targets, replicas are counted so that none is busier than this: above it waits grow fast.
inline constexpr double kTargetUtilization = 0.8;

// One plan under one load with different numbers of replicas. Every number is replayed once, whoever asks.
class ReplicaTrials {
 public:
  // `job` and `pool`, but for its number of replicas, must be the same in every call.
  const SystemResult& Result(const ServingJob& job, const PlannedPool& pool, const std::function<bool()>& cancelled);
  // Whether that many are stable and meet every target. False when `cancelled`, which `was_cancelled` then says.
  bool Meets(const ServingJob& job, const PlannedPool& pool, const std::function<bool()>& cancelled,
             bool& was_cancelled);

 private:
  std::map<int64_t, SystemResult> results_;  // by replicas
  std::map<int64_t, bool> meets_;
};

// No fewer replicas of `pool` can carry the rate: the queues of fewer grow without end, or, without targets, they would
// be busier than kTargetUtilization. Empty: no number that is counted (2^20) can.
std::optional<int64_t> LeastReplicas(const ServingJob& job, const PlannedPool& pool);
// The same where one replica is known to sustain so many requests a second.
std::optional<int64_t> LeastReplicas(const ServingJob& job, double sustained_rate);

// The fewest replicas that meet the targets, one replay at a time: what is too few is soon told, what is enough takes a
// whole replay. Tries the least, then where the mean field says that it is enough, then more.
class ReplicaCounter {
 public:
  // `pool`, whatever its replicas, and `trials` are of the same plan. All must outlive it.
  ReplicaCounter(const ServingJob& job, const PlannedPool& pool, ReplicaTrials& trials);

  // No number below is enough.
  int64_t bound() const { return fails_ + 1; }
  bool is_done() const { return is_done_; }
  // Empty: no number is, as far as is known.
  std::optional<int64_t> count() const { return count_; }
  // Raises the bound or finishes. Requires that it is not done.
  void Advance(const std::function<bool()>& cancelled, bool& was_cancelled);

 private:
  int64_t NextToTry();

  const ServingJob& job_;
  const PlannedPool pool_;
  ReplicaTrials& trials_;
  int64_t least_ = 1;
  int64_t most_ = 1;
  int64_t fails_ = 0;
  int64_t step_ = 1;
  std::optional<int64_t> guess_;
  std::optional<int64_t> count_;
  bool is_done_ = false;
};

// Replicas that carry the rate: with targets by ReplicaCounter, without them LeastReplicas. Empty: no number does, or
// `was_cancelled`. Does not depend on the replicas of `pool`.
std::optional<int64_t> ReplicasFor(const ServingJob& job, const PlannedPool& pool, ReplicaTrials& trials,
                                   const std::function<bool()>& cancelled, bool& was_cancelled);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SERVING_REPLICA_COUNT_H_
