// What the service says about an error beyond code and message. Each function reads the google.rpc detail that travels
// as a payload of the status, and answers empty when there is none.
#ifndef SLICEPLAN_CLIENT_SLICEPLAN_ERROR_DETAILS_H_
#define SLICEPLAN_CLIENT_SLICEPLAN_ERROR_DETAILS_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace sliceplan {

// One thing wrong with a request: google.rpc.BadRequest.FieldViolation.
struct FieldViolation {
  std::string field;        // path in proto names, "parallelism.ici.tensor"
  std::string description;  // what is wrong and what would be right
};

// All of them, in the order of the request.
std::vector<FieldViolation> FieldViolations(const absl::Status& status);

// google.rpc.ErrorInfo: why, for programs.
struct ErrorInfo {
  std::string reason;  // UPPER_SNAKE_CASE, unique within the domain
  std::string domain;
  std::vector<std::pair<std::string, std::string>> metadata;  // by key
};
std::optional<ErrorInfo> GetErrorInfo(const absl::Status& status);

// google.rpc.ResourceInfo: what was not found.
struct ResourceInfo {
  std::string type;  // "accelerator", "model preset"
  std::string name;  // as it was asked for
  std::string description;
};
std::optional<ResourceInfo> GetResourceInfo(const absl::Status& status);

// google.rpc.RetryInfo: how long an overloaded server wants to be left alone. The client's own retries have heeded it.
std::optional<absl::Duration> GetRetryDelay(const absl::Status& status);

}  // namespace sliceplan

#endif  // SLICEPLAN_CLIENT_SLICEPLAN_ERROR_DETAILS_H_
