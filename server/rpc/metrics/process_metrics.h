// process_cpu_seconds_total and its like, as every Prometheus client has them; prometheus-cpp does not.
#ifndef SLICEPLAN_SERVER_RPC_METRICS_PROCESS_METRICS_H_
#define SLICEPLAN_SERVER_RPC_METRICS_PROCESS_METRICS_H_

#include <vector>

#include "prometheus/metric_family.h"

namespace sliceplan::rpc {

// Of this process, now. What the kernel does not tell is left out.
std::vector<prometheus::MetricFamily> ProcessMetrics();

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_METRICS_PROCESS_METRICS_H_
