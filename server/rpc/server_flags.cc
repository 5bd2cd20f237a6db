#include "server/rpc/server_flags.h"

#include <cstdint>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

ABSL_FLAG(int32_t, port, 8080,
          "TCP port of gRPC; 0 takes a free one, which is printed as port=NNNNN on standard output");
ABSL_FLAG(
    int32_t, http_port, -1,
    "TCP port of HTTP on the same address (Connect calls in JSON, /metrics, /healthz, /livez, /readyz); 0 takes a "
    "free one, which is printed as http_port=NNNNN; -1: none");
ABSL_FLAG(std::vector<std::string>, http_cors_origins, {},
          "origins, separated by commas, whose pages may call over HTTP from browsers; * for all");
ABSL_FLAG(std::string, address, "127.0.0.1", "address to listen on");
ABSL_FLAG(bool, insecure_any_address, false,
          "allow plaintext on an --address that other machines reach; for networks that encrypt or are trusted");
ABSL_FLAG(std::string, catalog_dir, "",
          "directory of .textproto files that replace or add to the built-in catalog; read again on SIGHUP");
ABSL_FLAG(absl::Duration, drain_delay, absl::Seconds(5),
          "after SIGTERM: how long to serve on with health NOT_SERVING, so that callers go elsewhere");
ABSL_FLAG(absl::Duration, grace, absl::Seconds(20), "after drain_delay: how long running calls may take to end");
ABSL_FLAG(int32_t, worker_threads, 0, "threads for searches and other long work; 0: one per usable CPU");
ABSL_FLAG(absl::Duration, target_wait, absl::Milliseconds(250),
          "longest wait for a worker; work that would wait longer is refused with the time to come back");
ABSL_FLAG(absl::Duration, default_deadline, absl::Seconds(30), "deadline of calls that set none");
ABSL_FLAG(absl::Duration, max_deadline, absl::Minutes(5), "longest deadline that a call may set");
ABSL_FLAG(int32_t, max_message_bytes, 4 << 20, "largest request and reply");
ABSL_FLAG(int32_t, max_concurrent_streams, 256, "calls that one connection may have open");
ABSL_FLAG(std::string, log_level, "info", "least severity that is logged: debug, info, warning or error");
ABSL_FLAG(bool, reflection, true, "serve gRPC reflection");
ABSL_FLAG(bool, channelz, false, "serve channelz, which shows peers and sockets to every caller");

namespace sliceplan::rpc {

absl::StatusOr<ServerFlags> ParseServerFlags(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "The Sliceplan server: training and serving estimates over gRPC.\n"
      "  sliceplan-server --port=8080\n"
      "  sliceplan-server --port=0 --catalog_dir=prices/");
  const std::vector<char*> rest = absl::ParseCommandLine(argc, argv);
  if (rest.size() > 1) return absl::InvalidArgumentError(absl::StrCat("not a flag: ", rest[1]));

  ServerFlags flags;
  flags.server.port = absl::GetFlag(FLAGS_port);
  flags.server.http_port = absl::GetFlag(FLAGS_http_port);
  flags.server.http_cors_origins = absl::GetFlag(FLAGS_http_cors_origins);
  flags.server.address = absl::GetFlag(FLAGS_address);
  flags.server.insecure_any_address = absl::GetFlag(FLAGS_insecure_any_address);
  flags.server.worker_threads = absl::GetFlag(FLAGS_worker_threads);
  flags.server.target_wait = absl::GetFlag(FLAGS_target_wait);
  flags.server.default_deadline = absl::GetFlag(FLAGS_default_deadline);
  flags.server.max_deadline = absl::GetFlag(FLAGS_max_deadline);
  flags.server.max_message_bytes = absl::GetFlag(FLAGS_max_message_bytes);
  flags.server.max_concurrent_streams = absl::GetFlag(FLAGS_max_concurrent_streams);
  flags.server.reflection = absl::GetFlag(FLAGS_reflection);
  flags.server.channelz = absl::GetFlag(FLAGS_channelz);
  flags.catalog_dir = absl::GetFlag(FLAGS_catalog_dir);
  flags.lifetime.drain_delay = absl::GetFlag(FLAGS_drain_delay);
  flags.lifetime.grace = absl::GetFlag(FLAGS_grace);
  if (flags.lifetime.drain_delay < absl::ZeroDuration() || flags.lifetime.grace < absl::ZeroDuration()) {
    return absl::InvalidArgumentError("--drain_delay and --grace must not be negative");
  }
  const std::string level = absl::GetFlag(FLAGS_log_level);
  const std::optional<Severity> severity = ParseSeverity(level);
  if (!severity.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat("--log_level=", level, " is none of debug, info, warning, error"));
  }
  flags.log_level = *severity;
  return flags;
}

}  // namespace sliceplan::rpc
