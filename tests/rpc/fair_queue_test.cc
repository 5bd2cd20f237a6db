#include "server/rpc/fair_queue.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace sliceplan::rpc {
namespace {

class IdleTask : public PoolTask {
 public:
  IdleTask(std::string client, double cost) : PoolTask({Lane::kSearch, cost, std::move(client)}) {}
  absl::Time deadline() const override { return absl::InfiniteFuture(); }
  bool cancelled() const override { return false; }
  void Run() override {}
  void Drop(const Shed&) override {}
};

FairQueue::Waiting Work(const std::string& client, double cost, absl::Time since = absl::UnixEpoch()) {
  return {std::make_unique<IdleTask>(client, cost), since};
}

// Takes the next and says that it took as long as expected.
WorkClaim Serve(FairQueue& queue) {
  const WorkClaim claim = queue.Pop().task->claim();
  queue.Settle(claim.client, claim.cost, claim.cost);
  return claim;
}

TEST(FairQueueTest, OneClientIsServedInOrder) {
  FairQueue queue;
  for (const double cost : {3.0, 1.0, 8.0, 2.0}) queue.Push(Work("a", cost));
  EXPECT_EQ(queue.size(), 4u);
  EXPECT_EQ(queue.cost(), 14);
  for (const double cost : {3.0, 1.0, 8.0, 2.0}) EXPECT_EQ(Serve(queue).cost, cost);
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.cost(), 0);
  EXPECT_EQ(queue.client_count(), 0u);
}

TEST(FairQueueTest, EqualWorkAlternates) {
  FairQueue queue;
  for (int i = 0; i < 6; ++i) queue.Push(Work("a", 1));
  for (int i = 0; i < 3; ++i) queue.Push(Work("b", 1));
  std::string order;
  while (!queue.empty()) order += Serve(queue).client;
  EXPECT_EQ(order, "abababaaa");
}

// Shreedhar and Varghese: between clients that always have work waiting, what was served differs by less than twice the
// largest piece and a quantum, whatever their pieces are.
TEST(FairQueueTest, BackloggedClientsGetTheSame) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    FairQueue queue;
    const int clients = 2 + static_cast<int>(random() % 6);
    std::map<std::string, double> served;
    const auto push = [&](const std::string& client) {
      // Each client has a size of its own: "0" the cheapest.
      const double largest = std::min(kMaxWorkCost, static_cast<double>(1 << std::stoi(client)));
      queue.Push(Work(client, std::max(1.0, largest * static_cast<double>(random() % 100) / 100)));
    };
    for (int i = 0; i < clients; ++i) {
      served[absl::StrCat(i)] = 0;
      for (int j = 0; j < 3; ++j) push(absl::StrCat(i));
    }
    for (int i = 0; i < 2000; ++i) {
      const WorkClaim claim = Serve(queue);
      served[claim.client] += claim.cost;
      push(claim.client);
      const auto [least, most] = std::minmax_element(served.begin(), served.end(),
                                                     [](const auto& a, const auto& b) { return a.second < b.second; });
      ASSERT_LE(most->second - least->second, 2 * kMaxWorkCost + 1) << "step " << i << " of round " << round;
    }
  }
}

// A client is charged for what its work really took: it gains nothing from work that looks cheap.
TEST(FairQueueTest, MeasuredTimeCounts) {
  constexpr double kHidden = 10;
  FairQueue queue;
  double served_seconds[2] = {0, 0};
  const std::string names[2] = {"hides", "honest"};
  for (const std::string& name : names) queue.Push(Work(name, 1));
  for (int i = 0; i < 2000; ++i) {
    const WorkClaim claim = queue.Pop().task->claim();
    const bool hides = claim.client == names[0];
    const double seconds = hides ? kHidden : 1;
    served_seconds[hides ? 0 : 1] += seconds;
    queue.Push(Work(claim.client, 1));
    queue.Settle(claim.client, claim.cost, seconds);
  }
  EXPECT_NEAR(served_seconds[0], served_seconds[1], 2 * kHidden + 1);
}

TEST(FairQueueTest, ADebtEndsWithTheBacklog) {
  FairQueue queue;
  queue.Push(Work("a", 1));
  const WorkClaim claim = queue.Pop().task->claim();
  queue.Settle(claim.client, claim.cost, 1000);
  queue.Push(Work("a", 1));
  queue.Push(Work("b", 1));
  EXPECT_EQ(Serve(queue).client, "a");
}

// One worker, time in units of the cheapest work. A greedy client keeps `backlog` pieces waiting; of a hundred calls
// one is somebody else's. It waits for the piece that runs and for at most one more.
TEST(FairQueueTest, ARareCallerWaitsForItsOwnShareWhateverOthersOffer) {
  for (const int backlog : {1, 10, 100, 1000}) {
    for (const int greedy_clients : {1, 3}) {
      FairQueue queue;
      std::mt19937 random(11);
      const auto refill = [&] {
        for (int i = 0; i < greedy_clients; ++i) {
          const std::string name = absl::StrCat("greedy", i);
          while (queue.CostOf(name) < backlog) queue.Push(Work(name, 1));
        }
      };
      double now = 0;
      double next_arrival = 50;
      double arrived = -1;
      double most = 0, sum = 0;
      int count = 0;
      while (count < 200) {
        refill();
        // What arrives while this piece runs has waited for its rest when the piece ends.
        const WorkClaim claim = Serve(queue);
        if (claim.client == "dashboard") {
          const double waited = now - arrived;
          most = std::max(most, waited);
          sum += waited;
          ++count;
          arrived = -1;
          next_arrival = now + 50 + static_cast<double>(random() % 1000) / 10;
        }
        now += 1;
        if (arrived < 0 && next_arrival <= now) {
          arrived = next_arrival;
          queue.Push(Work("dashboard", 1));
        }
      }
      EXPECT_LE(most, 1 + greedy_clients) << "backlog " << backlog << ", " << greedy_clients << " greedy";
      EXPECT_LE(sum / count, 0.5 + greedy_clients + 0.1);
    }
  }
}

TEST(FairQueueTest, LargestGivesItsNewest) {
  FairQueue queue;
  queue.Push(Work("a", 3));
  queue.Push(Work("b", 1));
  queue.Push(Work("b", 4));
  EXPECT_EQ(queue.LargestClient(), "b");
  EXPECT_EQ(queue.TakeNewest("b").task->claim().cost, 4);
  EXPECT_EQ(queue.CostOf("b"), 1);
  EXPECT_EQ(queue.LargestClient(), "a");
  EXPECT_EQ(queue.TakeNewest("a").task->claim().cost, 3);
  EXPECT_EQ(queue.client_count(), 1u);
  EXPECT_EQ(Serve(queue).client, "b");
}

TEST(FairQueueTest, TakeAllLeavesNothing) {
  FairQueue queue;
  for (const char* client : {"a", "b", "a"}) queue.Push(Work(client, 2));
  EXPECT_EQ(queue.TakeAll().size(), 3u);
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.cost(), 0);
  EXPECT_EQ(queue.CostOf("a"), 0);
}

}  // namespace
}  // namespace sliceplan::rpc
