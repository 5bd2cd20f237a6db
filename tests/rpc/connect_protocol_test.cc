#include "server/rpc/http/connect_protocol.h"

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "proto/google/rpc/error_details.pb.h"
#include "server/rpc/call_record.h"
#include "server/rpc/errors.h"
#include "server/rpc/http/http_reply.h"

namespace sliceplan::rpc {
namespace {

// connectrpc.com/docs/protocol, "Error Codes", read on 2026-11-30.
struct CodeCase {
  absl::StatusCode code;
  const char* name;
  int http_status;
};

constexpr CodeCase kCodes[] = {
    {absl::StatusCode::kCancelled, "canceled", 499},
    {absl::StatusCode::kUnknown, "unknown", 500},
    {absl::StatusCode::kInvalidArgument, "invalid_argument", 400},
    {absl::StatusCode::kDeadlineExceeded, "deadline_exceeded", 504},
    {absl::StatusCode::kNotFound, "not_found", 404},
    {absl::StatusCode::kAlreadyExists, "already_exists", 409},
    {absl::StatusCode::kPermissionDenied, "permission_denied", 403},
    {absl::StatusCode::kResourceExhausted, "resource_exhausted", 429},
    {absl::StatusCode::kFailedPrecondition, "failed_precondition", 400},
    {absl::StatusCode::kAborted, "aborted", 409},
    {absl::StatusCode::kOutOfRange, "out_of_range", 400},
    {absl::StatusCode::kUnimplemented, "unimplemented", 501},
    {absl::StatusCode::kInternal, "internal", 500},
    {absl::StatusCode::kUnavailable, "unavailable", 503},
    {absl::StatusCode::kDataLoss, "data_loss", 500},
    {absl::StatusCode::kUnauthenticated, "unauthenticated", 401},
};

TEST(ConnectCodeTest, TableOfTheProtocol) {
  for (const CodeCase& row : kCodes) {
    EXPECT_EQ(ConnectCode(row.code), row.name);
    EXPECT_EQ(HttpStatusOf(row.code), row.http_status) << row.name;
    google::rpc::Status status;
    status.set_code(static_cast<int>(row.code));
    EXPECT_EQ(ErrorReply(status).status, row.http_status) << row.name;
    EXPECT_EQ(nlohmann::json::parse(ErrorJson(status)).at("code"), row.name);
  }
  EXPECT_EQ(ConnectCode(static_cast<absl::StatusCode>(99)), "unknown");
}

TEST(ConnectErrorTest, DetailsAreBase64WithoutPaddingAndJsonForPeople) {
  const Result result = InvalidArgument({{"slice", "A \"quoted\"\nsentence.", "SOME_REASON"}});
  const auto json = nlohmann::json::parse(ErrorJson(result.status()));
  EXPECT_EQ(json.at("message"), result.status().message());
  ASSERT_EQ(json.at("details").size(), 2u);
  EXPECT_EQ(json.at("details")[0].at("type"), "google.rpc.BadRequest");
  EXPECT_EQ(json.at("details")[0].at("debug").at("fieldViolations")[0].at("field"), "slice");
  for (size_t i = 0; i < 2; ++i) {
    const std::string value = json.at("details")[i].at("value");
    EXPECT_FALSE(absl::StrContains(value, "=")) << value;
    std::string bytes;
    ASSERT_TRUE(absl::Base64Unescape(value, &bytes));
    EXPECT_EQ(bytes, result.status().details(static_cast<int>(i)).value());
  }
  EXPECT_FALSE(nlohmann::json::parse(ErrorJson(Draining().status())).contains("details"));
}

TEST(ConnectErrorTest, DetailOfAnUnknownTypeHasNoDebug) {
  google::rpc::Status status;
  status.set_code(13);
  status.add_details()->set_type_url("type.googleapis.com/no.such.Message");
  EXPECT_EQ(ErrorJson(status), R"({"code":"internal","message":"","details":[{"type":"no.such.Message","value":""}]})");
}

TEST(ConnectTimeoutTest, OneToTenDigits) {
  EXPECT_EQ(ParseConnectTimeout("0"), absl::ZeroDuration());
  EXPECT_EQ(ParseConnectTimeout("1500"), absl::Milliseconds(1500));
  EXPECT_EQ(ParseConnectTimeout("9999999999"), absl::Milliseconds(9'999'999'999));
  for (const char* text : {"", "-1", "+1", "1.5", " 1", "1s", "99999999999", "0x10"}) {
    EXPECT_EQ(ParseConnectTimeout(text), std::nullopt) << text;
  }
}

TEST(ConnectEncodingTest, JsonAndProto) {
  for (const char* text :
       {"application/json", "application/json;charset=UTF-8", "Application/Json; charset=\"utf-8\""}) {
    EXPECT_EQ(EncodingOf(text), Encoding::kJson) << text;
  }
  EXPECT_EQ(EncodingOf("application/proto"), Encoding::kProto);
  for (const char* text : {"", "text/json", "application/jsonp", "application/json; charset=latin1", "application/grpc",
                           "application/connect+json", "application/proto; charset=utf-8"}) {
    EXPECT_EQ(EncodingOf(text), std::nullopt) << text;
  }
}

TEST(ConnectGetTest, ReadsTheMessageOfTheUrl) {
  struct Row {
    const char* query;
    Encoding encoding;
    const char* message;
  };
  for (const Row& row : {Row{"encoding=json&message=%7B%7D", Encoding::kJson, "{}"},
                         Row{"connect=v1&encoding=json&message=a+b%2Bc&compression=identity", Encoding::kJson, "a b+c"},
                         // "{}" and "\x08\x01".
                         Row{"message=e30&base64=1&encoding=json", Encoding::kJson, "{}"},
                         Row{"message=e30%3D&base64=1&encoding=json", Encoding::kJson, "{}"},
                         Row{"message=CAE&base64=1&encoding=proto", Encoding::kProto, "\x08\x01"}}) {
    GetRequest request;
    GetRefusal refusal;
    EXPECT_TRUE(ParseGetQuery(row.query, &request, &refusal)) << row.query << ": " << refusal.message;
    EXPECT_EQ(request.encoding, row.encoding) << row.query;
    EXPECT_EQ(request.message, row.message) << row.query;
  }
  for (const char* query :
       {"", "encoding=json", "message=%7B%7D", "encoding=xml&message=a", "encoding=json&message=%7",
        "encoding=json&message=%zz", "encoding=json&message=***&base64=1", "connect=v2&encoding=json&message=a"}) {
    GetRequest request;
    GetRefusal refusal;
    EXPECT_FALSE(ParseGetQuery(query, &request, &refusal)) << query;
    EXPECT_EQ(refusal.code, absl::StatusCode::kInvalidArgument) << query;
  }
  GetRequest request;
  GetRefusal refusal;
  EXPECT_FALSE(ParseGetQuery("encoding=json&message=a&compression=gzip", &request, &refusal));
  EXPECT_EQ(refusal.code, absl::StatusCode::kUnimplemented);
}

TEST(HttpReplyTest, PushbackInSecondsAndMilliseconds) {
  const absl::Duration delay = absl::Milliseconds(1200);
  const std::string text =
      Serialize(ErrorReply(Overloaded(delay).status(), delay), /*head=*/false, /*keep_alive=*/true);
  EXPECT_TRUE(absl::StartsWith(text, "HTTP/1.1 429 Too Many Requests\r\n")) << text;
  EXPECT_TRUE(absl::StrContains(text, "\r\nretry-after: 2\r\n")) << text;
  EXPECT_TRUE(absl::StrContains(text, "\r\ngrpc-retry-pushback-ms: 1200\r\n")) << text;
  EXPECT_TRUE(absl::StrContains(text, "\r\nconnection: keep-alive\r\n")) << text;
}

// A value cannot begin another header.
TEST(HttpReplyTest, HeadersHaveOneLine) {
  HttpReply reply = TextReply(200, "body");
  reply.headers.emplace_back("x-request-id", "a\r\nset-cookie: b");
  const std::string text = Serialize(reply, /*head=*/true, /*keep_alive=*/false);
  EXPECT_EQ(text,
            "HTTP/1.1 200 OK\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: 4\r\nx-request-id: a\r\n"
            "x-content-type-options: nosniff\r\nconnection: close\r\n\r\n");
}

// W3C Trace Context, section 3.2.
TEST(CallRecordTest, TraceIdOfATraceparent) {
  const std::string id = "0af7651916cd43dd8448eb211c80319c";
  EXPECT_EQ(TraceIdOf("00-" + id + "-b7ad6b7169203331-01"), id);
  for (const std::string& text : {std::string(), id, "00-" + id, "00-" + id.substr(1) + "-b7ad6b7169203331-01",
                                  "00-" + std::string(32, 'x') + "-b7ad6b7169203331-01"}) {
    EXPECT_EQ(TraceIdOf(text), "") << text;
  }
}

}  // namespace
}  // namespace sliceplan::rpc
