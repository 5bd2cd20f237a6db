// The client against a server on a loopback port: what arrives there, and what comes back.
#include "client/sliceplan/client.h"

#include <atomic>
#include <chrono>
#include <mutex>
#include <vector>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/google/rpc/error_details.pb.h"
#include "proto/google/rpc/status.pb.h"
#include "tests/client/sliceplan/fake_server.h"

namespace sliceplan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

grpc::Status Echo(grpc::ServerContext&, const v1::EstimateTrainingRequest& request,
                  v1::EstimateTrainingResponse& response) {
  response.set_engine_version(request.model().preset());
  return grpc::Status::OK;
}

v1::EstimateTrainingRequest RequestFor(const std::string& preset) {
  v1::EstimateTrainingRequest request;
  request.mutable_model()->set_preset(preset);
  return request;
}

Client Connect(const ClientOptions& options) {
  absl::StatusOr<Client> client = Client::Create(options);
  EXPECT_TRUE(client.ok()) << client.status();
  return *std::move(client);
}

TEST(ClientTest, BringsRequestAndReply) {
  FakeServer server(Echo);
  const absl::StatusOr<v1::EstimateTrainingResponse> reply =
      Connect(server.Options()).EstimateTraining(RequestFor("llama-3-70b"));
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->engine_version(), "llama-3-70b");
}

TEST(ClientTest, SendsUserAgentAndMetadata) {
  std::string user_agent;
  std::string request_id;
  FakeServer server([&](grpc::ServerContext& context, const auto&, auto&) {
    const auto& metadata = context.client_metadata();
    const auto agent = metadata.find("user-agent");
    const auto id = metadata.find("x-request-id");
    if (agent != metadata.end()) user_agent.assign(agent->second.data(), agent->second.size());
    if (id != metadata.end()) request_id.assign(id->second.data(), id->second.size());
    return grpc::Status::OK;
  });
  ClientOptions options = server.Options();
  options.user_agent = "gang-scheduler/2.1";
  CallOptions call;
  call.metadata = {{"x-request-id", "job-17"}};
  ASSERT_TRUE(Connect(options).EstimateTraining({}, call).ok());
  EXPECT_THAT(user_agent, testing::StartsWith("gang-scheduler/2.1 sliceplan-client/"));
  EXPECT_EQ(request_id, "job-17");
}

TEST(ClientTest, SendsTheDeadlineOfTheMethodOrOfTheCall) {
  std::chrono::system_clock::time_point deadline;
  FakeServer server([&](grpc::ServerContext& context, const auto&, auto&) {
    deadline = context.deadline();
    return grpc::Status::OK;
  });
  ClientOptions options = server.Options();
  options.deadlines.estimate = absl::Seconds(100);
  const Client client = Connect(options);
  const auto left = [&] { return absl::FromChrono(deadline) - absl::Now(); };

  ASSERT_TRUE(client.EstimateTraining({}).ok());
  EXPECT_GT(left(), absl::Seconds(90));
  EXPECT_LT(left(), absl::Seconds(101));

  CallOptions longer;
  longer.timeout = absl::Seconds(1000);
  ASSERT_TRUE(client.EstimateTraining({}, longer).ok());
  EXPECT_GT(left(), absl::Seconds(900));

  CallOptions without;
  without.timeout = absl::InfiniteDuration();
  ASSERT_TRUE(client.EstimateTraining({}, without).ok());
  EXPECT_GT(left(), absl::Hours(24 * 365));
}

TEST(ClientTest, GivesUpAtTheDeadline) {
  absl::Notification test_over;
  FakeServer server([&](auto&, const auto&, auto&) {
    test_over.WaitForNotification();
    return grpc::Status::OK;
  });
  CallOptions call;
  call.timeout = absl::Milliseconds(20);
  const auto reply = Connect(server.Options()).EstimateTraining({}, call);
  test_over.Notify();
  EXPECT_EQ(reply.status().code(), absl::StatusCode::kDeadlineExceeded) << reply.status();
}

