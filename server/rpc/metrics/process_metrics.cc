#include "server/rpc/metrics/process_metrics.h"

#include <dirent.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace sliceplan::rpc {
namespace {

prometheus::MetricFamily Family(std::string name, std::string help, prometheus::MetricType type, double value) {
  prometheus::MetricFamily family{std::move(name), std::move(help), type, {}};
  family.metric.resize(1);
  if (type == prometheus::MetricType::Counter) {
    family.metric[0].counter.value = value;
  } else {
    family.metric[0].gauge.value = value;
  }
  return family;
}

std::string FileText(const char* path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

std::optional<double> CpuSeconds() {
  timespec time = {};
  if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) != 0) return std::nullopt;
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// proc(5): field 22 of /proc/self/stat is the start in clock ticks since boot; "btime" of /proc/stat is the boot.
std::optional<double> StartTime() {
  const std::string stat = FileText("/proc/self/stat");
  // The second field is a name that may hold spaces; it ends at the last parenthesis.
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  const std::vector<absl::string_view> fields =
      absl::StrSplit(absl::string_view(stat).substr(name_end + 1), ' ', absl::SkipEmpty());
  constexpr size_t kStartIndex = 22 - 3;  // the first field here is the third
  double ticks = 0;
  if (fields.size() <= kStartIndex || !absl::SimpleAtod(fields[kStartIndex], &ticks)) return std::nullopt;
  const std::string machine = FileText("/proc/stat");
  for (const absl::string_view line : absl::StrSplit(machine, '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
    double boot = 0;
    if (words.size() == 2 && words[0] == "btime" && absl::SimpleAtod(words[1], &boot)) {
      return boot + ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
    }
  }
  return std::nullopt;
}

std::optional<double> OpenFiles() {
  DIR* const directory = opendir("/proc/self/fd");
  if (directory == nullptr) return std::nullopt;
  int count = -3;  // ".", ".." and the directory itself
  while (readdir(directory) != nullptr) ++count;
  closedir(directory);
  return count;
}

std::optional<double> MaxFiles() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
  return static_cast<double>(limit.rlim_cur);
}

}  // namespace

std::vector<prometheus::MetricFamily> ProcessMetrics() {
  using Type = prometheus::MetricType;
  std::vector<prometheus::MetricFamily> families;
  const auto add = [&](const char* name, const char* help, Type type, std::optional<double> value) {
    if (value.has_value()) families.push_back(Family(name, help, type, *value));
  };
  // proc(5): pages of the program's size and of what is resident.
  std::istringstream memory(FileText("/proc/self/statm"));
  double virtual_pages = 0;
  double resident_pages = 0;
  const bool has_memory = static_cast<bool>(memory >> virtual_pages >> resident_pages);
  const double page_bytes = static_cast<double>(sysconf(_SC_PAGESIZE));
  const auto bytes = [&](double pages) { return has_memory ? std::optional(pages * page_bytes) : std::nullopt; };

  add("process_cpu_seconds_total", "CPU time of the process, user and system.", Type::Counter, CpuSeconds());
  add("process_start_time_seconds", "When the process started, since 1970.", Type::Gauge, StartTime());
  add("process_resident_memory_bytes", "Memory of the process that is resident.", Type::Gauge, bytes(resident_pages));
  add("process_virtual_memory_bytes", "Address space of the process.", Type::Gauge, bytes(virtual_pages));
  add("process_open_fds", "Open file descriptors.", Type::Gauge, OpenFiles());
  add("process_max_fds", "Most file descriptors that may be open.", Type::Gauge, MaxFiles());
  return families;
}

}  // namespace sliceplan::rpc
