#include "server/rpc/worker_pool.h"

#include <algorithm>
#include <utility>

namespace sliceplan::rpc {
namespace {

// Weight of the newest measurement: about the last ten count.
constexpr double kNewestWeight = 0.1;
constexpr absl::Duration kMinRetryDelay = absl::Milliseconds(10);
constexpr absl::Duration kMaxRetryDelay = absl::Seconds(5);
// Below the clock's grain; keeps the queue limit finite.
constexpr absl::Duration kMinWorkTime = absl::Microseconds(1);

}  // namespace

WorkerPool::WorkerPool(Options options)
    : options_(std::move(options)),
      thread_count_(std::max(1, options_.thread_count)),
      mean_work_time_(options_.initial_work_time) {
  for (int i = 0; i < thread_count_; ++i) threads_.emplace_back([this] { RunThread(); });
}

WorkerPool::~WorkerPool() { Stop(); }

size_t WorkerPool::QueueLimitLocked() const {
  const double waiting =
      absl::FDivDuration(options_.target_wait, std::max(mean_work_time_, kMinWorkTime)) * thread_count_;
  const double limit = std::clamp(waiting, static_cast<double>(options_.min_queue_length),
                                  static_cast<double>(options_.max_queue_length));
  return static_cast<size_t>(limit);
}

size_t WorkerPool::queue_limit() const {
  std::lock_guard lock(mutex_);
  return QueueLimitLocked();
}

size_t WorkerPool::queue_length() const {
  std::lock_guard lock(mutex_);
  return queue_.size();
}

absl::Duration WorkerPool::retry_delay() const {
  std::lock_guard lock(mutex_);
  const absl::Duration half_empty = mean_work_time_ * static_cast<double>(queue_.size()) / (2.0 * thread_count_);
  return std::clamp(half_empty, kMinRetryDelay, kMaxRetryDelay);
}

WorkerPool::Admission WorkerPool::Submit(std::unique_ptr<PoolTask>& task) {
  {
    std::lock_guard lock(mutex_);
    if (stopping_) return Admission::kStopping;
    if (queue_.size() >= QueueLimitLocked()) return Admission::kFull;
    queue_.push_back(std::move(task));
  }
  wake_.notify_one();
  return Admission::kAccepted;
}

void WorkerPool::Stop() {
  std::deque<std::unique_ptr<PoolTask>> waiting;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    waiting.swap(queue_);
  }
  wake_.notify_all();
  for (auto& task : waiting) task->Drop(PoolTask::DropReason::kStopping);
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void WorkerPool::RunThread() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    std::unique_ptr<PoolTask> task = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();

    const absl::Time start = options_.now();
    absl::Duration work_time = absl::ZeroDuration();
    if (task->cancelled()) {
      task->Drop(PoolTask::DropReason::kCancelled);
    } else if (task->deadline() <= start) {
      task->Drop(PoolTask::DropReason::kExpired);
    } else {
      task->Run();
      work_time = options_.now() - start;
    }
    task.reset();

    lock.lock();
    if (work_time > absl::ZeroDuration()) {
      mean_work_time_ = mean_work_time_ * (1 - kNewestWeight) + work_time * kNewestWeight;
    }
  }
}

}  // namespace sliceplan::rpc
