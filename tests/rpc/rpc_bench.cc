// What a training estimate costs the server, beside calls of the same sizes that compute nothing. Each server is a
// process of its own, so that its CPU time is its own:
//   estimate   the service
//   ready      the same messages, with a reply that was made before
//   echo       as many bytes in and out, each one text field
// The counter server_us is the CPU time of the server for one call.
#include <benchmark/benchmark.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <future>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "google/protobuf/text_format.h"
#include "grpcpp/create_channel.h"
#include "proto/sliceplan/v1/planner_service.grpc.pb.h"
#include "server/catalog/catalog_store.h"
#include "server/rpc/handlers/engine.h"
#include "server/rpc/handlers/register.h"
#include "server/rpc/json_log.h"
#include "server/rpc/server.h"

namespace sliceplan::rpc {
namespace {

// Llama 3 70B on 8,192 v5p: the plan of the book, parallelism given.
constexpr char kRequest[] = R"pb(
  model { preset: "llama-3-70b" }
  slice { accelerator: "tpu-v5p" topology: "16x16x16" slice_count: 2 }
  workload { sequence_length: 4096 global_batch_tokens: 4194304 total_tokens: 15000000000000 }
  parallelism {
    ici { fsdp: 512 context: 2 tensor: 4 }
    dcn { data: 2 }
  }
)pb";

constexpr int kOutstandingCalls = 64;

v1::EstimateTrainingRequest BenchRequest() {
  v1::EstimateTrainingRequest request;
  if (!google::protobuf::TextFormat::ParseFromString(kRequest, &request)) std::abort();
  return request;
}

class NoSink : public LogSink {
 public:
  void Write(absl::string_view, bool) override {}
};

enum class Kind { kEstimate, kReady, kEcho };

// The table of the service with EstimateTraining replaced.
MethodTable TableOf(Kind kind, Engine* engine) {
  MethodTable real = MakeMethodTable(engine);
  if (kind == Kind::kEstimate) return real;
  const Method* const method = real.Find("PlannerService/EstimateTraining");
  auto ready = std::make_shared<v1::EstimateTrainingResponse>();
  if (!method->handle(BenchRequest(), ready.get(), CallContext()).ok()) std::abort();
  if (kind == Kind::kEcho) {
    const std::string bytes(ready->ByteSizeLong(), 'x');
    ready->Clear();
    ready->set_engine_version(bytes);
  }
  for (const auto& candidate : real.methods()) {
    if (candidate.get() != method) continue;
    candidate->handle = [ready](const google::protobuf::Message&, google::protobuf::Message* response,
                                const CallContext&) {
      static_cast<v1::EstimateTrainingResponse*>(response)->CopyFrom(*ready);
      return Result();
    };
    candidate->effort = [](const google::protobuf::Message&) { return Effort::kShort; };
  }
  return real;
}

// A server in a child process, which ends with this one.
class ChildServer {
 public:
  explicit ChildServer(Kind kind) {
    int ends[2];
    if (pipe(ends) != 0) std::abort();
    pid_ = fork();
    if (pid_ == 0) Serve(kind, ends[1]);
    if (read(ends[0], &port_, sizeof(port_)) != sizeof(port_)) std::abort();
    close(ends[0]);
    close(ends[1]);
  }

  int port() const { return port_; }
  double CpuSeconds() const {
    clockid_t clock;
    timespec time;
    if (clock_getcpuclockid(pid_, &clock) != 0 || clock_gettime(clock, &time) != 0) std::abort();
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }

 private:
  [[noreturn]] static void Serve(Kind kind, int port_end) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);  // as the server's main does
    const auto store = catalog::CatalogStore::Create("");
    Engine engine(store->get());
    const MethodTable table = TableOf(kind, &engine);
    NoSink sink;
    const JsonLog log(&sink, Severity::kError);
    ServerOptions options;
    options.port = 0;
    const auto server = Server::Start(options, &table, &log);
    const int port = server.ok() ? (*server)->port() : 0;
    if (write(port_end, &port, sizeof(port)) != sizeof(port)) std::abort();
    while (true) pause();
  }

  pid_t pid_ = 0;
  int port_ = 0;
};

// All children are made before this process uses gRPC.
const ChildServer& ServerOf(Kind kind) {
  static const auto* const servers =
      new ChildServer[3]{ChildServer(Kind::kEstimate), ChildServer(Kind::kReady), ChildServer(Kind::kEcho)};
  return servers[static_cast<size_t>(kind)];
}

// Keeps calls in flight until as many as asked for have ended.
class Load {
 public:
  Load(v1::PlannerService::Stub* stub, const v1::EstimateTrainingRequest& request, int64_t count)
      : stub_(*stub), request_(request), to_start_(count), to_end_(count) {}

  void Run() {
    const auto done = done_;
    for (int i = 0; i < kOutstandingCalls; ++i) Start();
    done->get_future().wait();
  }

 private:
  struct OneCall {
    grpc::ClientContext context;
    v1::EstimateTrainingResponse response;
  };

  void Start() {
    if (to_start_.fetch_sub(1) <= 0) return;
    auto* const call = new OneCall;
    stub_.async()->EstimateTraining(&call->context, &request_, &call->response, [this, call](grpc::Status status) {
      if (!status.ok()) std::abort();
      delete call;
      Start();
      // The load may be gone as soon as the last call has ended.
      const std::shared_ptr<std::promise<void>> done = done_;
      if (to_end_.fetch_sub(1) == 1) done->set_value();
    });
  }

  v1::PlannerService::Stub& stub_;
  const v1::EstimateTrainingRequest& request_;
  std::atomic<int64_t> to_start_;
  std::atomic<int64_t> to_end_;
  const std::shared_ptr<std::promise<void>> done_ = std::make_shared<std::promise<void>>();
};

void Rpc(benchmark::State& state, Kind kind) {
  const ChildServer& server = ServerOf(kind);
  const auto channel =
      grpc::CreateChannel(absl::StrCat("127.0.0.1:", server.port()), grpc::InsecureChannelCredentials());
  const auto stub = v1::PlannerService::NewStub(channel);
  v1::EstimateTrainingRequest request = BenchRequest();
  if (kind == Kind::kEcho) {
    const std::string bytes(request.ByteSizeLong(), 'x');
    request.Clear();
    request.set_calibration_profile(bytes);
  }
  constexpr int64_t kCallsPerRound = 2000;
  Load(stub.get(), request, kCallsPerRound).Run();  // connects, fills caches
  const double start = server.CpuSeconds();
  for (auto _ : state) Load(stub.get(), request, kCallsPerRound).Run();
  const double calls = static_cast<double>(state.iterations() * kCallsPerRound);
  state.counters["server_us"] = 1e6 * (server.CpuSeconds() - start) / calls;
  state.counters["calls"] = benchmark::Counter(calls, benchmark::Counter::kIsRate);
}

BENCHMARK_CAPTURE(Rpc, estimate, Kind::kEstimate)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Rpc, ready, Kind::kReady)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Rpc, echo, Kind::kEcho)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace sliceplan::rpc
