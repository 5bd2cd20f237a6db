#include "server/rpc/http/http_connections.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/time/clock.h"
#include "server/rpc/tcp_sockets.h"

namespace sliceplan::rpc {
namespace {

// How often connections are looked at while there are some.
constexpr std::chrono::milliseconds kPeriod(50);
// A call that takes longer than this is worth looking whether its caller is still there.
constexpr absl::Duration kLongCall = absl::Milliseconds(100);
// Few threads are left when less than one in this many is free.
constexpr size_t kReserveShare = 4;

// The other side has closed, or reset. Also true for a client that only says that it will send no more: HTTP clients
// that wait for an answer keep their end open.
bool HasLeft(int fd) {
  pollfd polled = {fd, POLLRDHUP, 0};
  return poll(&polled, 1, 0) > 0 && (polled.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

}  // namespace

HttpConnections::HttpConnections(size_t max_open)
    : max_open_(max_open), never_ready_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), watcher_([this] { Watch(); }) {}

HttpConnections::~HttpConnections() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  watcher_.join();
  close(never_ready_);
}

HttpConnection* HttpConnections::Open() {
  auto made = std::make_shared<HttpConnection>();
  HttpConnection* const connection = made.get();
  connection->since_ = absl::Now();
  const std::lock_guard lock(mutex_);
  open_.emplace(connection, std::move(made));
  pressed_ = (max_open_ - std::min(max_open_, open_.size())) * kReserveShare < max_open_;
  if (open_.size() == 1) changed_.notify_all();
  return connection;
}

void HttpConnections::Identify(HttpConnection* connection, absl::string_view address, int port) {
  const std::lock_guard lock(mutex_);
  if (connection->port_ != 0) return;
  connection->address_ = std::string(address);
  connection->port_ = port;
}

void HttpConnections::SetPhase(HttpConnection* connection, HttpPhase phase) {
  const std::lock_guard lock(mutex_);
  connection->phase_ = phase;
  connection->since_ = absl::Now();
}

void HttpConnections::Close(HttpConnection* connection) {
  const std::lock_guard lock(mutex_);
  open_.erase(connection);
  pressed_ = (max_open_ - std::min(max_open_, open_.size())) * kReserveShare < max_open_;
  if (closing_ && open_.empty()) changed_.notify_all();
}

size_t HttpConnections::open_count() const {
  const std::lock_guard lock(mutex_);
  return open_.size();
}

absl::Duration HttpConnections::LimitLocked(const HttpConnection& connection) const {
  if (connection.phase_ == HttpPhase::kAnswering) return absl::InfiniteDuration();
  if (pressed_) return kPressedTime;
  switch (connection.phase_) {
    case HttpPhase::kIdle: return kIdleTime;
    case HttpPhase::kNew:
    case HttpPhase::kReading: return kReadTime;
    default: return kWriteTime;
  }
}

void HttpConnections::LookAtSocketsLocked(absl::Time now) {
  absl::flat_hash_map<Client, HttpConnection*> known;
  for (const auto& [connection, unused] : open_) {
    if (connection->port_ != 0) known[{connection->address_, connection->port_}] = connection;
  }
  absl::flat_hash_map<Client, absl::Time> silent;
  for (TcpSocket& socket : TcpSocketsOf(port_)) {
    if (!socket.peer_port.has_value()) continue;
    Client client(std::move(socket.peer_address), *socket.peer_port);
    if (const auto found = known.find(client); found != known.end()) {
      found->second->fd_ = socket.fd;
      continue;
    }
    const auto seen = silent_since_.find(client);
    const absl::Time since = seen == silent_since_.end() ? now : seen->second;
    silent[std::move(client)] = since;
    const bool overdue = pressed_ && now - since > kPressedTime;
    if (!overdue && !closing_) continue;
    if (overdue) ++cut_;
    // A request that has arrived in the meantime is still read and answered.
    shutdown(socket.fd, SHUT_RD);
  }
  silent_since_ = std::move(silent);
}

void HttpConnections::ShutLocked(HttpConnection& connection, int how) {
  if (connection.fd_ >= 0 && !connection.shut_) {
    // Its thread sees the end and closes the socket; until it says so to Close, the descriptor is this connection's.
    shutdown(connection.fd_, how);
    connection.shut_ = true;
  }
}

void HttpConnections::Watch() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (open_.empty()) {
      changed_.wait(lock, [this] { return stopping_ || !open_.empty(); });
    } else {
      changed_.wait_for(lock, kPeriod, [this] { return stopping_; });
    }
    const absl::Time now = absl::Now();
    std::vector<HttpConnection*> overdue;
    std::vector<HttpConnection*> answering;
    std::vector<HttpConnection*> idle;
    bool look = false;
    for (const auto& [connection, unused] : open_) {
      const absl::Duration age = now - connection->since_;
      if (connection->phase_ == HttpPhase::kNew) {
        // With threads enough civetweb's own limit, kReadTime, will do.
        look |= pressed_ || closing_;
        continue;
      }
      if (age > LimitLocked(*connection)) {
        overdue.push_back(connection);
      } else if (connection->phase_ == HttpPhase::kAnswering && age > kLongCall) {
        answering.push_back(connection);
      } else if (closing_ && connection->phase_ == HttpPhase::kIdle) {
        idle.push_back(connection);
      } else {
        continue;
      }
      look |= connection->fd_ < 0;
    }
    if (look) LookAtSocketsLocked(now);
    for (HttpConnection* const connection : overdue) {
      if (!connection->shut_) ++cut_;
      ShutLocked(*connection, SHUT_RDWR);
    }
    for (HttpConnection* const connection : answering) {
      if (connection->fd_ >= 0 && HasLeft(connection->fd_)) connection->gone_ = true;
    }
    for (HttpConnection* const connection : idle) ShutLocked(*connection, SHUT_RD);
  }
}

void HttpConnections::Drain(absl::Duration grace) {
  draining_ = true;
  for (const TcpSocket& socket : TcpSocketsOf(port_)) {
    if (!socket.listening) continue;
    shutdown(socket.fd, SHUT_RDWR);
    // civetweb would go on polling the dead listener without a pause.
    dup2(never_ready_, socket.fd);
  }
  const absl::Time end = absl::Now() + grace;
  std::unique_lock lock(mutex_);
  closing_ = true;
  while (!open_.empty() && absl::Now() < end) {
    changed_.wait_for(lock, absl::ToChronoMilliseconds(std::min(end - absl::Now(), absl::FromChrono(kPeriod))));
  }
  for (const auto& [connection, unused] : open_) connection->gone_ = true;
}

void HttpConnections::WakeListener() {
  const uint64_t one = 1;
  if (write(never_ready_, &one, sizeof(one)) != sizeof(one)) return;  // it is awake already
}

}  // namespace sliceplan::rpc
