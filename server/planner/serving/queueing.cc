#include "server/planner/serving/queueing.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sliceplan::planner {
namespace {

constexpr double kForEver = std::numeric_limits<double>::infinity();
// Service times up to which Crommelin's alternating series keeps its digits; the asymptote has six by then.
constexpr double kSeriesServices = 8;
constexpr int kHalvings = 200;

// theta > 0 with rate x (e^(theta x service) - 1) = theta.
double DecayOfMD1(double rate, double service_seconds) {
  const double utilization = rate * service_seconds;
  // x = theta x service: utilization x (e^x - 1) / x = 1.
  double low = 0;
  double high = 1;
  while (utilization * std::expm1(high) < high) high *= 2;
  for (int i = 0; i < kHalvings && high - low > 1e-15 * high; ++i) {
    const double middle = (low + high) / 2;
    (utilization * std::expm1(middle) < middle ? low : high) = middle;
  }
  return high / service_seconds;
}

}  // namespace

double Waiting::Tail(double seconds) const {
  if (wait_probability <= 0) return 0;
  if (mean_seconds == kForEver) return 1;
  return wait_probability * std::exp(-seconds * wait_probability / mean_seconds);
}

double Waiting::Percentile(double p) const {
  if (mean_seconds == kForEver) return kForEver;
  if (1 - p >= wait_probability) return 0;
  return std::log(wait_probability / (1 - p)) * mean_seconds / wait_probability;
}

Waiting MM1Waiting(double rate, double service_seconds) { return MG1Waiting(rate, service_seconds, 1); }

Waiting MMcWaiting(double rate, double service_seconds, int64_t servers) {
  return GGcWaiting(rate, 1, service_seconds, 1, servers);
}

Waiting MG1Waiting(double rate, double service_seconds, double service_c2) {
  return GGcWaiting(rate, 1, service_seconds, service_c2, 1);
}

Waiting GGcWaiting(double rate, double arrival_c2, double service_seconds, double service_c2, int64_t servers) {
  const double offered = rate * service_seconds;
  const double spare = static_cast<double>(servers) - offered;
  if (spare <= 0) return {kForEver, 1};
  const double waits = ErlangC(offered, servers);
  const double mean = waits * service_seconds / spare * (arrival_c2 + service_c2) / 2;
  // Without any variation nobody waits.
  return {mean, mean > 0 ? waits : 0};
}

double ErlangB(double offered, int64_t servers) {
  double blocked = 1;
  for (int64_t i = 1; i <= servers; ++i) {
    blocked = offered * blocked / (static_cast<double>(i) + offered * blocked);
  }
  return blocked;
}

double ErlangC(double offered, int64_t servers) {
  const double count = static_cast<double>(servers);
  if (offered >= count) return 1;
  if (servers == 1) return offered;
  const double blocked = ErlangB(offered, servers);
  return blocked / (1 - offered / count * (1 - blocked));
}

double MD1WaitTail(double rate, double service_seconds, double seconds) {
  const double utilization = rate * service_seconds;
  if (utilization >= 1) return 1;
  if (utilization <= 0) return 0;
  const double services = seconds / service_seconds;
  if (services >= kSeriesServices) {
    const double decay = DecayOfMD1(rate, service_seconds);
    const double factor = (1 - utilization) / (utilization * std::exp(decay * service_seconds) - 1);
    return factor * std::exp(-decay * seconds);
  }
  double within = 0;
  for (int j = 0; j <= static_cast<int>(services); ++j) {
    const double x = utilization * (services - j);
    within += std::pow(-x, j) / std::tgamma(j + 1.0) * std::exp(x);
  }
  return std::clamp(1 - (1 - utilization) * within, 0.0, 1.0);
}

double MD1WaitPercentile(double rate, double service_seconds, double p) {
  const double utilization = rate * service_seconds;
  if (utilization >= 1) return kForEver;
  if (1 - p >= utilization) return 0;
  double low = 0;
  double high = service_seconds;
  while (MD1WaitTail(rate, service_seconds, high) > 1 - p) high *= 2;
  for (int i = 0; i < kHalvings && high - low > 1e-12 * high; ++i) {
    const double middle = (low + high) / 2;
    (MD1WaitTail(rate, service_seconds, middle) > 1 - p ? low : high) = middle;
  }
  return high;
}

}  // namespace sliceplan::planner
