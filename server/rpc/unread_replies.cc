#include "server/rpc/unread_replies.h"

namespace sliceplan::rpc {

bool UnreadReplies::HasRoom(absl::string_view connection) const {
  const std::lock_guard lock(mutex_);
  if (bytes_ < max_bytes_) return true;
  const auto held = bytes_of_.find(connection);
  return held == bytes_of_.end() || held->second < kLittleBytes;
}

UnreadReplies::Receipt UnreadReplies::Add(std::string connection, int64_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    bytes_ += bytes;
    bytes_of_[connection] += bytes;
  }
  return Receipt(this, std::move(connection), bytes);
}

int64_t UnreadReplies::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

void UnreadReplies::Remove(const std::string& connection, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  bytes_ -= bytes;
  const auto held = bytes_of_.find(connection);
  held->second -= bytes;
  if (held->second == 0) bytes_of_.erase(held);
}

}  // namespace sliceplan::rpc
