// Replies that have been made and not yet been sent, because their reader is slow or does not read at all: gRPC keeps
// each until its bytes are gone. Their sum is bounded by asking those who hold more than a little to read first.
#ifndef SLICEPLAN_SERVER_RPC_UNREAD_REPLIES_H_
#define SLICEPLAN_SERVER_RPC_UNREAD_REPLIES_H_

#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace sliceplan::rpc {

// Thread-safe.
class UnreadReplies {
 public:
  // Gives the bytes back when it is destroyed. Must not outlive the UnreadReplies.
  class Receipt {
   public:
    Receipt() = default;
    Receipt(Receipt&& other) noexcept
        : of_(std::exchange(other.of_, nullptr)), connection_(std::move(other.connection_)), bytes_(other.bytes_) {}
    Receipt& operator=(Receipt&& other) noexcept {
      Receipt old(std::move(*this));
      of_ = std::exchange(other.of_, nullptr);
      connection_ = std::move(other.connection_);
      bytes_ = other.bytes_;
      return *this;
    }
    ~Receipt() {
      if (of_ != nullptr) of_->Remove(connection_, bytes_);
    }

   private:
    friend class UnreadReplies;
    Receipt(UnreadReplies* of, std::string connection, int64_t bytes)
        : of_(of), connection_(std::move(connection)), bytes_(bytes) {}

    UnreadReplies* of_ = nullptr;
    std::string connection_;
    int64_t bytes_ = 0;
  };

  // What each connection may hold although all together hold too much.
  static constexpr int64_t kLittleBytes = 512 << 10;

  // `max_bytes`: of all. Passed by what is being worked on when it is reached, and by a little of each connection.
  explicit UnreadReplies(int64_t max_bytes) : max_bytes_(max_bytes) {}

  // Whether a call of the connection ("ipv4:10.0.0.7:40000") should be answered: always while there is room, else while
  // it holds little.
  bool HasRoom(absl::string_view connection) const;
  Receipt Add(std::string connection, int64_t bytes);
  int64_t bytes() const;

 private:
  void Remove(const std::string& connection, int64_t bytes);

  const int64_t max_bytes_;
  mutable std::mutex mutex_;
  int64_t bytes_ = 0;
  absl::flat_hash_map<std::string, int64_t> bytes_of_;  // connections that hold any
};

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_UNREAD_REPLIES_H_
