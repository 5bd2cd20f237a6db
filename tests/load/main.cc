// sliceplan-load: RunLoad as a program. Prints "running" when the first call has gone well, and a JSON object at the
// end. Its exit status says whether the load could be run, not whether calls failed.
#include <cstdint>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tests/load/load.h"

ABSL_FLAG(std::string, target, "dns:///localhost:8080", "gRPC target; ipv4:127.0.0.1:5001,127.0.0.1:5002 is two");
ABSL_FLAG(std::string, method, "sliceplan.v1.PlannerService/EstimateTraining", "RPC to call");
ABSL_FLAG(std::string, request, "", "file with the request in proto3 JSON; empty: an empty request");
ABSL_FLAG(absl::Duration, length, absl::Seconds(5), "how long new calls are started");
ABSL_FLAG(double, rate, 0, "calls a second; 0: as fast as --in_flight calls allow");
ABSL_FLAG(int32_t, in_flight, 16, "calls in flight; with --rate the most that there may be");
ABSL_FLAG(int32_t, connections, 1, "clients, each with connections of its own");
ABSL_FLAG(absl::Duration, timeout, absl::Seconds(30), "deadline of each call");
ABSL_FLAG(int32_t, max_attempts, sliceplan::RetryOptions().max_attempts, "tries of a call; 1: no retries");
ABSL_FLAG(std::string, tls_ca, "", "PEM file of who signs the server's certificate; empty: plaintext");
ABSL_FLAG(std::string, tls_cert, "", "the client's certificate");
ABSL_FLAG(std::string, tls_key, "", "the client's key");
ABSL_FLAG(std::string, token_file, "", "file with a bearer token");

namespace sliceplan::load {
namespace {

std::string Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

ClientOptions OptionsOfClient(int number) {
  ClientOptions options;
  options.target = absl::GetFlag(FLAGS_target);
  options.retry.max_attempts = absl::GetFlag(FLAGS_max_attempts);
  // Channels of equal arguments share their connections.
  options.user_agent = absl::StrCat("sliceplan-load/", number);
  options.security = TransportSecurity::kPlaintext;
  if (!absl::GetFlag(FLAGS_tls_ca).empty()) {
    options.security = TransportSecurity::kTls;
    options.tls.root_certificates_file = absl::GetFlag(FLAGS_tls_ca);
    options.tls.client_certificate_file = absl::GetFlag(FLAGS_tls_cert);
    options.tls.client_key_file = absl::GetFlag(FLAGS_tls_key);
  }
  return options;
}

int Main() {
  std::vector<std::shared_ptr<Connection>> connections;
  for (int i = 0; i < absl::GetFlag(FLAGS_connections); ++i) {
    absl::StatusOr<std::shared_ptr<Connection>> connection = MakeConnection(OptionsOfClient(i));
    if (!connection.ok()) {
      std::cerr << connection.status() << "\n";
      return 1;
    }
    connections.push_back(*std::move(connection));
  }
  LoadOptions options;
  options.method = absl::GetFlag(FLAGS_method);
  if (const std::string file = absl::GetFlag(FLAGS_request); !file.empty()) options.request_json = Read(file);
  options.length = absl::GetFlag(FLAGS_length);
  options.rate = absl::GetFlag(FLAGS_rate);
  options.in_flight = absl::GetFlag(FLAGS_in_flight);
  options.call.timeout = absl::GetFlag(FLAGS_timeout);
  if (const std::string file = absl::GetFlag(FLAGS_token_file); !file.empty()) {
    std::string token = Read(file);
    while (!token.empty() && token.back() == '\n') token.pop_back();
    options.call.metadata.emplace_back("authorization", absl::StrCat("Bearer ", token));
  }
  const absl::StatusOr<LoadResult> result = RunLoad(connections, options, [] { std::cout << "running" << std::endl; });
  if (!result.ok()) {
    std::cerr << result.status() << "\n";
    return 1;
  }
  std::cout << ToJson(*result) << std::endl;
  return 0;
}

}  // namespace
}  // namespace sliceplan::load

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("Calls one RPC for a while and prints what came of it.");
  absl::ParseCommandLine(argc, argv);
  return sliceplan::load::Main();
}
