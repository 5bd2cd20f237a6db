// sliceplan-server: flags -> options -> server.
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/synchronization/mutex.h"
#include "server/catalog/catalog_store.h"
#include "server/rpc/file_limit.h"
#include "server/rpc/grpc_log.h"
#include "server/rpc/handlers/engine.h"
#include "server/rpc/handlers/register.h"
#include "server/rpc/json_log.h"
#include "server/rpc/lifetime.h"
#include "server/rpc/method_table.h"
#include "server/rpc/server.h"
#include "server/rpc/server_flags.h"
#include "server/rpc/sha256.h"
#include "server/rpc/version.h"

namespace {

using sliceplan::catalog::CatalogStore;
using sliceplan::rpc::JsonLog;
using sliceplan::rpc::LogLine;
using sliceplan::rpc::Severity;

void LogStatus(const JsonLog& log, absl::string_view message, const absl::Status& status) {
  LogLine line = log.Line(Severity::kError, message);
  line.Text("cause", std::string(status.message()));
  log.Write(std::move(line));
}

void LogCatalog(const JsonLog& log, absl::string_view message, const CatalogStore& store) {
  LogLine line = log.Line(Severity::kInfo, message);
  line.Text("catalog_version", store.Snapshot()->version());
  log.Write(std::move(line));
}

// Prints the hash of the token on standard input.
int HashToken() {
  std::string token;
  std::getline(std::cin, token);
  absl::StripAsciiWhitespace(&token);
  if (token.empty()) {
    std::cerr << "standard input has no token\n";
    return EXIT_FAILURE;
  }
  std::cout << sliceplan::rpc::ToHex(sliceplan::rpc::Sha256(token)) << std::endl;
  return EXIT_SUCCESS;
}

// Serves until a signal; returns the exit status.
int Run(const sliceplan::rpc::ServerFlags& flags, const JsonLog& log, sliceplan::rpc::BufferedSink& sink) {
  const auto store = CatalogStore::Create(flags.catalog_dir);
  if (!store.ok()) {
    LogStatus(log, "the catalog cannot be used", store.status());
    return EXIT_FAILURE;
  }
  sliceplan::rpc::Engine engine(store->get());
  const sliceplan::rpc::MethodTable methods = sliceplan::rpc::MakeMethodTable(&engine);
  const auto server = sliceplan::rpc::Server::Start(flags.server, &methods, &log);
  if (!server.ok()) {
    LogStatus(log, "the server cannot start", server.status());
    return EXIT_FAILURE;
  }
  LogLine serving = log.Line(Severity::kInfo, "serving");
  serving.Text("address", flags.server.address)
      .Integer("port", (*server)->port())
      .Integer("http_port", (*server)->http_port())
      .Text("engine_version", sliceplan::rpc::EngineVersion())
      .Text("catalog_version", (*store)->Snapshot()->version());
  log.Write(std::move(serving));
  std::cout << "port=" << (*server)->port() << "\n";
  if (flags.server.http_port >= 0) std::cout << "http_port=" << (*server)->http_port() << "\n";
  std::cout << std::flush;

  sliceplan::rpc::ServerMetrics& metrics = (*server)->metrics();
  metrics.CatalogLoaded((*store)->Snapshot()->version());
  const auto reload = [&] {
    (*server)->ReloadTokens();
    const absl::Status status = (*store)->Reload();
    metrics.CatalogReloaded(status.ok());
    if (status.ok()) {
      metrics.CatalogLoaded((*store)->Snapshot()->version());
      LogCatalog(log, "catalog read again", **store);
    } else {
      LogStatus(log, "the new catalog is wrong; the old one stays", status);
    }
  };
  const auto ending = sliceplan::rpc::ServeUntilSignalled(**server, flags.lifetime, reload, log);
  if (ending == sliceplan::rpc::Ending::kImmediate) {
    // Without destructors, which would wait for calls.
    sink.Flush();
    std::_Exit(EXIT_FAILURE);
  }
  return EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  sliceplan::rpc::BlockSignals();
  sliceplan::rpc::RaiseFileLimit();
  // Debian builds Abseil with its search for deadlocks on: a tenth of the CPU time of a small call
  // (tests/rpc/rpc_bench).
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  const auto flags = sliceplan::rpc::ParseServerFlags(argc, argv);
  if (!flags.ok()) {
    std::cerr << flags.status().message() << "\n";
    return EXIT_FAILURE;
  }
  if (flags->hash_token) return HashToken();
  sliceplan::rpc::BufferedSink sink(STDERR_FILENO);
  const JsonLog log(&sink, flags->log_level);
  sliceplan::rpc::SendGrpcLogTo(&log);
  const int status = Run(*flags, log, sink);
  sliceplan::rpc::SendGrpcLogTo(nullptr);
  return status;
}
