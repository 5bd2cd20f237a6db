#include "server/rpc/worker_pool.h"

#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace sliceplan::rpc {
namespace {

// A clock that stands still until a test moves it.
class FakeClock {
 public:
  std::function<absl::Time()> AsFunction() {
    return [this] { return absl::FromUnixMicros(microseconds_.load()); };
  }
  absl::Time now() const { return absl::FromUnixMicros(microseconds_.load()); }
  void Advance(absl::Duration duration) { microseconds_ += absl::ToInt64Microseconds(duration); }

 private:
  std::atomic<int64_t> microseconds_{1'000'000};
};

// What became of one task: set once.
struct Fate {
  std::promise<std::optional<PoolTask::DropReason>> promise;  // nullopt: run
  std::future<std::optional<PoolTask::DropReason>> future = promise.get_future();
};

class TestTask : public PoolTask {
 public:
  TestTask(Fate* fate, std::function<void()> work, absl::Time deadline = absl::InfiniteFuture(), bool cancelled = false)
      : fate_(*fate), work_(std::move(work)), deadline_(deadline), cancelled_(cancelled) {}
  absl::Time deadline() const override { return deadline_; }
  bool cancelled() const override { return cancelled_; }
  void Run() override {
    if (work_) work_();
    fate_.promise.set_value(std::nullopt);
  }
  void Drop(DropReason reason) override { fate_.promise.set_value(reason); }

 private:
  Fate& fate_;
  const std::function<void()> work_;
  const absl::Time deadline_;
  const bool cancelled_;
};

WorkerPool::Admission Submit(WorkerPool& pool, Fate* fate, std::function<void()> work = nullptr,
                             absl::Time deadline = absl::InfiniteFuture(), bool cancelled = false) {
  std::unique_ptr<PoolTask> task = std::make_unique<TestTask>(fate, std::move(work), deadline, cancelled);
  return pool.Submit(task);
}

// Holds a worker until it is told to go on.
class Gate {
 public:
  std::function<void()> AsWork() {
    return [this] {
      entered_.set_value();
      opened_.get_future().wait();
    };
  }
  void WaitUntilEntered() { entered_.get_future().wait(); }
  void Open() { opened_.set_value(); }

