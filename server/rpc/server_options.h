// What an operator decides about a server. Defaults suit a replica behind a load balancer.
#ifndef SLICEPLAN_SERVER_RPC_SERVER_OPTIONS_H_
#define SLICEPLAN_SERVER_RPC_SERVER_OPTIONS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/rpc/request_log.h"
#include "server/rpc/tls.h"

namespace sliceplan::rpc {

struct ServerOptions {
  // Where to listen. Plaintext: an address off loopback needs `insecure_any_address`.
  std::string address = "127.0.0.1";
  bool insecure_any_address = false;
  int port = 8080;  // 0: any free one

  // Without files the server speaks plaintext.
  TlsFiles tls;
  // Bearer tokens (token_file.h), read again when they change. Empty: whoever reaches the port may call.
  std::string token_file;
  absl::Duration token_file_interval = absl::Seconds(1);
  RequestLogOptions request_log;
  // HTTP on the same address: Connect calls, metrics, probes. -1: none; 0: any free port.
  int http_port = -1;
  // Origins whose pages may call, "https://planner.example.org"; "*": all. Empty: only pages of the same origin.
  std::vector<std::string> http_cors_origins;

  int worker_threads = 0;  // 0: as many as CPUs may be used
  absl::Duration target_wait = absl::Milliseconds(250);

  // For callers that set no deadline, and for those that set one too far away.
  absl::Duration default_deadline = absl::Seconds(30);
  absl::Duration max_deadline = absl::Minutes(5);

  // Limits. A request above `max_message_bytes` is RESOURCE_EXHAUSTED by gRPC itself.
  int max_message_bytes = 4 << 20;
  int max_metadata_bytes = 8 << 10;               // of one call; above it RESOURCE_EXHAUSTED by gRPC too
  int max_concurrent_streams = 256;               // of one connection
  size_t memory_quota_bytes = size_t{256} << 20;  // of gRPC's buffers
  // Memory of replies that nobody has read yet; beyond it a connection is answered only while it holds little. At
  // least 1.
  int64_t max_unread_reply_bytes = int64_t{64} << 20;
  absl::Duration min_ping_interval = absl::Seconds(20);
  absl::Duration keepalive_time = absl::Minutes(1);
  absl::Duration keepalive_timeout = absl::Seconds(20);
  // Old connections are closed so that clients see new replicas; gRPC varies the age by a tenth either way.
  absl::Duration max_connection_age = absl::Minutes(5);
  absl::Duration max_connection_age_grace = absl::Seconds(30);

  bool reflection = true;
  bool channelz = false;
};

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_SERVER_OPTIONS_H_
