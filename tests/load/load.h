// Calls one RPC for a while through the client library, as a scheduler would, and counts what came of it.
#ifndef SLICEPLAN_TESTS_LOAD_LOAD_H_
#define SLICEPLAN_TESTS_LOAD_LOAD_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/sliceplan/connection.h"

namespace sliceplan::load {

struct LoadOptions {
  std::string method = "sliceplan.v1.PlannerService/EstimateTraining";  // any RPC whose descriptor is linked in
  std::string request_json = "{}";                                      // proto3 JSON
  absl::Duration length = absl::Seconds(5);
  // Calls a second, sent on time whether earlier ones have ended or not; 0: the next call follows the last one's end.
  double rate = 0;
  // Calls in flight: with a rate the most that there may be, else as many as there are.
  int in_flight = 16;
  CallOptions call;
};

struct LoadResult {
  int64_t call_count = 0;
  std::map<std::string, int64_t> failure_counts;  // by code: "UNAVAILABLE"
  std::string first_failure;                      // message of the first one
  int64_t unsent_count = 0;                       // calls of the rate for which there was no room in flight
  double seconds = 0;                             // from the first call to the end of the last
  std::vector<float> ok_milliseconds;             // sorted: every call that went well, over all of its tries

  int64_t failed_count() const;
  // 0 to 1; 0 when no call went well.
  double OkMilliseconds(double quantile) const;
};

// Blocks until all calls have ended. Calls are spread over the connections in turn. NOT_FOUND for an unknown method,
// INVALID_ARGUMENT for a request that is not its JSON. `first_ok` is called once, when the first call has gone well.
absl::StatusOr<LoadResult> RunLoad(const std::vector<std::shared_ptr<Connection>>& connections,
                                   const LoadOptions& options, const std::function<void()>& first_ok);

// One JSON object on one line.
std::string ToJson(const LoadResult& result);

}  // namespace sliceplan::load

#endif  // SLICEPLAN_TESTS_LOAD_LOAD_H_
