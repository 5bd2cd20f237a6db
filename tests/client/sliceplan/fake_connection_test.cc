// Code that uses a client, tested without a server.
#include "client/sliceplan/fake_connection.h"

#include <memory>

#include "client/sliceplan/client.h"
#include "client/sliceplan/methods.h"
#include "gtest/gtest.h"

namespace sliceplan {
namespace {

TEST(FakeConnectionTest, AnswersByRequest) {
  auto fake = std::make_shared<FakeConnection>();
  fake->Answer<v1::EstimateTrainingRequest, v1::EstimateTrainingResponse>(
      [](const v1::EstimateTrainingRequest& request) -> absl::StatusOr<v1::EstimateTrainingResponse> {
        if (!request.has_model()) return absl::InvalidArgumentError("no model");
        v1::EstimateTrainingResponse response;
        response.set_catalog_version(request.model().preset());
        return response;
      });
  const Client client(fake);
  EXPECT_EQ(client.EstimateTraining({}).status(), absl::InvalidArgumentError("no model"));
  v1::EstimateTrainingRequest request;
  request.mutable_model()->set_preset("llama-3-8b");
  EXPECT_EQ(client.EstimateTraining(request)->catalog_version(), "llama-3-8b");
  EXPECT_EQ(fake->CallCount(kEstimateTraining), 2);
  EXPECT_EQ(fake->CallCount(kEstimateServing), 0);
}

TEST(FakeConnectionTest, AnswersAsynchronousCallsAtOnce) {
  auto fake = std::make_shared<FakeConnection>();
  fake->Answer<v1::ListModelsRequest, v1::ListModelsResponse>([](const v1::ListModelsRequest&) {
    v1::ListModelsResponse response;
    response.set_total_count(3);
    return response;
  });
  int total = 0;
  CallOptions options;
  options.timeout = absl::Seconds(7);
  Client(fake).ListModelsAsync(
      {}, [&](absl::StatusOr<v1::ListModelsResponse> reply) { total = reply->total_count(); }, options);
  EXPECT_EQ(total, 3);
  EXPECT_EQ(fake->LastOptions().timeout, absl::Seconds(7));
}

// Every method of the client reaches the RPC of its name: nothing answers, and the refusal names the RPC.
TEST(FakeConnectionTest, EveryMethodCallsItsOwnRpc) {
  auto fake = std::make_shared<FakeConnection>();
  const Client client(fake);
  const auto unanswered = [](const auto& reply) { return reply.status().code() == absl::StatusCode::kUnimplemented; };
  int refused = 0;
  const auto count = [&](const auto& reply) { refused += unanswered(reply) ? 1 : 0; };
#define SLICEPLAN_CHECK_RPC(Name)           \
  EXPECT_TRUE(unanswered(client.Name({}))); \
  client.Name##Async({}, count);            \
  EXPECT_EQ(fake->CallCount(k##Name), 2)
  SLICEPLAN_CHECK_RPC(EstimateTraining);
  SLICEPLAN_CHECK_RPC(EstimateServing);
  SLICEPLAN_CHECK_RPC(ProposeSharding);
  SLICEPLAN_CHECK_RPC(DescribeModel);
  SLICEPLAN_CHECK_RPC(AnalyzeOperation);
  SLICEPLAN_CHECK_RPC(AnalyzeCollective);
  SLICEPLAN_CHECK_RPC(CompareMeasurement);
  SLICEPLAN_CHECK_RPC(ListAccelerators);
  SLICEPLAN_CHECK_RPC(ListSlices);
  SLICEPLAN_CHECK_RPC(ListPrices);
  SLICEPLAN_CHECK_RPC(ListModels);
#undef SLICEPLAN_CHECK_RPC
  EXPECT_EQ(refused, static_cast<int>(AllMethods().size()));
}

}  // namespace
}  // namespace sliceplan
