#include "server/rpc/fair_queue.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace sliceplan::rpc {
namespace {

// What each client may take in a round. The cheapest work costs as much.
constexpr double kQuantum = 1;
// A client that took much more than it seemed to ask for is not kept out for ever.
constexpr double kMaxDebt = 4 * kMaxWorkCost;

}  // namespace

double FairQueue::CostOf(const std::string& client) const {
  const auto found = clients_.find(client);
  return found == clients_.end() ? 0 : found->second.waiting_cost;
}

void FairQueue::Push(Waiting work) {
  const double cost = work.task->claim().cost;
  const auto found = clients_.try_emplace(work.task->claim().client).first;
  Client& client = found->second;
  if (client.waiting.empty()) turns_.push_back(found);
  client.waiting.push_back(std::move(work));
  client.waiting_cost += cost;
  cost_ += cost;
  ++size_;
}

FairQueue::Waiting FairQueue::Pop() {
  const auto cost_of_next = [](const Client& client) { return client.waiting.front().task->claim().cost; };
  // Rounds in which nobody could take anything are skipped at once.
  double rounds = HUGE_VAL;
  for (const Clients::iterator turn : turns_) {
    const Client& client = turn->second;
    rounds = std::min(rounds, std::max(0.0, std::ceil((cost_of_next(client) - client.deficit) / kQuantum)));
  }
  if (rounds > 1) {
    for (const Clients::iterator turn : turns_) turn->second.deficit += (rounds - 1) * kQuantum;
  }
  while (true) {
    Client& first = turns_.front()->second;
    if (first.deficit < cost_of_next(first)) first.deficit += kQuantum;
    if (first.deficit >= cost_of_next(first)) break;
    // It still has to save up.
    turns_.splice(turns_.end(), turns_, turns_.begin());
  }
  const Clients::iterator found = turns_.front();
  Client& client = found->second;
  Waiting work = std::move(client.waiting.front());
  client.waiting.pop_front();
  const double cost = work.task->claim().cost;
  client.deficit -= cost;
  ++client.running;
  if (!client.waiting.empty() && client.deficit < cost_of_next(client)) {
    turns_.splice(turns_.end(), turns_, turns_.begin());
  }
  Removed(found, cost);
  return work;
}

void FairQueue::Settle(const std::string& name, double cost, double actual) {
  const auto found = clients_.find(name);
  if (found == clients_.end()) return;
  Client& client = found->second;
  --client.running;
  client.deficit = std::max(client.deficit + cost - actual, -kMaxDebt);
  ForgetIfIdle(found);
}

const std::string& FairQueue::LargestClient() const {
  return (*std::max_element(
              turns_.begin(), turns_.end(),
              [](Clients::iterator a, Clients::iterator b) { return a->second.waiting_cost < b->second.waiting_cost; }))
      ->first;
}

FairQueue::Waiting FairQueue::TakeNewest(const std::string& name) {
  const auto found = clients_.find(name);
  Waiting work = std::move(found->second.waiting.back());
  found->second.waiting.pop_back();
  Removed(found, work.task->claim().cost);
  ForgetIfIdle(found);
  return work;
}

std::deque<FairQueue::Waiting> FairQueue::TakeAll() {
  std::deque<Waiting> all;
  for (const Clients::iterator turn : turns_) {
    std::move(turn->second.waiting.begin(), turn->second.waiting.end(), std::back_inserter(all));
    turn->second.waiting.clear();
    turn->second.waiting_cost = 0;
  }
  turns_.clear();
  size_ = 0;
  cost_ = 0;
  return all;
}

void FairQueue::Removed(Clients::iterator found, double cost) {
  Client& client = found->second;
  client.waiting_cost = client.waiting.empty() ? 0 : client.waiting_cost - cost;
  if (client.waiting.empty()) {
    turns_.remove(found);
    client.deficit = std::min(client.deficit, 0.0);
  }
  --size_;
  cost_ = size_ == 0 ? 0 : cost_ - cost;
}

void FairQueue::ForgetIfIdle(Clients::iterator found) {
  if (found->second.waiting.empty() && found->second.running == 0) clients_.erase(found);
}

}  // namespace sliceplan::rpc
