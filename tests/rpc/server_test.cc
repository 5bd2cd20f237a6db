// The server as its callers see it: over TCP, because trailers have a size there.
#include "server/rpc/server.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "proto/grpc/health/v1/health.pb.h"
#include "proto/sliceplan/v1/analysis_service.grpc.pb.h"
#include "proto/sliceplan/v1/catalog_service.grpc.pb.h"
#include "proto/sliceplan/v1/planner_service.grpc.pb.h"
#include "server/rpc/errors.h"
#include "tests/rpc/testing.h"

namespace sliceplan::rpc {
namespace {

using ::testing::HasSubstr;

class SharedSink : public LogSink {
 public:
  void Write(absl::string_view line, bool) override {
    std::lock_guard lock(mutex_);
    lines_.emplace_back(line);
  }
  std::vector<nlohmann::json> Lines() const {
    std::lock_guard lock(mutex_);
    std::vector<nlohmann::json> parsed;
    for (const std::string& line : lines_) parsed.push_back(nlohmann::json::parse(line));
    return parsed;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

// Waits for what another thread is about to do; the test's own time limit ends it when it does not.
void WaitUntil(const std::function<bool()>& condition) {
  while (!condition()) std::this_thread::yield();
}

// A server on a free port with its channel.
class Running {
 public:
  explicit Running(const MethodTable* methods = &TestMethods(), ServerOptions options = {}) {
    options.port = 0;
    auto server = Server::Start(options, methods, &log_);
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    channel_ = NewChannel();
  }

  std::shared_ptr<grpc::Channel> NewChannel() const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", server_->port()), grpc::InsecureChannelCredentials(),
                                     arguments);
  }
  Server& server() { return *server_; }
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }
  const SharedSink& sink() const { return sink_; }

