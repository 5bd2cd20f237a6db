#include "tests/load/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>

#include "absl/status/status.h"

namespace sliceplan::load {
namespace {

// Answers on the caller's thread; every `fail_every`-th call is UNAVAILABLE.
class CountingConnection : public Connection {
 public:
  explicit CountingConnection(int fail_every = 0) : fail_every_(fail_every) {}

  absl::Status Call(const std::string&, const google::protobuf::Message&, const CallOptions&,
                    google::protobuf::Message*) override {
    const int number = ++call_count;
    if (fail_every_ > 0 && number % fail_every_ == 0) return absl::UnavailableError("gone");
    return absl::OkStatus();
  }
  PendingCall Start(const std::string& method, const google::protobuf::Message& request, const CallOptions& options,
                    google::protobuf::Message* response, std::function<void(absl::Status)> done) override {
    done(Call(method, request, options, response));
    return PendingCall();
  }

  std::atomic<int> call_count{0};

 private:
  const int fail_every_;
};

LoadOptions AtRate(double rate) {
  LoadOptions options;
  options.rate = rate;
  options.length = absl::Milliseconds(100);
  return options;
}

TEST(LoadTest, TheRateSaysHowManyCalls) {
  const auto one = std::make_shared<CountingConnection>(), two = std::make_shared<CountingConnection>();
  int first_count = 0;
  const auto result = RunLoad({one, two}, AtRate(1000), [&] { ++first_count; });
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->call_count, 100);  // 1000 a second for 0.1 s
  EXPECT_EQ(result->failed_count(), 0);
  EXPECT_EQ(one->call_count, 50);
  EXPECT_EQ(two->call_count, 50);
  EXPECT_EQ(first_count, 1);
}

TEST(LoadTest, FailuresAreCountedByCode) {
  const auto result = RunLoad({std::make_shared<CountingConnection>(4)}, AtRate(1000), [] {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->failure_counts, testing::ElementsAre(testing::Pair("UNAVAILABLE", 25)));
  EXPECT_EQ(result->failed_count(), 25);
  EXPECT_EQ(result->first_failure, "gone");
  EXPECT_THAT(ToJson(*result), testing::HasSubstr(R"("calls": 100, "ok": 75, "failures": {"UNAVAILABLE": 25})"));
}

TEST(LoadTest, QuantilesAreOfTheNearestRank) {
  LoadResult result;
  EXPECT_EQ(result.OkMilliseconds(0.5), 0);
  result.ok_milliseconds.resize(200);
  std::iota(result.ok_milliseconds.begin(), result.ok_milliseconds.end(), 1.0F);
  EXPECT_EQ(result.OkMilliseconds(0), 1);
  EXPECT_EQ(result.OkMilliseconds(0.5), 100);
  EXPECT_EQ(result.OkMilliseconds(0.99), 198);
  EXPECT_EQ(result.OkMilliseconds(1), 200);
}

TEST(LoadTest, RefusesWhatItCannotSend) {
  LoadOptions options = AtRate(1000);
  options.method = "sliceplan.v1.PlannerService/NoSuchThing";
  EXPECT_EQ(RunLoad({std::make_shared<CountingConnection>()}, options, [] {}).status().code(),
            absl::StatusCode::kNotFound);
  options = AtRate(1000);
  options.request_json = R"({"modle": 1})";
  EXPECT_EQ(RunLoad({std::make_shared<CountingConnection>()}, options, [] {}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace sliceplan::load
