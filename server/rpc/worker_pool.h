// Threads for work that would hold up gRPC's own: a search, a big config.
//
// Two lanes with a queue each, so that cheap work never waits behind searches: `thread_count` threads take work of
// either lane, the first of them searches before cheap work and the others cheap work before searches, and one more
// thread takes cheap work only. It has no CPU of its own, and needs none: it runs for milliseconds, and the scheduler
// of the system gives it its part of a CPU at once.
//
// A queue is as long as what can be answered within a target wait at the pace measured so far, counted by what the work
// is expected to cost. Beyond it work is refused at once, with the time to come back. Clients share a lane evenly
// (fair_queue.h), whatever each of them asks for. Work that nobody waits for any more is dropped when its turn comes.
//
// Uses std::mutex, which ThreadSanitizer sees, and knows nothing of gRPC.
#ifndef SLICEPLAN_SERVER_RPC_WORKER_POOL_H_
#define SLICEPLAN_SERVER_RPC_WORKER_POOL_H_

#include <array>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/rpc/fair_queue.h"
#include "server/rpc/pool_task.h"

namespace sliceplan::rpc {

struct WorkerPoolOptions {
  int thread_count = 1;
  // How long accepted work should have to wait at most.
  absl::Duration target_wait = absl::Milliseconds(250);
  // What work of cost 1 is taken to need until some has been measured; by lane.
  std::array<absl::Duration, kLaneCount> initial_work_time = {absl::Milliseconds(2), absl::Milliseconds(20)};
  // Bounds of the cost of a queue whatever the pace: never so short that a burst of a few is refused, never without
  // end.
  size_t min_queue_cost = 16;
  size_t max_queue_cost = 1024;
  std::function<absl::Time()> now = [] { return absl::Now(); };
};

class WorkerPool {
 public:
  using Options = WorkerPoolOptions;

  explicit WorkerPool(Options options);
  // Stops.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Takes `task`; or leaves it with the caller and says why. In a full queue a client with little waiting displaces the
  // newest work of the one with the most.
  std::optional<Shed> Submit(std::unique_ptr<PoolTask>& task);

  // Refuses new work, drops what waits, and returns when what runs has ended.
  void Stop();

  // What may wait now, in units of WorkClaim::cost.
  size_t queue_limit(Lane lane) const;
  size_t queue_length(Lane lane) const;
  size_t running_count(Lane lane) const;

 private:
  struct LaneState {
    FairQueue queue;
    size_t running = 0;
    // Exponentially weighted mean of measured run times, per unit of cost.
    absl::Duration mean_work_time;
  };

  LaneState& StateOf(Lane lane) { return lanes_[static_cast<size_t>(lane)]; }
  const LaneState& StateOf(Lane lane) const { return lanes_[static_cast<size_t>(lane)]; }
  // Runs work of the lanes that may be taken, by preference.
  void RunThread(const std::vector<Lane>& lanes, std::condition_variable* wake);
  void RunOne(Lane lane, std::unique_lock<std::mutex>& lock);
  double LimitLocked(const LaneState& state) const;
  Shed ShedLocked(const LaneState& state, ShedReason reason, const std::string& client) const;

  const Options options_;
  const int thread_count_;
  mutable std::mutex mutex_;
  std::condition_variable wake_any_;
  std::condition_variable wake_quick_;
  std::array<LaneState, kLaneCount> lanes_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

// CPUs that this process may use: the scheduler's mask, cut by the CPU limit of its control group. At least 1.
int UsableCpuCount();

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_WORKER_POOL_H_
