// One piece of work for the worker pool, and why work is refused.
#ifndef SLICEPLAN_SERVER_RPC_POOL_TASK_H_
#define SLICEPLAN_SERVER_RPC_POOL_TASK_H_

#include <cstddef>
#include <string>
#include <utility>

#include "absl/time/time.h"

namespace sliceplan::rpc {

// Work of one lane never waits behind work of the other.
enum class Lane {
  kQuick,   // milliseconds: a config to read, a list to filter
  kSearch,  // a search for plans, a load to replay: up to the caller's deadline
};
inline constexpr size_t kLaneCount = 2;
inline constexpr Lane kLanes[kLaneCount] = {Lane::kQuick, Lane::kSearch};
// "quick", "search".
const char* LaneName(Lane lane);

// Why work was refused, or dropped after it had been accepted.
enum class ShedReason {
  kQueueFull,    // more waits than can be answered in time
  kClientShare,  // the same, and its client has more waiting than its part
  kDraining,     // the server is going away
  kExpired,      // its deadline passed while it waited
  kCancelled,    // its caller left while it waited
  kUnread,       // its connection does not read the replies it has
};
inline constexpr size_t kShedReasonCount = 6;
inline constexpr ShedReason kShedReasons[kShedReasonCount] = {ShedReason::kQueueFull, ShedReason::kClientShare,
                                                              ShedReason::kDraining,  ShedReason::kExpired,
                                                              ShedReason::kCancelled, ShedReason::kUnread};
// "queue_full", "client_share", "draining", "expired", "cancelled", "unread".
const char* ShedReasonName(ShedReason reason);

struct Shed {
  ShedReason reason = ShedReason::kQueueFull;
  // When to come back; zero unless the reason is kQueueFull, kClientShare or kUnread.
  absl::Duration retry_delay;
};

// What a piece of work claims of the pool.
struct WorkClaim {
  Lane lane = Lane::kQuick;
  // How much more than the cheapest work of its lane it is expected to take. 1 to kMaxWorkCost.
  double cost = 1;
  // Who asks: work is shared out evenly between clients.
  std::string client;
};
inline constexpr double kMaxWorkCost = 64;

// Exactly one of Run and Drop is called, once. deadline and cancelled are called from any thread.
class PoolTask {
 public:
  explicit PoolTask(WorkClaim claim = {}) : claim_(std::move(claim)) {}
  virtual ~PoolTask() = default;

  const WorkClaim& claim() const { return claim_; }
  virtual absl::Time deadline() const = 0;
  virtual bool cancelled() const = 0;
  virtual void Run() = 0;
  virtual void Drop(const Shed& shed) = 0;

 private:
  const WorkClaim claim_;
};

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_POOL_TASK_H_
