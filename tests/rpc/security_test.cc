// Who may call a server, as callers see it: TLS, tokens, and that no secret is written anywhere. Callers use the client
// library where it can do what the test wants.
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/sliceplan/client.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "proto/sliceplan/v1/catalog_service.grpc.pb.h"
#include "server/rpc/server.h"
#include "server/rpc/sha256.h"
#include "server/rpc/tls.h"
#include "tests/rpc/certificates.h"
#include "tests/rpc/files.h"
#include "tests/rpc/testing.h"

// Debian 12's c-ares 1.18 loses the ten bytes of the name at every lookup of "localhost", which certificates need.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:libcares.so\n"; }

namespace sliceplan::rpc {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

class TextSink : public LogSink {
 public:
  void Write(absl::string_view line, bool) override {
    const std::lock_guard lock(mutex_);
    absl::StrAppend(&text_, line);
  }
  std::string Text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

// Waits for what another thread is about to do; the test's own time limit ends it when it does not.
void WaitUntil(const std::function<bool()>& condition) {
  while (!condition()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

class SecurityTest : public testing::Test {
 protected:
  // Starts a server; EXPECTs that it does.
  void Start() {
    options_.port = 0;
    auto started = Server::Start(options_, &TestMethods(), &log_);
    ASSERT_TRUE(started.ok()) << started.status();
    server_ = *std::move(started);
  }
  absl::Status StartStatus() {
    options_.port = 0;
    return Server::Start(options_, &TestMethods(), &log_).status();
  }

  // Of this server, without second tries.
  ClientOptions Options(TransportSecurity security) const {
    ClientOptions options;
    options.target = absl::StrCat("localhost:", server_->port());
    options.security = security;
    options.retry.max_attempts = 1;
    options.health_checks = false;
    options.bearer_token_over_plaintext = true;
    return options;
  }
  ClientOptions TlsOptionsWith(const std::string& roots) const {
    ClientOptions options = Options(TransportSecurity::kTls);
    options.tls.root_certificates_file = directory_.Path(roots);
    return options;
  }

  // How a short call of a client with these options ends.
  static absl::Status CallWith(const ClientOptions& options, const CallOptions& call = {}) {
    const auto client = Client::Create(options);
    if (!client.ok()) return client.status();
    return client->ListPrices(v1::ListPricesRequest(), call).status();
  }

  void Write(const std::string& name, const std::string& text) const { WriteFile(directory_.Path(name), text); }
  // The server's files, for both to be replaced at once.
  void WriteServerIdentity(const Identity& identity) {
    const std::string name = absl::StrCat("identity", ++identity_count_);
    std::filesystem::create_directory(directory_.Path(name));
    Write(name + "/cert.pem", identity.certificate());
    Write(name + "/key.pem", identity.key());
    std::filesystem::create_symlink(name, directory_.Path("next"));
    std::filesystem::rename(directory_.Path("next"), directory_.Path("identity"));
    options_.tls.certificate = directory_.Path("identity/cert.pem");
    options_.tls.key = directory_.Path("identity/key.pem");
    options_.tls.refresh = absl::Seconds(1);
  }

  const TemporaryDirectory directory_;
  TextSink sink_;
  const JsonLog log_{&sink_, Severity::kDebug};
  ServerOptions options_;
  std::unique_ptr<Server> server_;
  int identity_count_ = 0;
};

// ---- TLS ----

TEST_F(SecurityTest, TlsIsWhatClientsWithTheAuthoritySpeak) {
  const Identity authority = Identity::Authority("ours");
  const Identity other = Identity::Authority("others");
  WriteServerIdentity(authority.Issue("server", "DNS:localhost"));
  Write("ca.pem", authority.certificate());
  Write("other.pem", other.certificate());
  Start();
  EXPECT_TRUE(CallWith(TlsOptionsWith("ca.pem")).ok()) << CallWith(TlsOptionsWith("ca.pem"));
  EXPECT_EQ(CallWith(TlsOptionsWith("other.pem")).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(CallWith(Options(TransportSecurity::kTls)).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(CallWith(Options(TransportSecurity::kPlaintext)).code(), absl::StatusCode::kUnavailable);
  // The certificate is for a name, which the caller must have called.
  ClientOptions by_address = TlsOptionsWith("ca.pem");
  by_address.target = absl::StrCat("ipv4:127.0.0.1:", server_->port());
  EXPECT_EQ(CallWith(by_address).code(), absl::StatusCode::kUnavailable);
}

TEST_F(SecurityTest, MutualTlsWantsACertificateOfTheClientsAuthority) {
  const Identity authority = Identity::Authority("ours");
  const Identity other = Identity::Authority("others");
  WriteServerIdentity(authority.Issue("server", "DNS:localhost"));
  Write("ca.pem", authority.certificate());
  options_.tls.client_authorities = directory_.Path("ca.pem");
  const auto with_identity = [&](const Identity& identity, const std::string& name) {
    Write(name + ".pem", identity.certificate());
    Write(name + ".key", identity.key());
    ClientOptions options = TlsOptionsWith("ca.pem");
    options.tls.client_certificate_file = directory_.Path(name + ".pem");
    options.tls.client_key_file = directory_.Path(name + ".key");
    return CallWith(options);
  };
  Start();
  EXPECT_TRUE(with_identity(authority.Issue("scheduler", ""), "scheduler").ok());
  EXPECT_EQ(with_identity(other.Issue("stranger", ""), "stranger").code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(with_identity(authority.Issue("late", "", -60), "late").code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(CallWith(TlsOptionsWith("ca.pem")).code(), absl::StatusCode::kUnavailable);
}

TEST_F(SecurityTest, NewCertificatesAreServedWithoutARestart) {
  const Identity before = Identity::Authority("before");
  const Identity after = Identity::Authority("after");
  WriteServerIdentity(before.Issue("server", "DNS:localhost"));
  Write("before.pem", before.certificate());
  Write("after.pem", after.certificate());
  Write("both.pem", before.certificate() + after.certificate());
  Start();
  const auto open = Client::Create(TlsOptionsWith("both.pem"));
  ASSERT_TRUE(open.ok());
  ASSERT_TRUE(open->ListPrices(v1::ListPricesRequest()).ok());
  EXPECT_EQ(CallWith(TlsOptionsWith("after.pem")).code(), absl::StatusCode::kUnavailable);

  WriteServerIdentity(after.Issue("server", "DNS:localhost"));
  // No call fails meanwhile: neither on the open connection nor on new ones of clients that trust both.
  WaitUntil([&] {
    EXPECT_TRUE(open->ListPrices(v1::ListPricesRequest()).ok());
    EXPECT_TRUE(CallWith(TlsOptionsWith("both.pem")).ok());
    return CallWith(TlsOptionsWith("after.pem")).ok();
  });
  EXPECT_EQ(CallWith(TlsOptionsWith("before.pem")).code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(sink_.Text(), HasSubstr("not_after"));
}

TEST_F(SecurityTest, ServersDoNotStartWithFilesThatCannotServe) {
  const Identity authority = Identity::Authority("ours");
  const Identity good = authority.Issue("server", "DNS:localhost");
  Write("good.pem", good.certificate());
  Write("good.key", good.key());
  Write("password.key", good.key_with_password());
  Write("other.key", authority.Issue("other", "").key());
  Write("late.pem", authority.Issue("late", "", -60).certificate());
  Write("text", "secret text");
  const struct {
    const char* name;
    TlsFiles files;
    const char* message;
  } rows[] = {
      {"no key", {"good.pem", "", ""}, "go together"},
      {"no certificate", {"", "good.key", ""}, "go together"},
      {"authorities alone", {"", "", "good.pem"}, "go together"},
      {"no such certificate", {"none", "good.key", ""}, "no certificate"},
      {"no such key", {"good.pem", "none", ""}, "no key"},
      {"text as certificate", {"text", "good.key", ""}, "no certificate"},
      {"text as key", {"good.pem", "text", ""}, "no key"},
      {"key with a password", {"good.pem", "password.key", ""}, "no key"},
      {"other key", {"good.pem", "other.key", ""}, "does not belong"},
      {"no such authorities", {"good.pem", "good.key", "none"}, "no certificate"},
      {"text as authorities", {"good.pem", "good.key", "text"}, "no certificate"},
  };
  for (const auto& row : rows) {
    const auto path = [&](const std::string& name) { return name.empty() ? name : directory_.Path(name); };
    options_.tls.certificate = path(row.files.certificate);
    options_.tls.key = path(row.files.key);
    options_.tls.client_authorities = path(row.files.client_authorities);
    const absl::Status status = StartStatus();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << row.name;
    EXPECT_THAT(std::string(status.message()), HasSubstr(row.message)) << row.name;
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("secret text"))) << row.name;
  }
  const TlsFiles late = {directory_.Path("good.pem"), directory_.Path("good.key"), ""};
  const absl::StatusOr<absl::Time> end = CheckTlsFiles(late, absl::Now());
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_FALSE(CheckTlsFiles(late, *end).ok());
}

TEST_F(SecurityTest, TlsNeedsNoLeaveToListenEverywhere) {
  options_.address = "0.0.0.0";
  EXPECT_EQ(StartStatus().code(), absl::StatusCode::kInvalidArgument);
  WriteServerIdentity(Identity::Authority("ours").Issue("server", "DNS:localhost"));
  EXPECT_TRUE(StartStatus().ok());
  options_.channelz = true;
  EXPECT_EQ(StartStatus().code(), absl::StatusCode::kInvalidArgument);
}

// ---- Tokens ----

constexpr char kSecret[] = "s3cret-of-the-scheduler";
constexpr char kOtherSecret[] = "s3cret-of-nobody";

std::string Hash(const std::string& token) { return ToHex(Sha256(token)); }

std::string ErrorReason(const absl::Status& status) {
  const std::optional<ErrorInfo> info = GetErrorInfo(status);
  return info.has_value() ? info->reason : "";
}

CallOptions With(const std::string& token) {
  CallOptions call;
  call.bearer_token = token;
  return call;
}

class TokensTest : public SecurityTest {
 protected:
  void StartWith(const std::string& tokens) {
    Write("tokens", tokens);
    options_.token_file = directory_.Path("tokens");
    options_.token_file_interval = absl::Milliseconds(5);
    Start();
  }
  absl::Status Call(const CallOptions& call) const { return CallWith(Options(TransportSecurity::kPlaintext), call); }
};

TEST_F(TokensTest, DecideWhoMayCallWhat) {
  StartWith(absl::StrCat("scheduler ", Hash(kSecret), "\nplanner ", Hash("planner"), " methods=PlannerService/*"));
  EXPECT_TRUE(Call(With(kSecret)).ok());
  EXPECT_EQ(Call({}).code(), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(ErrorReason(Call({})), "TOKEN_MISSING");
  EXPECT_EQ(Call(With(kOtherSecret)).code(), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(ErrorReason(Call(With(kOtherSecret))), "TOKEN_UNKNOWN");
  EXPECT_EQ(Call(With("planner")).code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(ErrorReason(Call(With("planner"))), "METHOD_NOT_ALLOWED");
}

// With tokens a server still answers health checks: probes have none.
TEST_F(TokensTest, HealthNeedsNone) {
  StartWith(absl::StrCat("scheduler ", Hash(kSecret)));
  ClientOptions options = Options(TransportSecurity::kPlaintext);
  options.health_checks = true;
  EXPECT_TRUE(CallWith(options, With(kSecret)).ok());
}

TEST_F(TokensTest, RatesComeWithTheTimeToComeBack) {
  StartWith(absl::StrCat("scheduler ", Hash(kSecret), " rate=0.01 burst=2"));
  EXPECT_TRUE(Call(With(kSecret)).ok());
  EXPECT_TRUE(Call(With(kSecret)).ok());
  const auto channel =
      grpc::CreateChannel(absl::StrCat("127.0.0.1:", server_->port()), grpc::InsecureChannelCredentials());
  grpc::ClientContext context;
  context.AddMetadata("authorization", absl::StrCat("Bearer ", kSecret));
  v1::ListPricesResponse response;
  const grpc::Status status =
      v1::CatalogService::NewStub(channel)->ListPrices(&context, v1::ListPricesRequest(), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  const auto pushback = context.GetServerTrailingMetadata().find("grpc-retry-pushback-ms");
  ASSERT_NE(pushback, context.GetServerTrailingMetadata().end());
  // One call in 100 seconds.
  EXPECT_NEAR(std::stoi(std::string(pushback->second.data(), pushback->second.size())), 100'000, 10'000);
}

TEST_F(TokensTest, AreReadAgainWhenTheFileChanges) {
  StartWith(absl::StrCat("scheduler ", Hash(kSecret)));
  Write("tokens", "scheduler not-a-hash");
  WaitUntil([&] { return absl::StrContains(sink_.Text(), "the old tokens stay"); });
  EXPECT_TRUE(Call(With(kSecret)).ok());
  Write("tokens", absl::StrCat("scheduler ", Hash(kOtherSecret)));
  WaitUntil([&] { return Call(With(kOtherSecret)).ok(); });
  EXPECT_EQ(Call(With(kSecret)).code(), absl::StatusCode::kUnauthenticated);
}

TEST_F(TokensTest, AreReadAgainWhenAsked) {
  Write("tokens", absl::StrCat("scheduler ", Hash(kSecret)));
  options_.token_file = directory_.Path("tokens");
  options_.token_file_interval = absl::Hours(1);
  Start();
  Write("tokens", absl::StrCat("scheduler ", Hash(kOtherSecret)));
  EXPECT_TRUE(Call(With(kSecret)).ok());
  server_->ReloadTokens();
  EXPECT_TRUE(Call(With(kOtherSecret)).ok());
}

TEST_F(TokensTest, BadFilesKeepAServerFromStarting) {
  options_.token_file = directory_.Path("tokens");
  EXPECT_EQ(StartStatus().code(), absl::StatusCode::kNotFound);
  Write("tokens", "scheduler not-a-hash");
  EXPECT_EQ(StartStatus().code(), absl::StatusCode::kInvalidArgument);
}

// Whatever becomes of the calls, no token stands in a log or in a reply.
TEST_F(TokensTest, AreWrittenNowhere) {
  options_.request_log.path = directory_.Path("requests");
  StartWith(absl::StrCat("scheduler ", Hash(kSecret), " rate=1 burst=3 methods=CatalogService/*"));
  std::string replies;
  for (const char* token : {kSecret, kSecret, kOtherSecret, kSecret, kSecret}) {
    absl::StrAppend(&replies, Call(With(token)).ToString());
  }
  const auto client = Client::Create(Options(TransportSecurity::kPlaintext));
  ASSERT_TRUE(client.ok());
  absl::StrAppend(&replies, client->EstimateTraining(v1::EstimateTrainingRequest(), With(kSecret)).status().ToString());
  Write("tokens", absl::StrCat(kSecret, " ", kOtherSecret));
  server_->ReloadTokens();
  server_.reset();
  for (const std::string& text : {replies, sink_.Text(), ReadFile(directory_.Path("requests"))}) {
    EXPECT_FALSE(text.empty());
    EXPECT_THAT(text, Not(AnyOf(HasSubstr("s3cret"), HasSubstr(Hash(kSecret)))));
  }
  EXPECT_THAT(ReadFile(directory_.Path("requests")), HasSubstr("token:scheduler"));
}

TEST_F(TokensTest, AClientReadsItsTokenFromAFileAgain) {
  StartWith(absl::StrCat("scheduler ", Hash(kSecret), "\nscheduler ", Hash(kOtherSecret)));
  Write("token", absl::StrCat(kSecret, "\n"));
  ClientOptions options = Options(TransportSecurity::kPlaintext);
  options.bearer_token_file = directory_.Path("token");
  const auto client = Client::Create(options);
  ASSERT_TRUE(client.ok());
  EXPECT_TRUE(client->ListPrices(v1::ListPricesRequest()).ok());
  Write("tokens", absl::StrCat("scheduler ", Hash(kOtherSecret)));
  WaitUntil([&] { return !client->ListPrices(v1::ListPricesRequest()).ok(); });
  Write("token", kOtherSecret);
  WaitUntil([&] { return client->ListPrices(v1::ListPricesRequest()).ok(); });
}

// ---- Metadata ----

TEST_F(SecurityTest, MetadataHasASize) {
  Start();
  CallOptions call;
  call.metadata.emplace_back("x-large", std::string(4 << 10, 'a'));
  EXPECT_TRUE(CallWith(Options(TransportSecurity::kPlaintext), call).ok());
  call.metadata.emplace_back("x-larger", std::string(5 << 10, 'a'));
  EXPECT_EQ(CallWith(Options(TransportSecurity::kPlaintext), call).code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace sliceplan::rpc
