// Threads for work that would hold up gRPC's own: a search, a big config. The queue is as long as what can be answered
// within a target wait at the pace measured so far; beyond it work is refused at once, with the time to come back.
// Work that nobody waits for any more is dropped when its turn comes.
//
// Uses std::mutex, which ThreadSanitizer sees, and knows nothing of gRPC.
#ifndef SLICEPLAN_SERVER_RPC_WORKER_POOL_H_
#define SLICEPLAN_SERVER_RPC_WORKER_POOL_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace sliceplan::rpc {

// One piece of work. Exactly one of Run and Drop is called, once.
class PoolTask {
 public:
  enum class DropReason { kExpired, kCancelled, kStopping };

  virtual ~PoolTask() = default;
  virtual absl::Time deadline() const = 0;
  virtual bool cancelled() const = 0;
  virtual void Run() = 0;
  virtual void Drop(DropReason reason) = 0;
};

struct WorkerPoolOptions {
  int thread_count = 1;
  // How long accepted work should have to wait at most.
  absl::Duration target_wait = absl::Milliseconds(250);
  // What one piece of work is taken to need until some has been measured.
  absl::Duration initial_work_time = absl::Milliseconds(2);
  // Bounds of the queue whatever the pace: never so short that a burst of a few is refused, never without end.
  size_t min_queue_length = 16;
  size_t max_queue_length = 1024;
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

  enum class Admission { kAccepted, kFull, kStopping };
  // Takes `task` when accepted; otherwise leaves it with the caller.
  Admission Submit(std::unique_ptr<PoolTask>& task);

  // Refuses new work, drops what waits, and returns when what runs has ended.
  void Stop();

  // How many pieces of work may wait now.
  size_t queue_limit() const;
  size_t queue_length() const;
  // How long a full queue takes to shrink by a useful part: what a refused caller is told to wait.
  absl::Duration retry_delay() const;

 private:
  void RunThread();
  size_t QueueLimitLocked() const;

  const Options options_;
  const int thread_count_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::unique_ptr<PoolTask>> queue_;
  // Exponentially weighted mean of measured run times.
  absl::Duration mean_work_time_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

// CPUs that this process may use: the scheduler's mask, cut by the CPU limit of its control group. At least 1.
int UsableCpuCount();

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_WORKER_POOL_H_
