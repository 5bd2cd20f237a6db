#include "server/rpc/server_flags.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/flags/usage_config.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/rpc/version.h"

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
ABSL_FLAG(
    std::string, tls_cert, "",
    "TLS: PEM file with the server's certificate and its chain; read again when it changes. Without it: plaintext");
ABSL_FLAG(std::string, tls_key, "", "TLS: PEM file with the key of --tls_cert, without a password");
ABSL_FLAG(std::string, tls_client_ca, "",
          "TLS: PEM file with the authorities of client certificates; given, clients must have one");
ABSL_FLAG(absl::Duration, tls_refresh, absl::Seconds(10), "how often to look for new TLS files, in whole seconds");
ABSL_FLAG(std::string, token_file, "",
          "file of bearer tokens, a line each: NAME SHA256-HEX [methods=GLOB,...] [rate=CALLS/S] [burst=N]; read again "
          "when it changes and on SIGHUP. Without it whoever reaches the port may call");
ABSL_FLAG(bool, hash_token, false,
          "read a token from standard input, print its hash for --token_file, and end: "
          "openssl rand -hex 32 | tee token | sliceplan-server --hash_token");
ABSL_FLAG(std::string, request_log, "",
          "file for requests and digests of replies, as JSON lines that `sliceplan replay` reads");
ABSL_FLAG(double, request_log_ratio, 1, "part of the calls that --request_log notes, 0 to 1");
ABSL_FLAG(int64_t, request_log_max_bytes, int64_t{64} << 20, "size at which a new --request_log is begun");
ABSL_FLAG(int32_t, request_log_files, 4, "files of --request_log that are kept: FILE, FILE.1, FILE.2, ...");
ABSL_FLAG(std::string, catalog_dir, "",
          "directory of .textproto files that replace or add to the built-in catalog; read again on SIGHUP");
ABSL_FLAG(absl::Duration, drain_delay, absl::Seconds(5),
          "after SIGTERM: how long to serve on with health NOT_SERVING, so that callers go elsewhere");
ABSL_FLAG(absl::Duration, grace, absl::Seconds(20), "after drain_delay: how long running calls may take to end");
ABSL_FLAG(int32_t, worker_threads, 0,
          "threads for searches and other long work, besides one for cheap work alone; 0: one per usable CPU");
ABSL_FLAG(absl::Duration, target_wait, absl::Milliseconds(250),
          "longest wait for a worker; work that would wait longer is refused with the time to come back");
ABSL_FLAG(absl::Duration, default_deadline, absl::Seconds(30), "deadline of calls that set none");
ABSL_FLAG(absl::Duration, max_deadline, absl::Minutes(5), "longest deadline that a call may set");
ABSL_FLAG(int32_t, max_message_bytes, 4 << 20, "largest request and reply");
ABSL_FLAG(int64_t, max_unread_reply_bytes, int64_t{64} << 20,
          "memory of replies that wait to be sent; beyond it a connection is answered only while it holds little");
ABSL_FLAG(int32_t, max_metadata_bytes, 8 << 10, "largest metadata of a call");
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
  // --help lists what this file defines; --helpfull also Abseil's own flags.
  absl::FlagsUsageConfig usage;
  usage.contains_help_flags = [](absl::string_view file) { return absl::EndsWith(file, "server_flags.cc"); };
  usage.version_string = [] { return absl::StrCat("sliceplan-server ", EngineVersion(), "\n"); };
  absl::SetFlagsUsageConfig(std::move(usage));
  const std::vector<char*> rest = absl::ParseCommandLine(argc, argv);
  if (rest.size() > 1) return absl::InvalidArgumentError(absl::StrCat("not a flag: ", rest[1]));

  ServerFlags flags;
  flags.server.port = absl::GetFlag(FLAGS_port);
  flags.server.http_port = absl::GetFlag(FLAGS_http_port);
  flags.server.http_cors_origins = absl::GetFlag(FLAGS_http_cors_origins);
  flags.server.address = absl::GetFlag(FLAGS_address);
  flags.server.insecure_any_address = absl::GetFlag(FLAGS_insecure_any_address);
  flags.server.tls.certificate = absl::GetFlag(FLAGS_tls_cert);
  flags.server.tls.key = absl::GetFlag(FLAGS_tls_key);
  flags.server.tls.client_authorities = absl::GetFlag(FLAGS_tls_client_ca);
  flags.server.tls.refresh = absl::GetFlag(FLAGS_tls_refresh);
  flags.server.token_file = absl::GetFlag(FLAGS_token_file);
  flags.hash_token = absl::GetFlag(FLAGS_hash_token);
  flags.server.request_log.path = absl::GetFlag(FLAGS_request_log);
  flags.server.request_log.ratio = absl::GetFlag(FLAGS_request_log_ratio);
  flags.server.request_log.max_bytes = absl::GetFlag(FLAGS_request_log_max_bytes);
  flags.server.request_log.file_count = absl::GetFlag(FLAGS_request_log_files);
  flags.server.worker_threads = absl::GetFlag(FLAGS_worker_threads);
  flags.server.target_wait = absl::GetFlag(FLAGS_target_wait);
  flags.server.default_deadline = absl::GetFlag(FLAGS_default_deadline);
  flags.server.max_deadline = absl::GetFlag(FLAGS_max_deadline);
  flags.server.max_message_bytes = absl::GetFlag(FLAGS_max_message_bytes);
  flags.server.max_unread_reply_bytes = absl::GetFlag(FLAGS_max_unread_reply_bytes);
  flags.server.max_metadata_bytes = absl::GetFlag(FLAGS_max_metadata_bytes);
  flags.server.max_concurrent_streams = absl::GetFlag(FLAGS_max_concurrent_streams);
  flags.server.reflection = absl::GetFlag(FLAGS_reflection);
  flags.server.channelz = absl::GetFlag(FLAGS_channelz);
  if (flags.server.tls.refresh < absl::Seconds(1)) return absl::InvalidArgumentError("--tls_refresh is below 1s");
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
