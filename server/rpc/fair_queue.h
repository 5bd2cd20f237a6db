// Work of one lane that waits, shared out evenly between clients by deficit round robin (Shreedhar and Varghese,
// "Efficient Fair Queueing Using Deficit Round Robin", SIGCOMM 1995), with two additions: a client is charged for the
// time that its work really took, and when the queue is full the client with the most waiting gives way, so that a
// newcomer always finds room.
//
// Knows no threads and no clock. Not thread-safe.
#ifndef SLICEPLAN_SERVER_RPC_FAIR_QUEUE_H_
#define SLICEPLAN_SERVER_RPC_FAIR_QUEUE_H_

#include <cstddef>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "server/rpc/pool_task.h"

namespace sliceplan::rpc {

class FairQueue {
 public:
  struct Waiting {
    std::unique_ptr<PoolTask> task;
    absl::Time since;
  };

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  // Of all that waits, in units of WorkClaim::cost.
  double cost() const { return cost_; }
  // Clients that have work waiting.
  size_t client_count() const { return turns_.size(); }
  // Cost of what a client has waiting.
  double CostOf(const std::string& client) const;

  void Push(Waiting work);
  // The next in turn. Requires !empty(). Its client is charged the expected cost; Settle corrects that.
  Waiting Pop();
  // Says that popped work of `client` with the expected `cost` has ended and really cost `actual`: 0 when it was
  // dropped.
  void Settle(const std::string& client, double cost, double actual);
  // The client with the most waiting. Requires !empty().
  const std::string& LargestClient() const;
  // The newest work of a client, which must have some.
  Waiting TakeNewest(const std::string& client);
  // Everything, oldest of each client first.
  std::deque<Waiting> TakeAll();

 private:
  struct Client {
    std::deque<Waiting> waiting;
    double waiting_cost = 0;
    // What it may still take in this round; below zero: what it has taken in advance.
    double deficit = 0;
    int running = 0;
  };
  using Clients = std::map<std::string, Client>;

  // Accounts for work that left the queue of `found`, and ends its turn when that was the last.
  void Removed(Clients::iterator found, double cost);
  // Forgets a client that has nothing waiting or running.
  void ForgetIfIdle(Clients::iterator found);

  Clients clients_;
  // Those with work waiting; the first has its turn.
  std::list<Clients::iterator> turns_;
  size_t size_ = 0;
  double cost_ = 0;
};

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_FAIR_QUEUE_H_
