// Counts and times of calls under the names of go-grpc-prometheus, so that dashboards made for those work here:
// grpc_server_started_total, grpc_server_handled_total, grpc_server_handling_seconds. Calls over HTTP count as well.
//
// Every method of this server has its series from the start; whatever else is called shares one, `unknown`: a caller
// cannot make series.
#ifndef SLICEPLAN_SERVER_RPC_METRICS_CALL_METRICS_H_
#define SLICEPLAN_SERVER_RPC_METRICS_CALL_METRICS_H_

#include <array>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "prometheus/counter.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"
#include "server/rpc/method_table.h"

namespace sliceplan::rpc {

// Of histograms of calls, in seconds: an estimate takes tenths of a millisecond, a search seconds.
const prometheus::Histogram::BucketBoundaries& LatencyBuckets();

// Thread-safe.
class CallMetrics {
 public:
  // `registry` must outlive the metrics.
  CallMetrics(prometheus::Registry* registry, const MethodTable& methods);

  class Method {
   public:
    void Started() const;
    // Once for each Started.
    void Handled(absl::StatusCode code, absl::Duration latency) const;

   private:
    friend class CallMetrics;
    static constexpr size_t kCodeCount = 17;

    prometheus::Counter* started_ = nullptr;
    std::array<prometheus::Counter*, kCodeCount> handled_ = {};
    prometheus::Histogram* seconds_ = nullptr;
    prometheus::Gauge* in_flight_ = nullptr;
  };

  // By "package.Service/Method".
  const Method& Of(absl::string_view full_name) const;

 private:
  class Families;

  Method Make(Families& families, const std::string& type, const std::string& service, const std::string& method);

  absl::flat_hash_map<std::string, std::unique_ptr<Method>> methods_;
  Method unknown_;
};

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_METRICS_CALL_METRICS_H_