 private:
  SharedSink sink_;
  const JsonLog log_{&sink_, Severity::kDebug};
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

void SetDeadline(grpc::ClientContext& context, int seconds = 20) {
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(seconds));
}

template <typename Request, typename Response>
grpc::Status CallByName(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                        const Request& request, Response* response) {
  grpc::TemplatedGenericStub<Request, Response> stub(channel);
  grpc::ClientContext context;
  SetDeadline(context);
  std::promise<grpc::Status> done;
  stub.UnaryCall(&context, method, grpc::StubOptions(), &request, response,
                 [&done](grpc::Status status) { done.set_value(std::move(status)); });
  return done.get_future().get();
}

// The serving status of one service, or the code of the call.
std::string HealthOf(const std::shared_ptr<grpc::Channel>& channel, const std::string& service) {
  grpc::health::v1::HealthCheckRequest request;
  request.set_service(service);
  grpc::health::v1::HealthCheckResponse response;
  const grpc::Status status = CallByName(channel, "/grpc.health.v1.Health/Check", request, &response);
  return status.ok() ? grpc::health::v1::HealthCheckResponse::ServingStatus_Name(response.status())
                     : absl::StrCat("code ", status.error_code());
}

google::rpc::Status DetailsOf(const grpc::Status& status) {
  google::rpc::Status details;
  EXPECT_TRUE(details.ParseFromString(status.error_details()));
  EXPECT_EQ(details.code(), status.error_code());
  EXPECT_EQ(details.message(), status.error_message());
  return details;
}

// All methods of the services answer nothing, but EstimateTraining, which does what the test says.
using Handle =
    std::function<Result(const v1::EstimateTrainingRequest&, v1::EstimateTrainingResponse*, const CallContext&)>;

template <typename Request, typename Response>
void AddEmpty(MethodTable& table, absl::string_view service, absl::string_view name) {
  table.Add<Request, Response>(
      absl::StrCat("sliceplan.v1.", service), name,
      [](const Request&, Response*, const CallContext&) { return Result(); },
      [](const Request&) { return Effort::kShort; });
}

MethodTable TableWith(Handle handle, Effort effort) {
  MethodTable table;
  table.Add<v1::EstimateTrainingRequest, v1::EstimateTrainingResponse>(
      "sliceplan.v1.PlannerService", "EstimateTraining", std::move(handle),
      [effort](const v1::EstimateTrainingRequest&) { return effort; });
  AddEmpty<v1::EstimateServingRequest, v1::EstimateServingResponse>(table, "PlannerService", "EstimateServing");
  AddEmpty<v1::ProposeShardingRequest, v1::ProposeShardingResponse>(table, "PlannerService", "ProposeSharding");
  AddEmpty<v1::DescribeModelRequest, v1::DescribeModelResponse>(table, "AnalysisService", "DescribeModel");
  AddEmpty<v1::AnalyzeOperationRequest, v1::AnalyzeOperationResponse>(table, "AnalysisService", "AnalyzeOperation");
  AddEmpty<v1::AnalyzeCollectiveRequest, v1::AnalyzeCollectiveResponse>(table, "AnalysisService", "AnalyzeCollective");
  AddEmpty<v1::CompareMeasurementRequest, v1::CompareMeasurementResponse>(table, "AnalysisService",
                                                                          "CompareMeasurement");
  AddEmpty<v1::ListAcceleratorsRequest, v1::ListAcceleratorsResponse>(table, "CatalogService", "ListAccelerators");
  AddEmpty<v1::ListSlicesRequest, v1::ListSlicesResponse>(table, "CatalogService", "ListSlices");
  AddEmpty<v1::ListPricesRequest, v1::ListPricesResponse>(table, "CatalogService", "ListPrices");
  AddEmpty<v1::ListModelsRequest, v1::ListModelsResponse>(table, "CatalogService", "ListModels");
  return table;
}

grpc::Status Estimate(const std::shared_ptr<grpc::Channel>& channel, grpc::ClientContext& context) {
  v1::EstimateTrainingResponse response;
  return v1::PlannerService::NewStub(channel)->EstimateTraining(&context, v1::EstimateTrainingRequest(), &response);
}

// ---- Start ----

TEST(ServerStartTest, TakesAFreePortAndSharesNone) {
  Running running;
  EXPECT_GT(running.server().port(), 0);
  SharedSink sink;
  const JsonLog log(&sink, Severity::kError);
  ServerOptions options;
  options.port = running.server().port();
  const auto second = Server::Start(options, &TestMethods(), &log);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
}

TEST(ServerStartTest, RefusesOptionsThatMakeNoSense) {
  SharedSink sink;
  const JsonLog log(&sink, Severity::kError);
  const auto start = [&](const std::function<void(ServerOptions&)>& edit) {
    ServerOptions options;
    options.port = 0;
    edit(options);
    return Server::Start(options, &TestMethods(), &log).status();
  };
  EXPECT_EQ(start([](ServerOptions& o) { o.address = "0.0.0.0"; }).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(start([](ServerOptions& o) { o.address = "::"; }).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(start([](ServerOptions& o) { o.address = "example.org"; }).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(start([](ServerOptions& o) { o.port = 65536; }).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(start([](ServerOptions& o) { o.max_message_bytes = 0; }).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(start([](ServerOptions& o) { o.max_deadline = absl::Seconds(1); }).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(start([](ServerOptions& o) { o.address = "localhost"; }).ok());
  EXPECT_TRUE(start([](ServerOptions& o) {
                o.address = "0.0.0.0";
                o.insecure_any_address = true;
              }).ok());
}

// ---- Standard services ----

const char* const kServices[] = {"", "sliceplan.v1.PlannerService", "sliceplan.v1.AnalysisService",
                                 "sliceplan.v1.CatalogService"};

TEST(ServerHealthTest, EveryServiceIsServing) {
  Running running;
  for (const char* service : kServices) EXPECT_EQ(HealthOf(running.channel(), service), "SERVING") << service;
  EXPECT_EQ(HealthOf(running.channel(), "sliceplan.v1.NoService"), absl::StrCat("code ", grpc::StatusCode::NOT_FOUND));
}

// Reflection describes what this pool knows.
TEST(ServerReflectionTest, EveryListedServiceHasADescriptor) {
  const auto& pool = *google::protobuf::DescriptorPool::generated_pool();
  for (const char* service : {"sliceplan.v1.PlannerService", "sliceplan.v1.AnalysisService",
                              "sliceplan.v1.CatalogService", "grpc.health.v1.Health"}) {
    EXPECT_NE(pool.FindServiceByName(service), nullptr) << service;
  }
}

TEST(ServerReflectionTest, IsServedByFlag) {
  const auto code = [](bool reflection) {
    ServerOptions options;
    options.reflection = reflection;
    Running running(&TestMethods(), options);
    const grpc::Slice empty("");
    grpc::ByteBuffer response;
    return CallByName(running.channel(), "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
                      grpc::ByteBuffer(&empty, 1), &response)
        .error_code();
  };
  EXPECT_NE(code(true), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(code(false), grpc::StatusCode::UNIMPLEMENTED);
}

TEST(ServerMethodsTest, TableHasEveryMethodOfEveryService) {
  const auto& pool = *google::protobuf::DescriptorPool::generated_pool();
  size_t count = 0;
  for (const std::string& name : TestMethods().ServiceNames()) {
    const auto* service = pool.FindServiceByName(name);
    ASSERT_NE(service, nullptr);
    for (int i = 0; i < service->method_count(); ++i, ++count) {
      const Method* method = TestMethods().Find(absl::StrCat(name, "/", service->method(i)->name()));
      ASSERT_NE(method, nullptr) << service->method(i)->full_name();
      EXPECT_EQ(method->request_prototype->GetDescriptor(), service->method(i)->input_type());
      EXPECT_EQ(method->response_prototype->GetDescriptor(), service->method(i)->output_type());
      EXPECT_EQ(service->method(i)->options().idempotency_level(), google::protobuf::MethodOptions::NO_SIDE_EFFECTS);
    }
  }
  EXPECT_EQ(count, TestMethods().methods().size());
}

TEST(ServerMethodsTest, FoundWithAndWithoutPackage) {
  const Method* const method = TestMethods().Find("sliceplan.v1.PlannerService/EstimateTraining");
  EXPECT_EQ(TestMethods().Find("PlannerService/EstimateTraining"), method);
  EXPECT_EQ(TestMethods().Find("/sliceplan.v1.PlannerService/EstimateTraining"), method);
  for (const char* name :
       {"EstimateTraining", "Service/EstimateTraining", "v1.PlannerService/EstimateTraining2", "", "/"}) {
    EXPECT_EQ(TestMethods().Find(name), nullptr) << name;
  }
}

// ---- Answers and errors on the wire ----

TEST(ServerCallTest, AnswersAsInProcess) {
  Running running;
  const auto request = FromText<v1::DescribeModelRequest>("model { preset: 'llama-3-8b' }");
  v1::DescribeModelResponse expected;
  ASSERT_TRUE(Call("AnalysisService/DescribeModel", request, &expected).ok());
  grpc::ClientContext context;
  SetDeadline(context);
  v1::DescribeModelResponse response;
  const grpc::Status status =
      v1::AnalysisService::NewStub(running.channel())->DescribeModel(&context, request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.SerializeAsString(), expected.SerializeAsString());
}

// The largest error that there can be arrives whole: over TCP all trailers share 8 KiB.
TEST(ServerCallTest, LargestErrorArrives) {
  Running running;
  v1::EstimateTrainingRequest request;
  v1::Architecture* const architecture = request.mutable_model()->mutable_architecture();
  for (int i = 0; i < 2000; ++i) architecture->add_layer_groups()->add_layers();
  request.mutable_slice()->set_accelerator(std::string(120, '\x01'));
  request.mutable_slice()->set_topology("\xE2\x82\xAC\xE2\x82\xAC");
  grpc::ClientContext context;
  SetDeadline(context);
  v1::EstimateTrainingResponse response;
  const grpc::Status status =
      v1::PlannerService::NewStub(running.channel())->EstimateTraining(&context, request, &response);
  ASSERT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
  EXPECT_EQ(ViolatedFields(DetailsOf(status)).size(), kMaxViolations);
}

TEST(ServerCallTest, WorstTextOfAnErrorArrives) {
  // Percent-encoding makes three bytes of each byte that is not printable ASCII.
  const std::string worst = [] {
    std::string text;
    while (text.size() < 3000) text += "\xC3\xA9";
    return text;
  }();
  const MethodTable table = TableWith(
      [&](const auto&, auto*, const CallContext&) {
        std::vector<FieldError> errors;
        for (int i = 0; i < 100; ++i) errors.push_back({worst, worst, "R"});
        return InvalidArgument(errors);
      },
      Effort::kShort);
  Running running(&table);
  grpc::ClientContext context;
  SetDeadline(context);
  const grpc::Status status = Estimate(running.channel(), context);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
  EXPECT_GE(ViolatedFields(DetailsOf(status)).size(), 1u);
}

TEST(ServerCallTest, UnknownMethodIsUnimplemented) {
  Running running;
  v1::EstimateTrainingResponse response;
  EXPECT_EQ(
      CallByName(running.channel(), "/sliceplan.v1.PlannerService/Estimate", v1::EstimateTrainingRequest(), &response)
          .error_code(),
      grpc::StatusCode::UNIMPLEMENTED);
}

TEST(ServerCallTest, BytesThatAreNoRequestAreInvalid) {
  Running running;
  // A field that ends before its length, and text that is not UTF-8: model.preset.
  for (const std::string& bytes : {std::string("\x0a\x7f", 2), std::string("\x0a\x03\x0a\x01\xff", 5)}) {
    const grpc::Slice slice(bytes);
    grpc::ByteBuffer response;
    const grpc::Status status = CallByName(running.channel(), "/sliceplan.v1.AnalysisService/DescribeModel",
                                           grpc::ByteBuffer(&slice, 1), &response);
    ASSERT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
    EXPECT_THAT(DetailsOf(status).message(), HasSubstr("cannot be read"));
  }
}

TEST(ServerCallTest, TooLargeIsRefusedByGrpc) {
  Running running;
  v1::EstimateTrainingRequest request;
  request.mutable_model()->set_hugging_face_config(std::string(5 << 20, ' '));
  v1::EstimateTrainingResponse response;
  EXPECT_EQ(
      CallByName(running.channel(), "/sliceplan.v1.PlannerService/EstimateTraining", request, &response).error_code(),
      grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST(ServerCallTest, RequestIdComesBack) {
  Running running;
  const auto id_for = [&](const char* own) {
    grpc::ClientContext context;
    SetDeadline(context);
    if (own != nullptr) context.AddMetadata("x-request-id", own);
    Estimate(running.channel(), context);
    const auto& trailers = context.GetServerTrailingMetadata();
    const auto found = trailers.find("x-request-id");
    return found == trailers.end() ? std::string() : std::string(found->second.data(), found->second.size());
  };
  EXPECT_EQ(id_for("job-17:step.3"), "job-17:step.3");
  const std::string made = id_for(nullptr);
  EXPECT_EQ(made.size(), 16u);
  EXPECT_NE(made, id_for(nullptr));
  // Not fit for a log: replaced.
  EXPECT_EQ(id_for("a b").size(), 16u);
}

TEST(ServerCallTest, ExceptionsAreInternalErrorsWithTheirCauseInTheLog) {
  const MethodTable table = TableWith(
      [](const auto&, auto*, const CallContext&) -> Result { throw std::runtime_error("the cause"); }, Effort::kShort);
  Running running(&table);
  grpc::ClientContext context;
  SetDeadline(context);
  context.AddMetadata("x-request-id", "job-18");
  const grpc::Status status = Estimate(running.channel(), context);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_THAT(status.error_message(), HasSubstr("job-18"));
  EXPECT_THAT(status.error_message(), ::testing::Not(HasSubstr("cause.")));
  bool logged = false;
  for (const auto& line : running.sink().Lines()) {
    logged = logged || (line.value("cause", "") == "the cause" && line.value("request_id", "") == "job-18");
  }
  EXPECT_TRUE(logged);
}

TEST(ServerLogTest, OneLinePerCall) {
  Running running;
  {
    grpc::ClientContext context;
    SetDeadline(context);
    context.AddMetadata("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    context.AddMetadata("x-request-id", "job-19");
    Estimate(running.channel(), context);
  }
  HealthOf(running.channel(), "");
  std::vector<nlohmann::json> calls;
  for (const auto& line : running.sink().Lines()) {
    if (line.at("message") == "call") calls.push_back(line);
  }
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].at("method"), "sliceplan.v1.PlannerService/EstimateTraining");
  EXPECT_EQ(calls[0].at("code"), "INVALID_ARGUMENT");
  EXPECT_EQ(calls[0].at("severity"), "INFO");
  EXPECT_EQ(calls[0].at("request_id"), "job-19");
  EXPECT_EQ(calls[0].at("trace_id"), "0af7651916cd43dd8448eb211c80319c");
  EXPECT_GE(calls[0].at("latency_s").get<double>(), 0);
  EXPECT_NEAR(calls[0].at("deadline_s").get<double>(), 20, 5);
  EXPECT_THAT(calls[0].at("peer").get<std::string>(), HasSubstr("127.0.0.1"));
  EXPECT_EQ(calls[1].at("method"), "grpc.health.v1.Health/Check");
  EXPECT_EQ(calls[1].at("severity"), "DEBUG");
}

// ---- Deadlines, cancellation, overload ----

TEST(ServerDeadlineTest, HandlersSeeTheCallersOrTheDefault) {
  std::promise<absl::Duration> seen;
  const MethodTable table = TableWith(
      [&](const auto&, auto*, const CallContext& call) {
        seen.set_value(call.deadline - absl::Now());
        return Result();
      },
      Effort::kShort);
  const auto remaining = [&](int seconds) {
    seen = {};
    ServerOptions options;
    options.default_deadline = absl::Seconds(40);
    options.max_deadline = absl::Seconds(100);
    Running running(&table, options);
    grpc::ClientContext context;
    if (seconds > 0) SetDeadline(context, seconds);
    EXPECT_TRUE(Estimate(running.channel(), context).ok());
    return absl::ToDoubleSeconds(seen.get_future().get());
  };
  EXPECT_NEAR(remaining(0), 40, 5);
  EXPECT_NEAR(remaining(60), 60, 5);
  EXPECT_NEAR(remaining(1000), 100, 5);
}

TEST(ServerCancelTest, HandlersSeeThatTheCallerLeft) {
  std::promise<void> entered;
  std::promise<bool> left;
  const MethodTable table = TableWith(
      [&](const auto&, auto*, const CallContext& call) {
        entered.set_value();
        WaitUntil([&] { return call.Stopped(); });
        left.set_value(call.Cancelled());
        return Cancelled();
      },
      Effort::kLong);
  Running running(&table);
  grpc::ClientContext context;
  SetDeadline(context);
  auto answer = std::async(std::launch::async, [&] { return Estimate(running.channel(), context); });
  entered.get_future().wait();
  context.TryCancel();
  EXPECT_TRUE(left.get_future().get());
  EXPECT_EQ(answer.get().error_code(), grpc::StatusCode::CANCELLED);
}

// Long work waits for a worker; what would wait too long is refused with the time to come back, and health is not held
// up.
TEST(ServerOverloadTest, ShedsWithPushback) {
  std::promise<void> open;
  std::shared_future<void> opened = open.get_future().share();
  std::atomic<int> entered{0};
  const MethodTable table = TableWith(
      [&](const auto&, auto*, const CallContext&) {
        ++entered;
        opened.wait();
        return Result();
      },
      Effort::kSearch);
  ServerOptions options;
  options.worker_threads = 1;
  options.target_wait = absl::ZeroDuration();  // as few as a queue may hold
  Running running(&table, options);
  const size_t limit = running.server().pool().queue_limit(Lane::kSearch);

  std::vector<std::future<grpc::Status>> waiting;
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  const auto start = [&] {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    SetDeadline(*contexts.back(), 60);
    waiting.push_back(std::async(
        std::launch::async, [&, context = contexts.back().get()] { return Estimate(running.channel(), *context); }));
  };
  start();
  WaitUntil([&] { return entered == 1; });
  for (size_t i = 0; i < limit; ++i) start();
  WaitUntil([&] { return running.server().pool().queue_length(Lane::kSearch) == limit; });

  grpc::ClientContext context;
  SetDeadline(context);
  const grpc::Status shed = Estimate(running.channel(), context);
  EXPECT_EQ(shed.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_GT(DetailOf<google::rpc::RetryInfo>(DetailsOf(shed)).retry_delay().nanos(), 0);
  const auto pushback = context.GetServerTrailingMetadata().find("grpc-retry-pushback-ms");
  ASSERT_NE(pushback, context.GetServerTrailingMetadata().end());
  EXPECT_GT(std::stoi(std::string(pushback->second.data(), pushback->second.size())), 0);
  EXPECT_EQ(HealthOf(running.channel(), ""), "SERVING");

  open.set_value();
  for (auto& call : waiting) EXPECT_TRUE(call.get().ok());
}

// ---- Limits of connections ----

TEST(ServerLimitsTest, CallsBeyondTheStreamsOfAConnectionWait) {
  std::promise<void> open;
  std::shared_future<void> opened = open.get_future().share();
  std::atomic<int> entered{0};
  const MethodTable table = TableWith(
      [&](const auto&, auto*, const CallContext&) {
        ++entered;
        opened.wait();
        return Result();
      },
      Effort::kSearch);
  ServerOptions options;
  options.worker_threads = 4;
  options.max_concurrent_streams = 2;
  Running running(&table, options);
  grpc::ClientContext contexts[2];
  std::vector<std::future<grpc::Status>> held;
  for (grpc::ClientContext& context : contexts) {
    SetDeadline(context, 60);
    held.push_back(std::async(std::launch::async, [&] { return Estimate(running.channel(), context); }));
  }
  WaitUntil([&] { return entered == 2; });
  // A third waits in the client; on a connection of its own it does not.
  const auto list = [&](const std::shared_ptr<grpc::Channel>& channel) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(300));
    v1::ListPricesResponse response;
    return v1::CatalogService::NewStub(channel)->ListPrices(&context, v1::ListPricesRequest(), &response).error_code();
  };
  EXPECT_EQ(list(running.channel()), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(HealthOf(running.NewChannel(), ""), "SERVING");
  open.set_value();
  for (auto& call : held) EXPECT_TRUE(call.get().ok());
  EXPECT_EQ(entered, 2);
}

TEST(ServerLimitsTest, OldConnectionsEndWithoutAFailedCall) {
  const MethodTable table = TableWith([](const auto&, auto*, const CallContext&) { return Result(); }, Effort::kShort);
  ServerOptions options;
  options.max_connection_age = absl::Milliseconds(100);
  Running running(&table, options);
  std::set<std::string> peers;
  WaitUntil([&] {
    grpc::ClientContext context;
    SetDeadline(context);
    EXPECT_TRUE(Estimate(running.channel(), context).ok());
    // The caller's port is another one after each reconnect.
    const auto lines = running.sink().Lines();
    if (lines.back().contains("peer")) peers.insert(lines.back().at("peer").get<std::string>());
    return peers.size() >= 3;
  });
}

// ---- The end ----

TEST(ServerDrainTest, HealthGoesFirstAndCallsGoOn) {
  Running running;
  running.server().BeginDrain();
  for (const char* service : kServices) EXPECT_EQ(HealthOf(running.channel(), service), "NOT_SERVING") << service;
  grpc::ClientContext context;
  SetDeadline(context);
  v1::ListPricesResponse response;
  EXPECT_TRUE(
      v1::CatalogService::NewStub(running.channel())->ListPrices(&context, v1::ListPricesRequest(), &response).ok());
}

TEST(ServerDrainTest, OpenHealthWatchesDoNotHoldTheEnd) {
  Running running;
  grpc::GenericStub stub(running.channel());
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  SetDeadline(context, 60);
  const auto watch = stub.PrepareCall(&context, "/grpc.health.v1.Health/Watch", &queue);
  // Each operation ends before the next begins; the answer is whether it worked.
  const auto step = [&queue](const auto& begin) {
    void* tag = nullptr;
    bool worked = false;
    begin(&tag);
    return queue.Next(&tag, &worked) && worked;
  };
  ASSERT_TRUE(step([&](void* tag) { watch->StartCall(tag); }));
  const grpc::Slice no_bytes;  // the request without fields: the whole server
  ASSERT_TRUE(step([&](void* tag) { watch->Write(grpc::ByteBuffer(&no_bytes, 1), tag); }));
  ASSERT_TRUE(step([&](void* tag) { watch->WritesDone(tag); }));
  grpc::ByteBuffer serving;
  ASSERT_TRUE(step([&](void* tag) { watch->Read(&serving, tag); }));

  running.server().Shutdown(absl::Hours(1));
  grpc::Status status;
  ASSERT_TRUE(step([&](void* tag) { watch->Finish(&status, tag); }));
  // The second when the connection closes before the end of the call arrives.
  EXPECT_THAT(status.error_code(), testing::AnyOf(grpc::StatusCode::CANCELLED, grpc::StatusCode::UNAVAILABLE));
}

TEST(ServerDrainTest, RunningCallsEndWithinTheGrace) {
  std::promise<void> entered;
  std::promise<void> open;
  const MethodTable table = TableWith(
      [&](const auto&, auto*, const CallContext&) {
        entered.set_value();
        open.get_future().wait();
        return Result();
      },
      Effort::kLong);
  Running running(&table);
  grpc::ClientContext context;
  SetDeadline(context, 60);
  auto answer = std::async(std::launch::async, [&] { return Estimate(running.channel(), context); });
  entered.get_future().wait();
  auto stopped = std::async(std::launch::async, [&] { running.server().Shutdown(absl::Seconds(60)); });
  // The listener closes at once: a new connection finds nobody.
  WaitUntil([&] {
    grpc::ClientContext late;
    SetDeadline(late, 10);
    return Estimate(running.NewChannel(), late).error_code() == grpc::StatusCode::UNAVAILABLE;
  });
  open.set_value();
  EXPECT_TRUE(answer.get().ok());
  stopped.wait();
}

// Callers that go on calling while the server ends have an answer or UNAVAILABLE: a call that gRPC's own shutdown meets
// on its way in would be CANCELLED.
TEST(ServerDrainTest, UnderLoadEveryCallIsAnsweredOrUnavailable) {
  constexpr int kCallers = 8;
  std::atomic<int> answered = 0;
  std::atomic<int> unavailable = 0;
  std::atomic<int> other = 0;
  for (int round = 0; round < 5; ++round) {
    const MethodTable table = TableWith([](const auto&, auto*, const CallContext&) { return Result(); },
                                        round % 2 == 0 ? Effort::kShort : Effort::kLong);
    Running running(&table);
    std::atomic<int> answered_now = 0;
    std::vector<std::thread> callers;
    for (int i = 0; i < kCallers; ++i) {
      callers.emplace_back([&, channel = running.NewChannel()] {
        const auto stub = v1::PlannerService::NewStub(channel);
        while (true) {
          grpc::ClientContext context;
          SetDeadline(context);
          v1::EstimateTrainingResponse response;
          const grpc::Status status = stub->EstimateTraining(&context, v1::EstimateTrainingRequest(), &response);
          if (status.ok()) {
            ++answered_now;
          } else {
            ++(status.error_code() == grpc::StatusCode::UNAVAILABLE ? unavailable : other);
            break;
          }
        }
      });
    }
    WaitUntil([&] { return answered_now > 50 * kCallers; });
    running.server().Shutdown(absl::Seconds(10));
    for (std::thread& caller : callers) caller.join();
    answered += answered_now;
  }
  EXPECT_EQ(other, 0) << answered << " answered, " << unavailable << " unavailable";
}

TEST(ServerDrainTest, CallsBeyondTheGraceAreCancelled) {
  std::promise<void> entered;
  const MethodTable table = TableWith(
      [&](const auto&, auto*, const CallContext& call) {
        entered.set_value();
        WaitUntil([&] { return call.Stopped(); });
        return Cancelled();
      },
      Effort::kLong);
  Running running(&table);
  grpc::ClientContext context;
  SetDeadline(context, 60);
  auto answer = std::async(std::launch::async, [&] { return Estimate(running.channel(), context); });
  entered.get_future().wait();
  running.server().Shutdown(absl::ZeroDuration());
  EXPECT_FALSE(answer.get().ok());
}

}  // namespace
}  // namespace sliceplan::rpc
