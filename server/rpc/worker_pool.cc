#include "server/rpc/worker_pool.h"

#include <algorithm>
#include <deque>
#include <utility>

namespace sliceplan::rpc {
namespace {

// Weight of the newest measurement: about the last ten count.
constexpr double kNewestWeight = 0.1;
constexpr absl::Duration kMinRetryDelay = absl::Milliseconds(10);
constexpr absl::Duration kMaxRetryDelay = absl::Seconds(5);
// Below the clock's grain; keeps the queue limit finite.
constexpr absl::Duration kMinWorkTime = absl::Microseconds(1);
// Longer work counts as this: a clock that was set forward must not close the queue for an hour.
constexpr absl::Duration kMaxWorkTime = absl::Minutes(1);

}  // namespace

WorkerPool::WorkerPool(Options options)
    : options_(std::move(options)), thread_count_(std::max(1, options_.thread_count)) {
  for (const Lane lane : kLanes) {
    StateOf(lane).mean_work_time = options_.initial_work_time[static_cast<size_t>(lane)];
  }
  const std::vector<Lane> search_first = {Lane::kSearch, Lane::kQuick};
  const std::vector<Lane> quick_first = {Lane::kQuick, Lane::kSearch};
  const std::vector<Lane> quick_only = {Lane::kQuick};
  for (int i = 0; i < thread_count_; ++i) {
    threads_.emplace_back([this, lanes = i == 0 ? search_first : quick_first] { RunThread(lanes, &wake_any_); });
  }
  threads_.emplace_back([this, quick_only] { RunThread(quick_only, &wake_quick_); });
}

WorkerPool::~WorkerPool() { Stop(); }

double WorkerPool::LimitLocked(const LaneState& state) const {
  const double answerable =
      absl::FDivDuration(options_.target_wait, std::max(state.mean_work_time, kMinWorkTime)) * thread_count_;
  return std::clamp(answerable, static_cast<double>(options_.min_queue_cost),
                    static_cast<double>(options_.max_queue_cost));
}

size_t WorkerPool::queue_limit(Lane lane) const {
  std::lock_guard lock(mutex_);
  return static_cast<size_t>(LimitLocked(StateOf(lane)));
}

size_t WorkerPool::queue_length(Lane lane) const {
  std::lock_guard lock(mutex_);
  return StateOf(lane).queue.size();
}

size_t WorkerPool::running_count(Lane lane) const {
  std::lock_guard lock(mutex_);
  return StateOf(lane).running;
}

// The time in which half of what stands before the client will have been done.
Shed WorkerPool::ShedLocked(const LaneState& state, ShedReason reason, const std::string& client) const {
  double before = state.queue.cost();
  if (reason == ShedReason::kClientShare) {
    before = std::min(before, state.queue.CostOf(client) * static_cast<double>(state.queue.client_count()));
  }
  const absl::Duration delay = state.mean_work_time * (before / (2.0 * thread_count_));
  return {reason, std::clamp(delay, kMinRetryDelay, kMaxRetryDelay)};
}

std::optional<Shed> WorkerPool::Submit(std::unique_ptr<PoolTask>& task) {
  const Lane lane = task->claim().lane;
  const std::string& client = task->claim().client;
  const double cost = task->claim().cost;
  std::optional<Shed> refused;
  std::vector<FairQueue::Waiting> displaced;
  Shed displaced_shed;
  bool wake_quick = false;
  bool wake_any = false;
  {
    std::lock_guard lock(mutex_);
    LaneState& state = StateOf(lane);
    FairQueue& queue = state.queue;
    const double limit = LimitLocked(state);
    if (stopping_) {
      refused = Shed{ShedReason::kDraining, absl::ZeroDuration()};
    } else if (queue.cost() >= limit) {
      const double own = queue.CostOf(client);
      const double clients = static_cast<double>(queue.client_count() + (own == 0 ? 1 : 0));
      while (queue.cost() >= limit && queue.CostOf(queue.LargestClient()) > own + cost) {
        const std::string largest = queue.LargestClient();
        if (displaced.empty()) displaced_shed = ShedLocked(state, ShedReason::kClientShare, largest);
        displaced.push_back(queue.TakeNewest(largest));
      }
      if (displaced.empty()) {
        const bool over_share = clients > 1 && own + cost > limit / clients;
        refused = ShedLocked(state, over_share ? ShedReason::kClientShare : ShedReason::kQueueFull, client);
      }
    }
    if (!refused.has_value()) {
      queue.Push({std::move(task), options_.now()});
      wake_quick = lane == Lane::kQuick;
      // The thread for cheap work alone takes one piece, whichever it finds.
      wake_any = lane == Lane::kSearch || queue.size() > 1 || state.running > 0;
    }
  }
  if (wake_quick) wake_quick_.notify_one();
  if (wake_any) wake_any_.notify_one();
  for (FairQueue::Waiting& work : displaced) {
    work.task->Drop(displaced_shed);
  }
  return refused;
}

void WorkerPool::Stop() {
  std::array<std::deque<FairQueue::Waiting>, kLaneCount> waiting;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    for (const Lane lane : kLanes) waiting[static_cast<size_t>(lane)] = StateOf(lane).queue.TakeAll();
  }
  wake_any_.notify_all();
  wake_quick_.notify_all();
  for (const Lane lane : kLanes) {
    for (FairQueue::Waiting& work : waiting[static_cast<size_t>(lane)]) {
      work.task->Drop({ShedReason::kDraining, absl::ZeroDuration()});
    }
  }
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void WorkerPool::RunThread(const std::vector<Lane>& lanes, std::condition_variable* wake) {
  std::unique_lock lock(mutex_);
  while (true) {
    auto lane = lanes.end();
    wake->wait(lock, [&] {
      lane = std::find_if(lanes.begin(), lanes.end(), [this](Lane one) { return !StateOf(one).queue.empty(); });
      return stopping_ || lane != lanes.end();
    });
    if (lane == lanes.end()) return;
    RunOne(*lane, lock);
  }
}

void WorkerPool::RunOne(Lane lane, std::unique_lock<std::mutex>& lock) {
  LaneState& state = StateOf(lane);
  FairQueue::Waiting work = state.queue.Pop();
  ++state.running;
  lock.unlock();

  const WorkClaim claim = work.task->claim();
  const absl::Time start = options_.now();
  absl::Duration work_time = absl::ZeroDuration();
  const bool cancelled = work.task->cancelled();
  if (cancelled || work.task->deadline() <= start) {
    const ShedReason reason = cancelled ? ShedReason::kCancelled : ShedReason::kExpired;
    work.task->Drop({reason, absl::ZeroDuration()});
  } else {
    work.task->Run();
    // The clock may have been set meanwhile.
    work_time = std::clamp(options_.now() - start, absl::ZeroDuration(), kMaxWorkTime);
  }
  work.task.reset();

  lock.lock();
  --state.running;
  // Charged at the pace before this measurement.
  state.queue.Settle(claim.client, claim.cost,
                     absl::FDivDuration(work_time, std::max(state.mean_work_time, kMinWorkTime)));
  if (work_time > absl::ZeroDuration()) {
    state.mean_work_time = state.mean_work_time * (1 - kNewestWeight) + work_time / claim.cost * kNewestWeight;
  }
}

}  // namespace sliceplan::rpc
