#include "server/rpc/worker_pool.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
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
  std::promise<std::optional<ShedReason>> promise;  // nullopt: run
  std::future<std::optional<ShedReason>> future = promise.get_future();
};

class TestTask : public PoolTask {
 public:
  TestTask(WorkClaim claim, Fate* fate, std::function<void()> work, absl::Time deadline = absl::InfiniteFuture(),
           bool cancelled = false)
      : PoolTask(std::move(claim)), fate_(*fate), work_(std::move(work)), deadline_(deadline), cancelled_(cancelled) {}
  absl::Time deadline() const override { return deadline_; }
  bool cancelled() const override { return cancelled_; }
  void Run() override {
    if (work_) work_();
    fate_.promise.set_value(std::nullopt);
  }
  void Drop(const Shed& shed) override { fate_.promise.set_value(shed.reason); }

 private:
  Fate& fate_;
  const std::function<void()> work_;
  const absl::Time deadline_;
  const bool cancelled_;
};

const WorkClaim kQuick = {Lane::kQuick, 1, "a"};
const WorkClaim kSearch = {Lane::kSearch, 1, "a"};

std::optional<ShedReason> Submit(WorkerPool& pool, const WorkClaim& claim, Fate* fate,
                                 std::function<void()> work = nullptr, absl::Time deadline = absl::InfiniteFuture(),
                                 bool cancelled = false) {
  std::unique_ptr<PoolTask> task = std::make_unique<TestTask>(claim, fate, std::move(work), deadline, cancelled);
  const std::optional<Shed> shed = pool.Submit(task);
  EXPECT_EQ(task == nullptr, !shed.has_value());
  return shed.has_value() ? std::optional(shed->reason) : std::nullopt;
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

// One thread for searches, one for cheap work.
WorkerPoolOptions OneThread(FakeClock& clock) {
  WorkerPoolOptions options;
  options.thread_count = 1;
  options.now = clock.AsFunction();
  options.min_queue_cost = 2;
  options.initial_work_time = {absl::Milliseconds(10), absl::Milliseconds(10)};
  options.target_wait = absl::Milliseconds(30);
  return options;
}

// A pool of one thread that holds one search, so that what comes after waits.
class HeldPool {
 public:
  explicit HeldPool(const WorkerPoolOptions& options) : pool_(options) {
    EXPECT_EQ(Submit(pool_, {Lane::kSearch, 1, "holder"}, &held_, gate_.AsWork()), std::nullopt);
    gate_.WaitUntilEntered();
  }
  ~HeldPool() {
    if (held_.future.valid()) Open();
  }
  // Lets the pool go on.
  void Open() {
    gate_.Open();
    EXPECT_EQ(held_.future.get(), std::nullopt);
  }
  WorkerPool& operator*() { return pool_; }
  WorkerPool* operator->() { return &pool_; }

 private:
  Gate gate_;
  Fate held_;
  WorkerPool pool_;
};

TEST(WorkerPoolTest, RunsWhatItTakes) {
  WorkerPoolOptions options;
  options.thread_count = 3;
  WorkerPool pool(options);
  std::vector<std::unique_ptr<Fate>> fates;
  std::atomic<int> count{0};
  for (int i = 0; i < 20; ++i) {
    fates.push_back(std::make_unique<Fate>());
    const WorkClaim& claim = i % 2 == 0 ? kQuick : kSearch;
    ASSERT_EQ(Submit(pool, claim, fates.back().get(), [&] { ++count; }), std::nullopt);
  }
  for (const auto& fate : fates) EXPECT_EQ(fate->future.get(), std::nullopt);
  EXPECT_EQ(count, 20);
}

TEST(WorkerPoolTest, CheapWorkNeverWaitsBehindSearches) {
  for (const int threads : {1, 2, 4}) {
    WorkerPoolOptions options;
    options.thread_count = threads;
    WorkerPool pool(options);
    // As many searches as there are threads for them, and one more.
    std::vector<std::unique_ptr<Gate>> gates;
    std::vector<std::unique_ptr<Fate>> fates;
    for (int i = 0; i <= threads; ++i) {
      gates.push_back(std::make_unique<Gate>());
      fates.push_back(std::make_unique<Fate>());
      ASSERT_EQ(Submit(pool, kSearch, fates.back().get(), gates.back()->AsWork()), std::nullopt);
    }
    for (int i = 0; i < threads; ++i) gates[static_cast<size_t>(i)]->WaitUntilEntered();
    EXPECT_EQ(pool.running_count(Lane::kSearch), static_cast<size_t>(threads));
    EXPECT_EQ(pool.queue_length(Lane::kSearch), 1u);
    for (int i = 0; i < 10; ++i) {
      Fate quick;
      ASSERT_EQ(Submit(pool, kQuick, &quick), std::nullopt);
      EXPECT_EQ(quick.future.get(), std::nullopt);
    }
    for (const auto& gate : gates) gate->Open();
    for (const auto& fate : fates) EXPECT_EQ(fate->future.get(), std::nullopt);
  }
}

// Comes again as long as no search has run.
class FloodTask : public PoolTask {
 public:
  FloodTask(WorkerPool* pool, const std::atomic<bool>* searched)
      : PoolTask(kQuick), pool_(*pool), searched_(*searched) {}
  absl::Time deadline() const override { return absl::InfiniteFuture(); }
  bool cancelled() const override { return false; }
  void Run() override {
    std::unique_ptr<PoolTask> next = std::make_unique<FloodTask>(&pool_, &searched_);
    if (!searched_) pool_.Submit(next);
  }
  void Drop(const Shed&) override {}

 private:
  WorkerPool& pool_;
  const std::atomic<bool>& searched_;
};

TEST(WorkerPoolTest, SearchesDoNotStarveBehindCheapWork) {
  WorkerPoolOptions options;
  options.thread_count = 1;
  std::atomic<bool> searched{false};
  WorkerPool pool(options);
  for (int i = 0; i < 4; ++i) {
    std::unique_ptr<PoolTask> flood = std::make_unique<FloodTask>(&pool, &searched);
    ASSERT_EQ(pool.Submit(flood), std::nullopt);
  }
  Fate search;
  ASSERT_EQ(Submit(pool, kSearch, &search, [&] { searched = true; }), std::nullopt);
  EXPECT_EQ(search.future.get(), std::nullopt);
}

TEST(WorkerPoolTest, QueueIsAsLongAsTheTargetWaitAllows) {
  FakeClock clock;
  WorkerPoolOptions options = OneThread(clock);
  options.initial_work_time = {absl::Milliseconds(10), absl::Milliseconds(5)};
  WorkerPool pool(options);
  EXPECT_EQ(pool.queue_limit(Lane::kQuick), 3u);  // 1 thread x 30 ms / 10 ms
  EXPECT_EQ(pool.queue_limit(Lane::kSearch), 6u);
  options.thread_count = 4;
  WorkerPool four(options);
  EXPECT_EQ(four.queue_limit(Lane::kQuick), 12u);
  options.initial_work_time[0] = absl::Seconds(1);
  WorkerPool slow(options);
  EXPECT_EQ(slow.queue_limit(Lane::kQuick), options.min_queue_cost);
  options.initial_work_time[0] = absl::Nanoseconds(1);
  WorkerPool fast(options);
  EXPECT_EQ(fast.queue_limit(Lane::kQuick), options.max_queue_cost);
}

TEST(WorkerPoolTest, RefusesWhenFullAndLeavesTheTask) {
  FakeClock clock;
  HeldPool pool(OneThread(clock));
  Fate waiting[3], refused;
  for (Fate& fate : waiting) ASSERT_EQ(Submit(*pool, kSearch, &fate), std::nullopt);
  EXPECT_EQ(pool->queue_length(Lane::kSearch), 3u);
  std::unique_ptr<PoolTask> task = std::make_unique<TestTask>(kSearch, &refused, nullptr);
  const std::optional<Shed> shed = pool->Submit(task);
  ASSERT_TRUE(shed.has_value());
  EXPECT_NE(task, nullptr);
  EXPECT_EQ(shed->reason, ShedReason::kQueueFull);
  // Half of what waits: 3 x 10 ms / 2.
  EXPECT_EQ(shed->retry_delay, absl::Milliseconds(15));
  // The other lane has a queue of its own.
  Fate quick;
  EXPECT_EQ(Submit(*pool, kQuick, &quick), std::nullopt);
  pool.Open();
  for (Fate& fate : waiting) EXPECT_EQ(fate.future.get(), std::nullopt);
  EXPECT_EQ(quick.future.get(), std::nullopt);
}

struct FullCase {
  const char* name;
  std::vector<WorkClaim> waiting;  // oldest first; the limit is a cost of 3
  WorkClaim comes;
  std::optional<ShedReason> answer;
  std::vector<size_t> displaced;  // of `waiting`
};

const FullCase kFullCases[] = {
    {"alone",
     {{Lane::kSearch, 1, "a"}, {Lane::kSearch, 1, "a"}, {Lane::kSearch, 1, "a"}},
     {Lane::kSearch, 1, "a"},
     ShedReason::kQueueFull,
     {}},
    {"wide_fills_it_at_once", {{Lane::kSearch, 8, "a"}}, {Lane::kSearch, 1, "a"}, ShedReason::kQueueFull, {}},
    {"newcomer_displaces_newest_of_greedy",
     {{Lane::kSearch, 1, "a"}, {Lane::kSearch, 1, "a"}, {Lane::kSearch, 1, "a"}},
     {Lane::kSearch, 1, "b"},
     std::nullopt,
     {2}},
    {"wide_of_a_newcomer_does_not_displace_cheaper",
     {{Lane::kSearch, 3, "a"}},
     {Lane::kSearch, 8, "b"},
     ShedReason::kClientShare,
     {}},
    {"over_its_share",
     {{Lane::kSearch, 1, "a"}, {Lane::kSearch, 1, "a"}, {Lane::kSearch, 1, "b"}},
     {Lane::kSearch, 1, "a"},
     ShedReason::kClientShare,
     {}},
    {"at_the_same_as_the_largest",
     {{Lane::kSearch, 1, "a"}, {Lane::kSearch, 1, "b"}, {Lane::kSearch, 1, "c"}},
     {Lane::kSearch, 1, "d"},
     ShedReason::kClientShare,
     {}},
};

TEST(WorkerPoolTest, AFullQueueIsSharedOut) {
  for (const FullCase& c : kFullCases) {
    SCOPED_TRACE(c.name);
    FakeClock clock;
    HeldPool pool(OneThread(clock));
    std::vector<Fate> fates(c.waiting.size());
    for (size_t i = 0; i < fates.size(); ++i) ASSERT_EQ(Submit(*pool, c.waiting[i], &fates[i]), std::nullopt);
    Fate fate;
    EXPECT_EQ(Submit(*pool, c.comes, &fate), c.answer);
    pool.Open();
    for (size_t i = 0; i < fates.size(); ++i) {
      const bool displaced = std::find(c.displaced.begin(), c.displaced.end(), i) != c.displaced.end();
      EXPECT_EQ(fates[i].future.get(), displaced ? std::optional(ShedReason::kClientShare) : std::nullopt) << i;
    }
    if (!c.answer.has_value()) {
      EXPECT_EQ(fate.future.get(), std::nullopt);
    }
  }
}

TEST(WorkerPoolTest, DropsWhatNobodyWaitsFor) {
  FakeClock clock;
  HeldPool pool(OneThread(clock));
  Fate expired, cancelled, alive;
  const absl::Time soon = clock.now() + absl::Milliseconds(5);
  Submit(*pool, kSearch, &expired, nullptr, soon);
  Submit(*pool, kSearch, &cancelled, nullptr, absl::InfiniteFuture(), /*cancelled=*/true);
  Submit(*pool, kSearch, &alive, nullptr, soon + absl::Seconds(1));
  clock.Advance(absl::Milliseconds(6));
  pool.Open();
  EXPECT_EQ(expired.future.get(), ShedReason::kExpired);
  EXPECT_EQ(cancelled.future.get(), ShedReason::kCancelled);
  EXPECT_EQ(alive.future.get(), std::nullopt);
}

TEST(WorkerPoolTest, LearnsThePacePerCost) {
  FakeClock clock;
  WorkerPoolOptions options = OneThread(clock);
  options.initial_work_time = {absl::Milliseconds(1), absl::Milliseconds(1)};
  options.target_wait = absl::Milliseconds(1000);
  options.min_queue_cost = 1;
  WorkerPool pool(options);
  EXPECT_EQ(pool.queue_limit(Lane::kSearch), 1000u);
  for (int i = 0; i < 100; ++i) {
    Fate fate;
    ASSERT_EQ(Submit(pool, {Lane::kSearch, 4, "a"}, &fate, [&] { clock.Advance(absl::Milliseconds(400)); }),
              std::nullopt);
    fate.future.wait();
  }
  // 400 ms for a cost of 4, the last of which may not have been counted yet: 1 s is enough for 10.
  EXPECT_EQ(pool.queue_limit(Lane::kSearch), 10u);
  EXPECT_EQ(pool.queue_limit(Lane::kQuick), 1000u);
}

// A clock that is set while work runs says nothing about the work: the queue keeps its length.
TEST(WorkerPoolTest, ASetClockIsNoMeasurement) {
  for (const absl::Duration jump : {-absl::Hours(1), -absl::Milliseconds(5)}) {
    FakeClock clock;
    WorkerPool pool(OneThread(clock));
    const size_t limit = pool.queue_limit(Lane::kSearch);
    for (int i = 0; i < 20; ++i) {
      Fate fate;
      ASSERT_EQ(Submit(pool, kSearch, &fate, [&clock, jump] { clock.Advance(jump); }), std::nullopt);
      ASSERT_EQ(fate.future.get(), std::nullopt);
    }
    EXPECT_EQ(pool.queue_limit(Lane::kSearch), limit) << jump;
  }
}

TEST(WorkerPoolTest, StopDropsWhatWaitsAndEndsWhatRuns) {
  FakeClock clock;
  HeldPool pool(OneThread(clock));
  Fate waiting, late;
  ASSERT_EQ(Submit(*pool, kSearch, &waiting), std::nullopt);
  std::future<void> stopped = std::async(std::launch::async, [&] { pool->Stop(); });
  EXPECT_EQ(waiting.future.get(), ShedReason::kDraining);
  EXPECT_EQ(Submit(*pool, kSearch, &late), ShedReason::kDraining);
  pool.Open();
  stopped.wait();
}

TEST(UsableCpuCountTest, IsPositive) { EXPECT_GE(UsableCpuCount(), 1); }

}  // namespace
}  // namespace sliceplan::rpc