TEST(ClientTest, BringsDetailsOfErrors) {
  google::rpc::BadRequest bad_request;
  auto* violation = bad_request.add_field_violations();
  violation->set_field("parallelism.ici.tensor");
  violation->set_description("40 heads do not divide over 16.");
  violation = bad_request.add_field_violations();
  violation->set_field("slice.topology");
  violation->set_description("No such shape.");
  google::rpc::ErrorInfo info;
  info.set_reason("HEADS_NOT_DIVISIBLE");
  info.set_domain("sliceplan.v1");
  (*info.mutable_metadata())["tensor"] = "16";
  (*info.mutable_metadata())["heads"] = "40";
  google::rpc::Status details;
  details.set_code(static_cast<int>(grpc::StatusCode::INVALID_ARGUMENT));
  details.set_message("Two things are wrong.");
  details.add_details()->PackFrom(bad_request);
  details.add_details()->PackFrom(info);
  FakeServer server([&](auto&, const auto&, auto&) {
    return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, details.message(), details.SerializeAsString());
  });

  const absl::Status status = Connect(server.Options()).EstimateTraining({}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "Two things are wrong.");
  const std::vector<FieldViolation> violations = FieldViolations(status);
  ASSERT_EQ(violations.size(), 2u);
  EXPECT_EQ(violations[0].field, "parallelism.ici.tensor");
  EXPECT_EQ(violations[0].description, "40 heads do not divide over 16.");
  EXPECT_EQ(violations[1].field, "slice.topology");
  const std::optional<ErrorInfo> read = GetErrorInfo(status);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->reason, "HEADS_NOT_DIVISIBLE");
  EXPECT_EQ(read->domain, "sliceplan.v1");
  EXPECT_THAT(read->metadata, ElementsAre(Pair("heads", "40"), Pair("tensor", "16")));
  EXPECT_FALSE(GetResourceInfo(status).has_value());
  EXPECT_FALSE(GetRetryDelay(status).has_value());
}

TEST(ClientTest, RetriesUntilTheServerAnswers) {
  std::atomic<int> calls = 0;
  FakeServer server([&](auto&, const auto&, auto&) {
    return ++calls <= 2 ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "restarting") : grpc::Status::OK;
  });
  EXPECT_TRUE(Connect(server.Options()).EstimateTraining({}).ok());
  EXPECT_EQ(calls, 3);
}

TEST(ClientTest, RetriesAtMostAsOftenAsAsked) {
  struct Case {
    int max_attempts;
    grpc::StatusCode code;
    int calls;
  };
  // Three failures leave nearly all tokens of the retry throttle.
  for (const Case& c : {Case{1, grpc::StatusCode::UNAVAILABLE, 1}, Case{3, grpc::StatusCode::UNAVAILABLE, 3},
                        Case{3, grpc::StatusCode::RESOURCE_EXHAUSTED, 3}, Case{3, grpc::StatusCode::INTERNAL, 1},
                        Case{3, grpc::StatusCode::INVALID_ARGUMENT, 1}}) {
    std::atomic<int> calls = 0;
    FakeServer server([&](auto&, const auto&, auto&) {
      ++calls;
      return grpc::Status(c.code, "no");
    });
    ClientOptions options = server.Options();
    options.retry.max_attempts = c.max_attempts;
    EXPECT_FALSE(Connect(options).EstimateTraining({}).ok());
    EXPECT_EQ(calls, c.calls) << "attempts " << c.max_attempts << ", code " << c.code;
  }
}

TEST(ClientTest, HeedsAServerThatWantsNoRetry) {
  std::atomic<int> calls = 0;
  google::rpc::RetryInfo info;
  info.mutable_retry_delay()->set_seconds(2);
  google::rpc::Status details;
  details.set_code(static_cast<int>(grpc::StatusCode::RESOURCE_EXHAUSTED));
  details.add_details()->PackFrom(info);
  FakeServer server([&](grpc::ServerContext& context, const auto&, auto&) {
    ++calls;
    context.AddTrailingMetadata("grpc-retry-pushback-ms", "-1");
    return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "busy", details.SerializeAsString());
  });
  const absl::Status status = Connect(server.Options()).EstimateTraining({}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(GetRetryDelay(status), absl::Seconds(2));
  EXPECT_EQ(calls, 1);
}

TEST(ClientTest, SaysUnavailableWhenNobodyListens) {
  ClientOptions options;
  {
    FakeServer server(Echo);
    options = server.Options();
  }
  EXPECT_EQ(Connect(options).EstimateTraining({}).status().code(), absl::StatusCode::kUnavailable);
}

