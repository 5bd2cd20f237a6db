// Token files and what they allow.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/rpc/sha256.h"
#include "server/rpc/token_authority.h"
#include "server/rpc/token_file.h"
#include "tests/rpc/files.h"
#include "tests/rpc/testing.h"

namespace sliceplan::rpc {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// FIPS 180-4's examples, as NIST publishes them (SHA256.pdf), and the empty message.
TEST(Sha256Test, PublishedDigests) {
  const std::pair<std::string, const char*> rows[] = {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
      {std::string(1'000'000, 'a'), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
  };
  for (const auto& [message, hex] : rows) {
    EXPECT_EQ(ToHex(Sha256(message)), hex);
    EXPECT_EQ(Sha256FromHex(hex), Sha256(message));
  }
}

TEST(Sha256Test, ReadsNothingElse) {
  const std::string hex = ToHex(Sha256(""));
  for (const std::string& wrong : {std::string(), hex.substr(1), hex + "0", "g" + hex.substr(1), " " + hex.substr(1)}) {
    EXPECT_EQ(Sha256FromHex(wrong), std::nullopt) << wrong;
  }
  std::string upper = hex;
  for (char& c : upper) c = static_cast<char>(toupper(c));
  EXPECT_EQ(Sha256FromHex(upper), Sha256(""));
}

TEST(Sha256Test, ComparesEveryByte) {
  const Sha256Digest digest = Sha256("a");
  EXPECT_TRUE(EqualInConstantTime(digest, Sha256("a")));
  for (size_t i = 0; i < kSha256Bytes; ++i) {
    Sha256Digest other = digest;
    other[i] ^= 1;
    EXPECT_FALSE(EqualInConstantTime(digest, other)) << i;
  }
}

TEST(GlobTest, StarIsAnyText) {
  const struct {
    const char* pattern;
    const char* text;
    bool fits;
  } rows[] = {
      {"PlannerService/*", "PlannerService/EstimateTraining", true},
      {"PlannerService/Estimate*", "PlannerService/EstimateServing", true},
      {"PlannerService/Estimate*", "PlannerService/ProposeSharding", false},
      {"*", "CatalogService/ListPrices", true},
      {"*/List*", "CatalogService/ListPrices", true},
      {"*List*s", "CatalogService/ListPrices", true},
      {"*List", "CatalogService/ListPrices", false},
      {"CatalogService/ListPrices", "CatalogService/ListPrices", true},
      {"CatalogService/ListPrice", "CatalogService/ListPrices", false},
      {"catalogservice/*", "CatalogService/ListPrices", false},
      {"**", "", true},
      {"", "", true},
      {"", "a", false},
      {"a*b*c", "aXbXbYc", true},
      {"a*b*c", "aXcXb", false},
  };
  for (const auto& row : rows)
    EXPECT_EQ(MatchesGlob(row.pattern, row.text), row.fits) << row.pattern << " " << row.text;
}

std::string Hash(const std::string& token) { return ToHex(Sha256(token)); }

TEST(TokenFileTest, ReadsEveryField) {
  const auto entries = ParseTokens(absl::StrCat(
      "# who may call\n\n  scheduler\t", Hash("s1"), " rate=2.5 burst=10\r\nscheduler ", Hash("s2"), "  rate=4\ndash ",
      Hash("d"), " methods=CatalogService/*,PlannerService/Estimate*\nlow ", Hash("l"), " rate=0.1"));
  ASSERT_TRUE(entries.ok()) << entries.status();
  ASSERT_EQ(entries->size(), 4u);
  EXPECT_EQ((*entries)[0].name, "scheduler");
  EXPECT_EQ((*entries)[0].digest, Sha256("s1"));
  EXPECT_EQ((*entries)[0].rate, 2.5);
  EXPECT_EQ((*entries)[0].burst, 10);
  EXPECT_EQ((*entries)[1].burst, 4);  // a second's worth
  EXPECT_EQ((*entries)[2].rate, 0);
  EXPECT_THAT((*entries)[2].methods, testing::ElementsAre("CatalogService/*", "PlannerService/Estimate*"));
  EXPECT_EQ((*entries)[3].burst, 1);
}

TEST(TokenFileTest, NamesEveryWrongLineWithoutWhatStandsThere) {
  const std::string good = Hash("x");
  const struct {
    std::string line;
    const char* problem;
  } rows[] = {
      {"secret-in-clear", "no SHA-256"},
      {"name secret-in-clear", "no SHA-256"},
      {"na/me-secret " + good, "the name is not"},
      {std::string(65, 'n') + " " + good, "the name is not"},
      {"name " + good + " secret", "field 3"},
      {"name " + good + " rate=secret", "rate="},
      {"name " + good + " rate=0", "rate="},
      {"name " + good + " rate=-1", "rate="},
      {"name " + good + " rate=nan", "rate="},
      {"name " + good + " rate=1 burst=0.5", "burst="},
      {"name " + good + " burst=5", "without rate"},
      {"name " + good + " methods=", "methods="},
      {"name " + good + " methods=a,,b", "methods="},
      {"name " + good + " methods=secret;", "methods="},
      {"a " + good + "\nb " + good, "the same token"},
  };
  for (const auto& row : rows) {
    const absl::Status status = ParseTokens(row.line).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << row.line;
    EXPECT_THAT(std::string(status.message()), HasSubstr(row.problem)) << row.line;
    EXPECT_THAT(std::string(status.message()), HasSubstr("line ")) << row.line;
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("secret"))) << row.line;
  }
  EXPECT_EQ(ParseTokens("# nobody\n").status().code(), absl::StatusCode::kInvalidArgument);
  const absl::Status both = ParseTokens("a b\n\nc d").status();
  EXPECT_THAT(std::string(both.message()), testing::AllOf(HasSubstr("line 1:"), HasSubstr("line 3:")));
}

