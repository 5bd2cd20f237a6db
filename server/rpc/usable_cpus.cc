#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>

#include "server/rpc/worker_pool.h"

namespace sliceplan::rpc {
namespace {

// Version 2 of control groups: "max 100000" or "150000 100000" (microseconds of CPU per period).
double ControlGroupCpus() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return HUGE_VAL;
  char* end = nullptr;
  const double microseconds = std::strtod(quota.c_str(), &end);
  return end == quota.c_str() || microseconds <= 0 ? HUGE_VAL : microseconds / period;
}

}  // namespace

int UsableCpuCount() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  const int allowed = sched_getaffinity(0, sizeof(cpus), &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
  return std::max(1, static_cast<int>(std::min<double>(allowed, std::ceil(ControlGroupCpus()))));
}

}  // namespace sliceplan::rpc
