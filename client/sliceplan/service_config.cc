#include "client/sliceplan/service_config.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace sliceplan {
namespace {

// The service whose health decides; the server reports the same for all of its services.
constexpr char kHealthServiceName[] = "sliceplan.v1.PlannerService";

// The most tokens that gRPC takes. A replica that dies fails every call that it had, up to 256 on each connection, and
// all of them must be tried again; retries stop at half the tokens.
constexpr char kRetryThrottling[] = R"("retryThrottling": {"maxTokens": 1000, "tokenRatio": 0.1})";

std::string SecondsJson(absl::Duration duration) {
  return absl::StrFormat("\"%.9fs\"", absl::ToDoubleSeconds(duration));
}

std::string RetryPolicyJson(const RetryOptions& retry) {
  return absl::StrCat(R"({"maxAttempts": )", retry.max_attempts, R"(, "initialBackoff": )",
                      SecondsJson(retry.initial_backoff), R"(, "maxBackoff": )", SecondsJson(retry.max_backoff),
                      R"(, "backoffMultiplier": )", retry.backoff_multiplier,
                      R"(, "retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED"]})");
}

}  // namespace

std::string ServiceConfigJson(const ClientOptions& options) {
  std::string json = R"({"loadBalancingConfig": [{"round_robin": {}}])";
  if (options.health_checks) {
    absl::StrAppend(&json, R"(, "healthCheckConfig": {"serviceName": ")", kHealthServiceName, "\"}");
  }
  if (options.retry.max_attempts > 1) {
    absl::StrAppend(&json, R"(, "methodConfig": [{"name": [{}], "retryPolicy": )", RetryPolicyJson(options.retry),
                    "}], ", kRetryThrottling);
  }
  return absl::StrCat(json, "}");
}

}  // namespace sliceplan
