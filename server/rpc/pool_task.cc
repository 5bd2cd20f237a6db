#include "server/rpc/pool_task.h"

namespace sliceplan::rpc {

const char* LaneName(Lane lane) { return lane == Lane::kQuick ? "quick" : "search"; }

const char* ShedReasonName(ShedReason reason) {
  switch (reason) {
    case ShedReason::kQueueFull: return "queue_full";
    case ShedReason::kClientShare: return "client_share";
    case ShedReason::kUnread: return "unread";
    case ShedReason::kDraining: return "draining";
    case ShedReason::kExpired: return "expired";
    case ShedReason::kCancelled: break;
  }
  return "cancelled";
}

}  // namespace sliceplan::rpc