TEST(ClientTest, SpreadsCallsOverReplicasThatServe) {
  std::atomic<int> calls[3] = {};
  const auto count = [&](int i) {
    return [&calls, i](auto&, const auto&, auto&) {
      ++calls[i];
      return grpc::Status::OK;
    };
  };
  grpc::EnableDefaultHealthCheckService(true);
  FakeServer first(count(0));
  FakeServer second(count(1));
  FakeServer draining(count(2));
  grpc::EnableDefaultHealthCheckService(false);
  constexpr char kService[] = "sliceplan.v1.PlannerService";
  first.server().GetHealthCheckService()->SetServingStatus(kService, true);
  second.server().GetHealthCheckService()->SetServingStatus(kService, true);
  draining.server().GetHealthCheckService()->SetServingStatus(kService, false);

  ClientOptions options = first.Options();
  options.health_checks = true;
  options.target = absl::StrCat("ipv4:", first.address(), ",", second.address(), ",", draining.address());
  const Client client = Connect(options);
  // Connections come up one after the other: until both are there, one replica may get all calls.
  constexpr int kPatience = 2000;
  int made = 0;
  while ((calls[0] == 0 || calls[1] == 0) && made < kPatience) {
    ASSERT_TRUE(client.EstimateTraining({}).ok());
    ++made;
  }
  EXPECT_GT(calls[0], 0);
  EXPECT_GT(calls[1], 0);
  EXPECT_EQ(calls[2], 0);
}

TEST(ClientTest, AnswersManyAsynchronousCalls) {
  FakeServer server(Echo);
  const Client client = Connect(server.Options());
  constexpr int kCalls = 50;
  absl::BlockingCounter pending(kCalls);
  std::mutex mutex;
  std::vector<std::string> answers;
  for (int i = 0; i < kCalls; ++i) {
    // The request goes away before the call has ended.
    client.EstimateTrainingAsync(RequestFor(absl::StrCat("model-", i)),
                                 [&](absl::StatusOr<v1::EstimateTrainingResponse> reply) {
                                   {
                                     const std::lock_guard<std::mutex> lock(mutex);
                                     answers.push_back(reply.ok() ? reply->engine_version() : "failed");
                                   }
                                   pending.DecrementCount();
                                 });
  }
  pending.Wait();
  std::vector<std::string> expected;
  for (int i = 0; i < kCalls; ++i) expected.push_back(absl::StrCat("model-", i));
  EXPECT_THAT(answers, testing::UnorderedElementsAreArray(expected));
}

TEST(ClientTest, CancelsAsynchronousCalls) {
  absl::Notification started;
  absl::Notification test_over;
  FakeServer server([&](auto&, const auto&, auto&) {
    started.Notify();
    test_over.WaitForNotification();
    return grpc::Status::OK;
  });
  const Client client = Connect(server.Options());
  absl::Notification ended;
  absl::Status status;
  const PendingCall call =
      client.EstimateTrainingAsync({}, [&](const absl::StatusOr<v1::EstimateTrainingResponse>& reply) {
        status = reply.status();
        ended.Notify();
      });
  started.WaitForNotification();
  call.Cancel();
  ended.WaitForNotification();
  test_over.Notify();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  call.Cancel();
}

TEST(ClientTest, EndsPendingCallsWithTheLastCopy) {
  absl::Notification started;
  absl::Notification test_over;
  FakeServer server([&](auto&, const auto&, auto&) {
    started.Notify();
    test_over.WaitForNotification();
    return grpc::Status::OK;
  });
  absl::Status status;
  bool ended = false;
  {
    const Client client = Connect(server.Options());
    client.EstimateTrainingAsync({}, [&](const absl::StatusOr<v1::EstimateTrainingResponse>& reply) {
      status = reply.status();
      ended = true;
    });
    started.WaitForNotification();
  }
  // The destructor has waited for the callback.
  EXPECT_TRUE(ended);
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  test_over.Notify();
}

TEST(ClientTest, EndsWithACallbackThatHoldsTheLastCopy) {
  FakeServer server(Echo);
  absl::Notification ended;
  {
    const Client client = Connect(server.Options());
    client.EstimateTrainingAsync(
        RequestFor("m"),
        [copy = client, &ended](const absl::StatusOr<v1::EstimateTrainingResponse>&) { ended.Notify(); });
  }
  ended.WaitForNotification();
}

}  // namespace
}  // namespace sliceplan
