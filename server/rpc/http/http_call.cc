#include "server/rpc/http/http_call.h"

namespace sliceplan::rpc {

absl::string_view HttpExchange::Header(absl::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return "";
}

bool HttpExchange::Wait(absl::Time until) {
  std::unique_lock lock(mutex);
  const auto has_ended = [this] { return ended; };
  if (until == absl::InfiniteFuture()) {
    changed.wait(lock, has_ended);
  } else {
    changed.wait_until(lock, absl::ToChronoTime(until), has_ended);
  }
  abandoned = !ended;
  return ended;
}

bool HttpCall::cancelled() const {
  if (exchange_->connection->gone()) return true;
  const std::lock_guard lock(exchange_->mutex);
  return exchange_->abandoned;
}

void HttpCall::AddReplyMetadata(absl::string_view key, absl::string_view value) {
  const std::lock_guard lock(exchange_->mutex);
  exchange_->reply_headers.emplace_back(std::string(key), std::string(value));
}

void HttpCall::Finish(const Result& result, std::optional<absl::Duration> pushback,
                      UnreadReplies::Receipt /*receipt*/) {
  {
    const std::lock_guard lock(exchange_->mutex);
    exchange_->ended = true;
    if (!result.ok()) exchange_->status = result.status();
    exchange_->pushback = pushback;
  }
  exchange_->changed.notify_one();
}

}  // namespace sliceplan::rpc
