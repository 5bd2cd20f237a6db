#include "server/rpc/http/connect_protocol.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "server/rpc/json.h"

namespace sliceplan::rpc {
namespace {

struct CodeRow {
  const char* name;
  int http_status;
};

// By the number of the code. The row of OK is never sent.
constexpr std::array<CodeRow, 17> kCodes = {{
    {"ok", 200},
    {"canceled", 499},
    {"unknown", 500},
    {"invalid_argument", 400},
    {"deadline_exceeded", 504},
    {"not_found", 404},
    {"already_exists", 409},
    {"permission_denied", 403},
    {"resource_exhausted", 429},
    {"failed_precondition", 400},
    {"aborted", 409},
    {"out_of_range", 400},
    {"unimplemented", 501},
    {"internal", 500},
    {"unavailable", 503},
    {"data_loss", 500},
    {"unauthenticated", 401},
}};

const CodeRow& RowOf(absl::StatusCode code) {
  const auto index = static_cast<size_t>(code);
  return kCodes[index < kCodes.size() ? index : static_cast<size_t>(absl::StatusCode::kUnknown)];
}

std::string WithoutPadding(std::string base64) {
  while (!base64.empty() && base64.back() == '=') base64.pop_back();
  return base64;
}

// `text` as a JSON string, by protobuf's own writer.
std::string JsonString(absl::string_view text) {
  google::protobuf::Value value;
  value.set_string_value(std::string(text));
  std::string json;
  if (!google::protobuf::util::MessageToJsonString(value, &json).ok()) json = "\"\"";
  return json;
}

// The detail as JSON; empty when its type is not known here.
std::string DebugJson(const std::string& type, const std::string& bytes) {
  const auto* const descriptor = google::protobuf::DescriptorPool::generated_pool()->FindMessageTypeByName(type);
  if (descriptor == nullptr) return "";
  const std::unique_ptr<google::protobuf::Message> message(
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(descriptor)->New());
  return message->ParseFromString(bytes) ? PrintJson(*message) : "";
}

// False when a '%' is not followed by two hex digits.
bool PercentDecode(absl::string_view text, std::string* decoded) {
  decoded->clear();
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+') {
      *decoded += ' ';
    } else if (text[i] != '%') {
      *decoded += text[i];
    } else {
      const absl::string_view digits = text.substr(i + 1, 2);
      uint32_t value = 0;
      if (digits.size() != 2 || !absl::SimpleHexAtoi(digits, &value)) return false;
      *decoded += static_cast<char>(value);
      i += 2;
    }
  }
  return true;
}

}  // namespace

std::optional<Encoding> EncodingOf(absl::string_view content_type) {
  const std::vector<absl::string_view> parts = absl::StrSplit(content_type, ';');
  const absl::string_view type = absl::StripAsciiWhitespace(parts[0]);
  for (size_t i = 1; i < parts.size(); ++i) {
    const absl::string_view parameter = absl::StripAsciiWhitespace(parts[i]);
    if (!absl::EqualsIgnoreCase(parameter, "charset=utf-8") &&
        !absl::EqualsIgnoreCase(parameter, "charset=\"utf-8\"")) {
      return std::nullopt;
    }
  }
  if (absl::EqualsIgnoreCase(type, kJsonType)) return Encoding::kJson;
  if (absl::EqualsIgnoreCase(type, kProtoType) && parts.size() == 1) return Encoding::kProto;
  return std::nullopt;
}

absl::string_view ConnectCode(absl::StatusCode code) { return RowOf(code).name; }

int HttpStatusOf(absl::StatusCode code) { return RowOf(code).http_status; }

std::string ErrorJson(const google::rpc::Status& status) {
  std::string json = absl::StrCat("{\"code\":\"", ConnectCode(static_cast<absl::StatusCode>(status.code())),
                                  "\",\"message\":", JsonString(status.message()));
  for (int i = 0; i < status.details_size(); ++i) {
    const auto& detail = status.details(i);
    const std::string type = detail.type_url().substr(detail.type_url().rfind('/') + 1);
    absl::StrAppend(&json, i == 0 ? ",\"details\":[" : ",", "{\"type\":", JsonString(type), ",\"value\":\"",
                    WithoutPadding(absl::Base64Escape(detail.value())), "\"");
    if (const std::string debug = DebugJson(type, detail.value()); !debug.empty()) {
      absl::StrAppend(&json, ",\"debug\":", debug);
    }
    json += '}';
  }
  if (status.details_size() > 0) json += ']';
  json += '}';
  return json;
}

std::optional<absl::Duration> ParseConnectTimeout(absl::string_view text) {
  constexpr size_t kMaxDigits = 10;
  int64_t milliseconds = 0;
  const bool digits =
      std::all_of(text.begin(), text.end(), [](char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); });
  if (text.empty() || text.size() > kMaxDigits || !digits || !absl::SimpleAtoi(text, &milliseconds)) {
    return std::nullopt;
  }
  return absl::Milliseconds(milliseconds);
}

bool ParseGetQuery(absl::string_view query, GetRequest* request, GetRefusal* refusal) {
  const auto refuse = [&](absl::StatusCode code, std::string message) {
    *refusal = {code, std::move(message)};
    return false;
  };
  std::map<std::string, std::string> parameters;
  for (const absl::string_view pair : absl::StrSplit(query, '&', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(pair, absl::MaxSplits('=', 1));
    std::string value;
    if (!PercentDecode(parts.second, &value)) {
      return refuse(absl::StatusCode::kInvalidArgument, "the URL has a '%' that is not followed by two hex digits");
    }
    parameters[std::string(parts.first)] = std::move(value);
  }
  const auto version = parameters.find("connect");
  if (version != parameters.end() && version->second != "v1") {
    return refuse(absl::StatusCode::kInvalidArgument, "connect must be v1");
  }
  const auto encoding = parameters.find("encoding");
  if (encoding == parameters.end() || (encoding->second != "json" && encoding->second != "proto")) {
    return refuse(absl::StatusCode::kInvalidArgument, "encoding must be json or proto");
  }
  request->encoding = encoding->second == "json" ? Encoding::kJson : Encoding::kProto;
  const auto compression = parameters.find("compression");
  if (compression != parameters.end() && compression->second != "identity" && !compression->second.empty()) {
    return refuse(absl::StatusCode::kUnimplemented, "compression is not supported; only identity is");
  }
  const auto message = parameters.find("message");
  if (message == parameters.end()) return refuse(absl::StatusCode::kInvalidArgument, "message is missing");
  const auto base64 = parameters.find("base64");
  if (base64 == parameters.end() || base64->second != "1") {
    request->message = message->second;
  } else if (!absl::WebSafeBase64Unescape(message->second, &request->message)) {
    return refuse(absl::StatusCode::kInvalidArgument, "message is no URL-safe base64");
  }
  return true;
}

}  // namespace sliceplan::rpc