// A file of tokens, and a clock that a test moves.
class TokenAuthorityTest : public testing::Test {
 protected:
  void Write(const std::string& text) { WriteFile(path_, text); }
  std::unique_ptr<TokenAuthority> Open() {
    auto authority = TokenAuthority::Open(path_, [this] { return now_; });
    EXPECT_TRUE(authority.ok()) << authority.status();
    return *std::move(authority);
  }

  const TemporaryDirectory directory_;
  const std::string path_ = directory_.Path("tokens");
  absl::Time now_ = absl::UnixEpoch();
};

constexpr char kEstimate[] = "sliceplan.v1.PlannerService/EstimateTraining";

TEST_F(TokenAuthorityTest, AnswersByHeaderAndMethod) {
  Write(absl::StrCat("all ", Hash("t-all"), "\ndash ", Hash("t-dash"), " methods=CatalogService/*\nfull ",
                     Hash("t-full"), " methods=sliceplan.v1.PlannerService/*"));
  const auto authority = Open();
  const struct {
    std::string header;
    const char* method;
    absl::StatusCode code;
    const char* reason;
    const char* client;
  } rows[] = {
      {"Bearer t-all", kEstimate, absl::StatusCode::kOk, "", "all"},
      {"bearer t-all", kEstimate, absl::StatusCode::kOk, "", "all"},  // RFC 9110: schemes in any case
      {"Bearer  t-all ", kEstimate, absl::StatusCode::kOk, "", "all"},
      {"Bearer t-full", kEstimate, absl::StatusCode::kOk, "", "full"},
      {"Bearer t-dash", "/sliceplan.v1.CatalogService/ListPrices", absl::StatusCode::kOk, "", "dash"},
      {"Bearer t-dash", kEstimate, absl::StatusCode::kPermissionDenied, "METHOD_NOT_ALLOWED", "dash"},
      {"", kEstimate, absl::StatusCode::kUnauthenticated, "TOKEN_MISSING", ""},
      {"Bearer", kEstimate, absl::StatusCode::kUnauthenticated, "TOKEN_UNKNOWN", ""},
      {"Bearer ", kEstimate, absl::StatusCode::kUnauthenticated, "TOKEN_UNKNOWN", ""},
      {"Basic t-all", kEstimate, absl::StatusCode::kUnauthenticated, "TOKEN_UNKNOWN", ""},
      {"t-all", kEstimate, absl::StatusCode::kUnauthenticated, "TOKEN_UNKNOWN", ""},
      {"Bearer t-al", kEstimate, absl::StatusCode::kUnauthenticated, "TOKEN_UNKNOWN", ""},
      {"Bearer T-ALL", kEstimate, absl::StatusCode::kUnauthenticated, "TOKEN_UNKNOWN", ""},
      // The hash itself opens nothing.
      {absl::StrCat("Bearer ", Hash("t-all")), kEstimate, absl::StatusCode::kUnauthenticated, "TOKEN_UNKNOWN", ""},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(absl::StrCat(row.header, " ", row.method));
    const Authorization answer = authority->Authorize(row.header, row.method);
    ASSERT_EQ(answer.result.code(), row.code);
    EXPECT_EQ(answer.client, row.client);
    if (answer.result.ok()) continue;
    EXPECT_EQ(DetailOf<google::rpc::ErrorInfo>(answer.result.status()).reason(), row.reason);
    EXPECT_THAT(answer.result.status().SerializeAsString(), Not(HasSubstr("t-")));
  }
}

