// The connections of the HTTP port. civetweb gives each a thread for as long as it is open, so a client that sends or
// reads slowly would hold a thread; this watches over them from a thread of its own.
//
// A connection has kReadTime for a request to arrive and kWriteTime to take a reply. While few threads are left it has
// kPressedTime, and replies ask the client to close: so whoever opens connections and says nothing holds a thread for
// that long. Calls being answered have their deadline instead; a caller that closes its end is noticed.
#ifndef SLICEPLAN_SERVER_RPC_HTTP_HTTP_CONNECTIONS_H_
#define SLICEPLAN_SERVER_RPC_HTTP_HTTP_CONNECTIONS_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace sliceplan::rpc {

// What a connection's thread is doing: waiting for the first request, for another one, for the body of one; waiting for
// an answer; sending it.
enum class HttpPhase { kNew, kIdle, kReading, kAnswering, kWriting };

class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  // Whether the client closed its end while it was being answered, or the server ends.
  bool gone() const { return gone_.load(std::memory_order_relaxed); }

 private:
  friend class HttpConnections;

  std::atomic<bool> gone_ = false;
  // Guarded by the mutex of HttpConnections.
  std::string address_;  // of the client; empty until its first request
  int port_ = 0;
  HttpPhase phase_ = HttpPhase::kNew;
  absl::Time since_;
  int fd_ = -1;  // unknown until it is needed
  bool shut_ = false;
};

class HttpConnections {
 public:
  static constexpr absl::Duration kReadTime = absl::Seconds(10);
  static constexpr absl::Duration kIdleTime = absl::Seconds(60);
  static constexpr absl::Duration kWriteTime = absl::Seconds(10);
  static constexpr absl::Duration kPressedTime = absl::Milliseconds(250);

  // `max_open`: as many as there are threads.
  explicit HttpConnections(size_t max_open);
  ~HttpConnections();

  // The port that the connections came in on; before the first opens.
  void SetPort(int port) { port_ = port; }

  // From the connection's thread: Open first, Close last and before the socket is closed. civetweb tells where the
  // client is only with a request.
  HttpConnection* Open();
  void Identify(HttpConnection* connection, absl::string_view address, int port);
  void SetPhase(HttpConnection* connection, HttpPhase phase);
  void Close(HttpConnection* connection);

  // Whether replies should ask the client to close the connection.
  bool ShouldClose() const { return draining_.load() || pressed_.load(); }
  // From now on replies ask for that; connections stay open.
  void BeginDrain() { draining_ = true; }
  // Closes the listener, and each connection when it is idle. Returns when all are closed or `grace` is over; calls
  // that run on are then told that nobody waits for them.
  void Drain(absl::Duration grace);
  // Wakes civetweb, which otherwise looks only every two seconds whether it should stop. After Drain.
  void WakeListener();

  size_t open_count() const;
  // Connections that were closed because they were slow.
  uint64_t cut_count() const { return cut_.load(); }

 private:
  void Watch();
  // How long the connection may stay in its phase.
  absl::Duration LimitLocked(const HttpConnection& connection) const;
  // Finds the sockets of those that need theirs; ends silent ones when they are overdue, or all in a drain.
  void LookAtSocketsLocked(absl::Time now);
  void ShutLocked(HttpConnection& connection, int how);

  const size_t max_open_;
  const int never_ready_;  // an eventfd, in the place of the closed listener
  int port_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  absl::flat_hash_map<HttpConnection*, std::shared_ptr<HttpConnection>> open_;
  using Client = std::pair<std::string, int>;
  absl::flat_hash_map<Client, absl::Time> silent_since_;  // sockets without a request yet
  std::atomic<bool> draining_ = false;
  std::atomic<bool> pressed_ = false;
  std::atomic<uint64_t> cut_ = 0;
  bool closing_ = false;
  bool stopping_ = false;
  std::thread watcher_;
};

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_HTTP_HTTP_CONNECTIONS_H_
