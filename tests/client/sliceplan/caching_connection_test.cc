#include "client/sliceplan/caching_connection.h"

#include <memory>
#include <string>

#include "client/sliceplan/client.h"
#include "client/sliceplan/fake_connection.h"
#include "client/sliceplan/methods.h"
#include "gtest/gtest.h"

namespace sliceplan {
namespace {

// A service that says how often it was asked, behind a memory with a clock that a test moves.
class CachingConnectionTest : public testing::Test {
 protected:
  CachingConnectionTest() {
    fake_->Answer<v1::EstimateTrainingRequest, v1::EstimateTrainingResponse>(
        [this](const v1::EstimateTrainingRequest& request) -> absl::StatusOr<v1::EstimateTrainingResponse> {
          if (request.model().preset() == "wrong") return absl::NotFoundError("no");
          v1::EstimateTrainingResponse response;
          response.set_engine_version(engine_version_);
          response.set_catalog_version("2026-11");
          return response;
        });
    fake_->Answer<v1::ProposeShardingRequest, v1::ProposeShardingResponse>(
        [this](const v1::ProposeShardingRequest&) -> absl::StatusOr<v1::ProposeShardingResponse> {
          v1::ProposeShardingResponse response;
          response.set_engine_version(engine_version_);
          response.set_catalog_version("2026-11");
          response.mutable_search()->set_exhaustive(exhaustive_);
          return response;
        });
  }

  Client MakeClient(size_t max_bytes = 1 << 20) {
    return Client(MakeCachingConnection(fake_, {max_bytes, absl::Seconds(60), [this] { return now_; }}));
  }
  static v1::EstimateTrainingRequest Request(const std::string& preset) {
    v1::EstimateTrainingRequest request;
    request.mutable_model()->set_preset(preset);
    return request;
  }
  int asked() const { return fake_->CallCount(kEstimateTraining); }

  const std::shared_ptr<FakeConnection> fake_ = std::make_shared<FakeConnection>();
  absl::Time now_ = absl::UnixEpoch();
  std::string engine_version_ = "1";
  bool exhaustive_ = true;
};

TEST_F(CachingConnectionTest, AsksEachQuestionOnce) {
  const Client client = MakeClient();
  for (int i = 0; i < 3; ++i) {
    for (const char* preset : {"a", "b"}) {
      const auto reply = client.EstimateTraining(Request(preset));
      ASSERT_TRUE(reply.ok());
      EXPECT_EQ(reply->engine_version(), "1");
    }
  }
  EXPECT_EQ(asked(), 2);
  std::string version;
  client.EstimateTrainingAsync(
      Request("a"), [&](absl::StatusOr<v1::EstimateTrainingResponse> reply) { version = reply->engine_version(); });
  EXPECT_EQ(version, "1");
  client.EstimateTrainingAsync(Request("c"), [](absl::StatusOr<v1::EstimateTrainingResponse>) {});
  EXPECT_TRUE(client.EstimateTraining(Request("c")).ok());
  EXPECT_EQ(asked(), 3);
}

TEST_F(CachingConnectionTest, ForgetsWithAgeAndWithOtherVersions) {
  const Client client = MakeClient();
  EXPECT_TRUE(client.EstimateTraining(Request("a")).ok());
  now_ += absl::Seconds(59);
  EXPECT_TRUE(client.EstimateTraining(Request("a")).ok());
  EXPECT_EQ(asked(), 1);
  now_ += absl::Seconds(1);
  EXPECT_TRUE(client.EstimateTraining(Request("a")).ok());
  EXPECT_EQ(asked(), 2);
  engine_version_ = "2";
  EXPECT_TRUE(client.EstimateTraining(Request("b")).ok());
  EXPECT_EQ(client.EstimateTraining(Request("a"))->engine_version(), "2");
  EXPECT_EQ(asked(), 4);
}

TEST_F(CachingConnectionTest, ErrorsAndUnprovenSearchesAreAskedAgain) {
  const Client client = MakeClient();
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(client.EstimateTraining(Request("wrong")).ok());
  EXPECT_EQ(asked(), 2);
  exhaustive_ = false;
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(client.ProposeSharding(v1::ProposeShardingRequest()).ok());
  EXPECT_EQ(fake_->CallCount(kProposeSharding), 2);
  exhaustive_ = true;
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(client.ProposeSharding(v1::ProposeShardingRequest()).ok());
  EXPECT_EQ(fake_->CallCount(kProposeSharding), 3);
}

TEST_F(CachingConnectionTest, CallsWithATokenOfTheirOwnAreNotShared) {
  const Client client = MakeClient();
  CallOptions own;
  own.bearer_token = "t";
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(client.EstimateTraining(Request("a"), own).ok());
  EXPECT_TRUE(client.EstimateTraining(Request("a")).ok());
  EXPECT_EQ(asked(), 3);
}

TEST_F(CachingConnectionTest, TheLeastUsedGoesFirst) {
  // Room for two of three: each takes a little more than its request twice.
  const std::string filler(10'000, 'x');
  const Client client = MakeClient(/*max_bytes=*/50'000);
  const auto ask = [&](const std::string& name) { EXPECT_TRUE(client.EstimateTraining(Request(name + filler)).ok()); };
  ask("a");
  ask("b");
  ask("a");
  ask("c");
  EXPECT_EQ(asked(), 3);
  ask("a");
  EXPECT_EQ(asked(), 3);
  ask("b");
  EXPECT_EQ(asked(), 4);
}

}  // namespace
}  // namespace sliceplan
