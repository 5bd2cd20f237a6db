// Tables that estimates of training and serving share: where the time goes, what fills the memory.
#ifndef SLICEPLAN_CLIENT_CLI_BREAKDOWN_REPORT_H_
#define SLICEPLAN_CLIENT_CLI_BREAKDOWN_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "client/cli/report.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "proto/sliceplan/v1/estimate.pb.h"

namespace sliceplan::cli {

using Breakdown = google::protobuf::RepeatedPtrField<v1::BreakdownEntry>;

// "forward 31.2%, backward 62.0%, ..." of a breakdown that takes any time.
std::string PhasesText(const Breakdown& breakdown);

// Lines of the same part, resource and axis together, over phases and layer groups, the longest first. Nothing for a
// breakdown that takes no time.
void PrintBreakdown(const Breakdown& breakdown, Report& report);

double TotalSeconds(const Breakdown& breakdown);

struct MemoryClass {
  const char* name;
  int64_t bytes;
};
// Classes that hold something, with bars, then what is used of the capacity.
void PrintMemoryClasses(const std::vector<MemoryClass>& classes, int64_t used_bytes, int64_t capacity_bytes,
                        std::vector<std::vector<std::string>> more_rows, Report& report);

}  // namespace sliceplan::cli

#endif  // SLICEPLAN_CLIENT_CLI_BREAKDOWN_REPORT_H_
