#include "server/rpc/json.h"

#include "absl/strings/str_cat.h"
#include "google/protobuf/util/json_util.h"
#include "server/rpc/errors.h"
#include "server/rpc/json_diagnosis.h"
#include "server/rpc/text.h"

namespace sliceplan::rpc {
namespace {

namespace json_util = google::protobuf::util;

std::string Print(const google::protobuf::Message& message, bool pretty) {
  json_util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  options.add_whitespace = pretty;
  std::string text;
  // Fails only on messages that no reply holds (an Any of an unknown type).
  if (!json_util::MessageToJsonString(message, &text, options).ok()) text.clear();
  return text;
}

}  // namespace

Result ParseJson(absl::string_view text, google::protobuf::Message* message) {
  const auto refuse = [](std::string description) {
    return InvalidArgument({{"", std::move(description), "MALFORMED_JSON"}});
  };
  if (text.size() > kMaxJsonBytes) {
    return refuse(absl::StrCat("The request has ", text.size(), " bytes; at most ", kMaxJsonBytes, " are read."));
  }
  // protobuf's parser lets text pass that is no JSON (single quotes, names without quotes).
  if (const std::string problem = JsonSyntaxProblem(text); !problem.empty()) return refuse(problem);
  const auto status = json_util::JsonStringToMessage(google::protobuf::StringPiece(text.data(), text.size()), message);
  if (status.ok()) return Result();
  std::vector<FieldError> errors = DiagnoseJson(text, *message->GetDescriptor());
  if (!errors.empty()) return InvalidArgument(errors);
  const google::protobuf::StringPiece reason = status.message();
  return refuse(absl::StrCat("The JSON does not fit ", message->GetDescriptor()->full_name(), ": ",
                             Printable(absl::string_view(reason.data(), reason.size()), kMaxMessageBytes / 2)));
}

std::string PrintJson(const google::protobuf::Message& message) { return Print(message, /*pretty=*/false); }
std::string PrintPrettyJson(const google::protobuf::Message& message) { return Print(message, /*pretty=*/true); }

}  // namespace sliceplan::rpc
