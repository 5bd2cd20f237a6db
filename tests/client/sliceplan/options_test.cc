// What a client refuses to be made from.
#include "client/sliceplan/options.h"

#include <functional>
#include <limits>

#include "client/sliceplan/client.h"
#include "gmock/gmock.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"

namespace sliceplan {
namespace {

TEST(OptionsTest, DefaultsMakeAClient) { EXPECT_TRUE(Client::Create(ClientOptions()).ok()); }

TEST(OptionsTest, OwnCredentialsReplaceTls) {
  ClientOptions options;
  options.tls.root_certificates_file = "/nonexistent/ca.pem";
  options.credentials = grpc::InsecureChannelCredentials();
  EXPECT_TRUE(Client::Create(options).ok());
}

struct Refusal {
  const char* name;
  std::function<void(ClientOptions&)> change;
  absl::StatusCode code;
  const char* message;
};

void PrintTo(const Refusal& refusal, std::ostream* out) { *out << refusal.name; }

class RefusalTest : public testing::TestWithParam<Refusal> {};

TEST_P(RefusalTest, Refuses) {
  ClientOptions options;
  GetParam().change(options);
  const absl::Status status = Client::Create(options).status();
  EXPECT_EQ(status.code(), GetParam().code);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr(GetParam().message));
}

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
INSTANTIATE_TEST_SUITE_P(
    Options, RefusalTest,
    testing::Values(
        Refusal{"target", [](ClientOptions& o) { o.target = ""; }, kInvalid, "target"},
        Refusal{"deadline", [](ClientOptions& o) { o.deadlines.search = absl::ZeroDuration(); }, kInvalid, "deadline"},
        Refusal{"no_attempts", [](ClientOptions& o) { o.retry.max_attempts = 0; }, kInvalid, "max_attempts"},
        Refusal{"six_attempts", [](ClientOptions& o) { o.retry.max_attempts = 6; }, kInvalid, "max_attempts"},
        Refusal{"backoff", [](ClientOptions& o) { o.retry.initial_backoff = absl::ZeroDuration(); }, kInvalid,
                "backoff"},
        Refusal{"endless_backoff", [](ClientOptions& o) { o.retry.max_backoff = absl::InfiniteDuration(); }, kInvalid,
                "backoff"},
        Refusal{"multiplier", [](ClientOptions& o) { o.retry.backoff_multiplier = 0.5; }, kInvalid,
                "backoff_multiplier"},
        Refusal{"nan_multiplier",
                [](ClientOptions& o) { o.retry.backoff_multiplier = std::numeric_limits<double>::quiet_NaN(); },
                kInvalid, "backoff_multiplier"},
        Refusal{"reply_size", [](ClientOptions& o) { o.max_reply_bytes = 0; }, kInvalid, "max_reply_bytes"},
        Refusal{"key_without_certificate", [](ClientOptions& o) { o.tls.client_key_file = "key.pem"; }, kInvalid,
                "certificate"},
        Refusal{"token_over_plaintext",
                [](ClientOptions& o) {
                  o.security = TransportSecurity::kPlaintext;
                  o.bearer_token = "t";
                },
                kInvalid, "bearer_token_over_plaintext"},
        Refusal{"token_that_cannot_be_sent", [](ClientOptions& o) { o.bearer_token = "two words"; }, kInvalid,
                "visible ASCII"},
        Refusal{"token_too_long", [](ClientOptions& o) { o.bearer_token = std::string(4097, 'a'); }, kInvalid, "4096"},
        Refusal{"token_twice",
                [](ClientOptions& o) {
                  o.bearer_token = "t";
                  o.bearer_token_file = "/nonexistent/token";
                },
                kInvalid, "both"},
        Refusal{"missing_token_file", [](ClientOptions& o) { o.bearer_token_file = "/nonexistent/token"; },
                absl::StatusCode::kNotFound, "/nonexistent/token"},
        Refusal{"missing_file", [](ClientOptions& o) { o.tls.root_certificates_file = "/nonexistent/ca.pem"; },
                absl::StatusCode::kNotFound, "/nonexistent/ca.pem"}),
    [](const testing::TestParamInfo<Refusal>& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace sliceplan
