#include "client/sliceplan/error_details.h"

#include <algorithm>

#include "absl/strings/cord.h"
#include "client/sliceplan/status.h"
#include "proto/google/rpc/error_details.pb.h"

namespace sliceplan {
namespace {

template <typename Detail>
std::optional<Detail> GetDetail(const absl::Status& status) {
  const auto payload = status.GetPayload(DetailUrl(Detail::descriptor()->full_name()));
  Detail detail;
  if (!payload.has_value() || !detail.ParseFromString(std::string(*payload))) return std::nullopt;
  return detail;
}

}  // namespace

std::vector<FieldViolation> FieldViolations(const absl::Status& status) {
  std::vector<FieldViolation> violations;
  if (const auto detail = GetDetail<google::rpc::BadRequest>(status)) {
    for (const auto& violation : detail->field_violations()) {
      violations.push_back({violation.field(), violation.description()});
    }
  }
  return violations;
}

std::optional<ErrorInfo> GetErrorInfo(const absl::Status& status) {
  const auto detail = GetDetail<google::rpc::ErrorInfo>(status);
  if (!detail.has_value()) return std::nullopt;
  ErrorInfo info = {detail->reason(), detail->domain(), {}};
  for (const auto& [key, value] : detail->metadata()) info.metadata.emplace_back(key, value);
  std::sort(info.metadata.begin(), info.metadata.end());
  return info;
}

std::optional<ResourceInfo> GetResourceInfo(const absl::Status& status) {
  const auto detail = GetDetail<google::rpc::ResourceInfo>(status);
  if (!detail.has_value()) return std::nullopt;
  return ResourceInfo{detail->resource_type(), detail->resource_name(), detail->description()};
}

std::optional<absl::Duration> GetRetryDelay(const absl::Status& status) {
  const auto detail = GetDetail<google::rpc::RetryInfo>(status);
  if (!detail.has_value() || !detail->has_retry_delay()) return std::nullopt;
  return absl::Seconds(detail->retry_delay().seconds()) + absl::Nanoseconds(detail->retry_delay().nanos());
}

}  // namespace sliceplan
