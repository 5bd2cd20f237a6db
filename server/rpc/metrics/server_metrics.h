// Everything that /metrics shows, by what it is about. README.md has the list. Base units, no label that a request
// sets.
#ifndef SLICEPLAN_SERVER_RPC_METRICS_SERVER_METRICS_H_
#define SLICEPLAN_SERVER_RPC_METRICS_SERVER_METRICS_H_

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "google/protobuf/message.h"
#include "prometheus/counter.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"
#include "server/rpc/call_context.h"
#include "server/rpc/method_table.h"
#include "server/rpc/metrics/call_metrics.h"
#include "server/rpc/pool_task.h"
#include "server/rpc/result.h"

namespace sliceplan::rpc {

// Thread-safe.
class ServerMetrics {
 public:
  explicit ServerMetrics(
      const MethodTable& methods, std::function<absl::Time()> now = [] { return absl::Now(); });

  const CallMetrics& calls() const { return calls_; }

  // Work came off the queue, to be done or dropped, after `wait`.
  void Dequeued(absl::Duration wait) const;
  // A call was not worked on.
  void Shed(ShedReason reason) const;
  // A call was refused for its token, missing, unknown, not for this method or above its rate: `code` says which.
  void Unauthorized(absl::StatusCode code) const;
  // A handler returned: what its search did, and whether it failed.
  void Answered(const Result& result, const google::protobuf::Message& response, const CallContext& context) const;

  // A catalog is in use from now on.
  void CatalogLoaded(absl::string_view version);
  void CatalogReloaded(bool ok) const;

  // Shown with the value that `value` has at the scrape; as a counter when the name ends in "_total". `value` must be
  // callable for as long as Text may be called.
  void AddGauge(std::string name, std::string help, std::function<double()> value);

  // In the text format of Prometheus, version 0.0.4.
  std::string Text() const;

 private:
  struct ScrapedGauge {
    std::string name;
    std::string help;
    std::function<double()> value;
  };

  const std::function<absl::Time()> now_;
  prometheus::Registry registry_;
  const CallMetrics calls_;
  prometheus::Histogram* queue_wait_seconds_;
  std::array<prometheus::Counter*, kShedReasonCount> shed_;
  std::array<prometheus::Counter*, 3> unauthorized_;  // unauthenticated, method, rate
  prometheus::Counter* engine_errors_;
  prometheus::Counter* searches_;
  prometheus::Counter* searches_cut_;
  prometheus::Counter* evaluated_plans_;
  std::array<prometheus::Counter*, 2> reloads_;  // failed, ok

  mutable std::mutex mutex_;
  std::string catalog_version_;               // guarded by mutex_
  absl::Time catalog_time_;                   // guarded by mutex_
  std::vector<ScrapedGauge> scraped_gauges_;  // guarded by mutex_
};

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_METRICS_SERVER_METRICS_H_
