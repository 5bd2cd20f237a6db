#include "client/cli/errors.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/cli/report.h"
#include "client/cli/text.h"
#include "proto/google/rpc/error_details.pb.h"
#include "server/rpc/json.h"

namespace sliceplan::cli {
namespace {

google::rpc::BadRequest BadRequestOf(const google::rpc::Status& status) {
  google::rpc::BadRequest bad_request;
  for (const auto& detail : status.details()) {
    if (detail.Is<google::rpc::BadRequest>()) detail.UnpackTo(&bad_request);
  }
  return bad_request;
}

void PrintWrapped(const std::string& first, const std::string& next, const std::string& text, std::ostream& err) {
  std::string before = first;
  for (const std::string& line : Wrap(text, kMaxColumns - next.size())) {
    err << before << line << '\n';
    before = next;
  }
}

}  // namespace

void PrintErrorAsJson(const google::rpc::Status& status, std::ostream& err) {
  // Writes of "@type" need the types of details in this program: naming one links them all.
  google::rpc::BadRequest::descriptor();
  err << rpc::PrintPrettyJson(status);
}

void PrintErrorAsText(const google::rpc::Status& status, const std::string& program, const Flags& flags,
                      std::ostream& err) {
  const std::string code = absl::StatusCodeToString(static_cast<absl::StatusCode>(status.code()));
  const google::rpc::BadRequest bad_request = BadRequestOf(status);
  if (bad_request.field_violations().empty()) {
    PrintWrapped("", "  ", absl::StrCat(program, ": ", status.message(), " (", code, ")"), err);
    return;
  }
  err << program << ": the request was refused (" << code << ")\n";
  for (const auto& violation : bad_request.field_violations()) {
    const std::string flag = flags.FlagFor(violation.field());
    std::string where = flag.empty() ? violation.field() : flag;
    if (!flag.empty() && !violation.field().empty()) absl::StrAppend(&where, " (", violation.field(), ")");
    if (!where.empty()) absl::StrAppend(&where, ": ");
    PrintWrapped("  - ", "    ", absl::StrCat(where, flags.WithFlags(violation.description())), err);
  }
}

}  // namespace sliceplan::cli