 private:
  std::promise<void> entered_;
  std::promise<void> opened_;
};

WorkerPoolOptions OneThread(FakeClock& clock) {
  WorkerPoolOptions options;
  options.thread_count = 1;
  options.now = clock.AsFunction();
  options.min_queue_length = 2;
  options.initial_work_time = absl::Milliseconds(10);
  options.target_wait = absl::Milliseconds(30);
  return options;
}

TEST(WorkerPoolTest, RunsWhatItTakes) {
  WorkerPoolOptions options;
  options.thread_count = 3;
  WorkerPool pool(options);
  std::vector<std::unique_ptr<Fate>> fates;
  std::atomic<int> count{0};
  for (int i = 0; i < 10; ++i) {
    fates.push_back(std::make_unique<Fate>());
    ASSERT_EQ(Submit(pool, fates.back().get(), [&] { ++count; }), WorkerPool::Admission::kAccepted);
  }
  for (const auto& fate : fates) EXPECT_EQ(fate->future.get(), std::nullopt);
  EXPECT_EQ(count, 10);
}

TEST(WorkerPoolTest, QueueIsAsLongAsTheTargetWaitAllows) {
  FakeClock clock;
  WorkerPoolOptions options = OneThread(clock);
  WorkerPool pool(options);
  EXPECT_EQ(pool.queue_limit(), 3u);  // 1 thread x 30 ms / 10 ms
  options.thread_count = 4;
  WorkerPool four(options);
  EXPECT_EQ(four.queue_limit(), 12u);
  options.initial_work_time = absl::Seconds(1);
  WorkerPool slow(options);
  EXPECT_EQ(slow.queue_limit(), options.min_queue_length);
  options.initial_work_time = absl::Nanoseconds(1);
  WorkerPool fast(options);
  EXPECT_EQ(fast.queue_limit(), options.max_queue_length);
}

TEST(WorkerPoolTest, RefusesWhenFullAndLeavesTheTask) {
  FakeClock clock;
  WorkerPool pool(OneThread(clock));
  Gate gate;
  Fate held, first, second, third, refused;
  ASSERT_EQ(Submit(pool, &held, gate.AsWork()), WorkerPool::Admission::kAccepted);
  gate.WaitUntilEntered();
  for (Fate* fate : {&first, &second, &third}) ASSERT_EQ(Submit(pool, fate), WorkerPool::Admission::kAccepted);
  EXPECT_EQ(pool.queue_length(), 3u);
  std::unique_ptr<PoolTask> task = std::make_unique<TestTask>(&refused, nullptr);
  EXPECT_EQ(pool.Submit(task), WorkerPool::Admission::kFull);
  EXPECT_NE(task, nullptr);
  // Half of what waits: 3 x 10 ms / 2.
  EXPECT_EQ(pool.retry_delay(), absl::Milliseconds(15));
  gate.Open();
  for (Fate* fate : {&held, &first, &second, &third}) EXPECT_EQ(fate->future.get(), std::nullopt);
}

TEST(WorkerPoolTest, DropsWhatNobodyWaitsFor) {
  FakeClock clock;
  WorkerPool pool(OneThread(clock));
  Gate gate;
  Fate held, expired, cancelled, alive;
  ASSERT_EQ(Submit(pool, &held, gate.AsWork()), WorkerPool::Admission::kAccepted);
  gate.WaitUntilEntered();
  const absl::Time soon = clock.now() + absl::Milliseconds(5);
  Submit(pool, &expired, nullptr, soon);
  Submit(pool, &cancelled, nullptr, absl::InfiniteFuture(), /*cancelled=*/true);
  Submit(pool, &alive, nullptr, soon + absl::Seconds(1));
  clock.Advance(absl::Milliseconds(6));
  gate.Open();
  EXPECT_EQ(expired.future.get(), PoolTask::DropReason::kExpired);
  EXPECT_EQ(cancelled.future.get(), PoolTask::DropReason::kCancelled);
  EXPECT_EQ(alive.future.get(), std::nullopt);
}

TEST(WorkerPoolTest, LearnsThePace) {
  FakeClock clock;
  WorkerPoolOptions options = OneThread(clock);
  options.initial_work_time = absl::Milliseconds(1);
  options.min_queue_length = 1;
  const size_t before = [&] { return WorkerPool(options).queue_limit(); }();
  WorkerPool pool(options);
  for (int i = 0; i < 30; ++i) {
    Fate fate;
    ASSERT_EQ(Submit(pool, &fate, [&] { clock.Advance(absl::Milliseconds(100)); }), WorkerPool::Admission::kAccepted);
    fate.future.wait();
  }
  EXPECT_EQ(before, 30u);
  EXPECT_LE(pool.queue_limit(), 1u);
}

TEST(WorkerPoolTest, StopDropsWhatWaitsAndEndsWhatRuns) {
  FakeClock clock;
  WorkerPool pool(OneThread(clock));
  Gate gate;
  Fate running, waiting, late;
  ASSERT_EQ(Submit(pool, &running, gate.AsWork()), WorkerPool::Admission::kAccepted);
  gate.WaitUntilEntered();
  ASSERT_EQ(Submit(pool, &waiting), WorkerPool::Admission::kAccepted);
  std::future<void> stopped = std::async(std::launch::async, [&] { pool.Stop(); });
  EXPECT_EQ(waiting.future.get(), PoolTask::DropReason::kStopping);
  EXPECT_EQ(Submit(pool, &late), WorkerPool::Admission::kStopping);
  gate.Open();
  EXPECT_EQ(running.future.get(), std::nullopt);
  stopped.wait();
}

TEST(UsableCpuCountTest, IsPositive) { EXPECT_GE(UsableCpuCount(), 1); }

}  // namespace
}  // namespace sliceplan::rpc
