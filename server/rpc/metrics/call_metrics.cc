#include "server/rpc/metrics/call_metrics.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace sliceplan::rpc {
namespace {

// As Go spells them, by the number of the code.
constexpr std::array<const char*, 17> kCodes = {
    "OK",       "Canceled",       "Unknown",          "InvalidArgument",   "DeadlineExceeded",
    "NotFound", "AlreadyExists",  "PermissionDenied", "ResourceExhausted", "FailedPrecondition",
    "Aborted",  "OutOfRange",     "Unimplemented",    "Internal",          "Unavailable",
    "DataLoss", "Unauthenticated"};

struct StandardMethod {
  const char* type;
  const char* service;
  const char* method;
};

// What gRPC itself serves, and the probes of the HTTP port do not.
constexpr StandardMethod kStandardMethods[] = {
    {"unary", "grpc.health.v1.Health", "Check"},
    {"server_stream", "grpc.health.v1.Health", "Watch"},
    {"bidi_stream", "grpc.reflection.v1alpha.ServerReflection", "ServerReflectionInfo"},
};

}  // namespace

const prometheus::Histogram::BucketBoundaries& LatencyBuckets() {
  static const auto* const buckets = new prometheus::Histogram::BucketBoundaries{
      0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};
  return *buckets;
}

class CallMetrics::Families {
 public:
  explicit Families(prometheus::Registry& registry)
      : started(prometheus::BuildCounter()
                    .Name("grpc_server_started_total")
                    .Help("Calls that began, over gRPC and over HTTP.")
                    .Register(registry)),
        handled(prometheus::BuildCounter()
                    .Name("grpc_server_handled_total")
                    .Help("Calls that ended, by the code that the caller got.")
                    .Register(registry)),
        seconds(prometheus::BuildHistogram()
                    .Name("grpc_server_handling_seconds")
                    .Help("Time from the start of a call to its reply, waiting included.")
                    .Register(registry)),
        in_flight(prometheus::BuildGauge()
                      .Name("sliceplan_calls_in_flight")
                      .Help("Calls that began and have not ended.")
                      .Register(registry)) {}

  prometheus::Family<prometheus::Counter>& started;
  prometheus::Family<prometheus::Counter>& handled;
  prometheus::Family<prometheus::Histogram>& seconds;
  prometheus::Family<prometheus::Gauge>& in_flight;
};

CallMetrics::CallMetrics(prometheus::Registry* registry, const MethodTable& methods) {
  Families families(*registry);
  const auto add = [&](const std::string& type, const std::string& service, const std::string& method) {
    methods_[absl::StrCat(service, "/", method)] = std::make_unique<Method>(Make(families, type, service, method));
  };
  for (const auto& method : methods.methods()) add("unary", method->service, method->name);
  for (const auto& [type, service, method] : kStandardMethods) add(type, service, method);
  unknown_ = Make(families, "unary", "unknown", "unknown");
}

CallMetrics::Method CallMetrics::Make(Families& families, const std::string& type, const std::string& service,
                                      const std::string& method) {
  const prometheus::Labels labels = {{"grpc_type", type}, {"grpc_service", service}, {"grpc_method", method}};
  Method made;
  made.started_ = &families.started.Add(labels);
  for (size_t code = 0; code < kCodes.size(); ++code) {
    prometheus::Labels with_code = labels;
    with_code["grpc_code"] = kCodes[code];
    made.handled_[code] = &families.handled.Add(with_code);
  }
  made.seconds_ = &families.seconds.Add(labels, LatencyBuckets());
  made.in_flight_ = &families.in_flight.Add(labels);
  return made;
}

const CallMetrics::Method& CallMetrics::Of(absl::string_view full_name) const {
  const auto found = methods_.find(full_name);
  return found == methods_.end() ? unknown_ : *found->second;
}

void CallMetrics::Method::Started() const {
  started_->Increment();
  in_flight_->Increment();
}

void CallMetrics::Method::Handled(absl::StatusCode code, absl::Duration latency) const {
  const auto index = static_cast<size_t>(code);
  handled_[index < kCodeCount ? index : static_cast<size_t>(absl::StatusCode::kUnknown)]->Increment();
  seconds_->Observe(std::max(absl::ToDoubleSeconds(latency), 0.0));
  in_flight_->Decrement();
}

}  // namespace sliceplan::rpc