TEST_F(TokenAuthorityTest, RatesAreATokenBucket) {
  Write(absl::StrCat("a ", Hash("a"), " rate=2 burst=3\nb ", Hash("b"), " rate=2 burst=3"));
  const auto authority = Open();
  const auto calls = [&](const char* header) {
    int count = 0;
    while (authority->Authorize(header, kEstimate).result.ok()) ++count;
    return count;
  };
  EXPECT_EQ(calls("Bearer a"), 3);
  const Authorization refused = authority->Authorize("Bearer a", kEstimate);
  EXPECT_EQ(refused.result.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(refused.client, "a");
  EXPECT_EQ(refused.retry_delay, absl::Milliseconds(500));  // 1 / rate
  EXPECT_EQ(DetailOf<google::rpc::RetryInfo>(refused.result.status()).retry_delay().nanos(), 500'000'000);
  EXPECT_EQ(DetailOf<google::rpc::ErrorInfo>(refused.result.status()).reason(), "RATE_LIMITED");
  // The other has a rate of its own, and refused calls cost nothing.
  EXPECT_EQ(calls("Bearer b"), 3);
  now_ += absl::Milliseconds(500);
  EXPECT_EQ(calls("Bearer a"), 1);
  now_ += absl::Seconds(1);
  EXPECT_EQ(calls("Bearer a"), 2);
  now_ += absl::Hours(1);
  EXPECT_EQ(calls("Bearer a"), 3);
  now_ -= absl::Hours(2);
  EXPECT_EQ(calls("Bearer a"), 0);
}

TEST_F(TokenAuthorityTest, WhatMayNotBeCalledTakesNothingFromTheRate) {
  Write(absl::StrCat("a ", Hash("a"), " rate=1 methods=CatalogService/*"));
  const auto authority = Open();
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(authority->Authorize("Bearer a", kEstimate).result.code(), absl::StatusCode::kPermissionDenied);
  }
  EXPECT_TRUE(authority->Authorize("Bearer a", "sliceplan.v1.CatalogService/ListPrices").result.ok());
}

TEST_F(TokenAuthorityTest, ReloadTakesGoodFilesOnlyAndKeepsRates) {
  Write(absl::StrCat("a ", Hash("a"), " rate=1 burst=2"));
  const auto authority = Open();
  EXPECT_TRUE(authority->Authorize("Bearer a", kEstimate).result.ok());
  EXPECT_TRUE(authority->Authorize("Bearer a", kEstimate).result.ok());
  Write(absl::StrCat("a ", Hash("a"), " rate=1 burst=9\nb ", Hash("b")));
  ASSERT_TRUE(authority->Reload().ok());
  EXPECT_EQ(authority->token_count(), 2u);
  EXPECT_TRUE(authority->Authorize("Bearer b", kEstimate).result.ok());
  EXPECT_EQ(authority->Authorize("Bearer a", kEstimate).result.code(), absl::StatusCode::kResourceExhausted);
  for (const char* bad : {"", "b not-a-hash"}) {
    Write(bad);
    EXPECT_FALSE(authority->Reload().ok());
    EXPECT_TRUE(authority->Authorize("Bearer b", kEstimate).result.ok());
  }
  std::filesystem::remove(path_);
  EXPECT_EQ(authority->Reload().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(authority->Authorize("Bearer b", kEstimate).result.ok());
  Write(absl::StrCat("a ", Hash("a")));
  ASSERT_TRUE(authority->Reload().ok());
  EXPECT_EQ(authority->Authorize("Bearer b", kEstimate).result.code(), absl::StatusCode::kUnauthenticated);
}

TEST_F(TokenAuthorityTest, NeedsAFileThatCanBeRead) {
  EXPECT_EQ(TokenAuthority::Open(path_).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(TokenAuthority::Open(directory_.Path("")).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace sliceplan::rpc
