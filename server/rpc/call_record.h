// What is logged of a call that ended, whatever carried it.
#ifndef SLICEPLAN_SERVER_RPC_CALL_RECORD_H_
#define SLICEPLAN_SERVER_RPC_CALL_RECORD_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/rpc/json_log.h"

namespace sliceplan::rpc {

struct CallRecord {
  absl::string_view method;  // "sliceplan.v1.PlannerService/EstimateTraining"
  absl::StatusCode code = absl::StatusCode::kOk;
  absl::Duration latency;
  std::optional<absl::Duration> deadline;  // that the caller set, from the start of the call
  absl::string_view peer;
  absl::string_view request_id;   // empty: none
  absl::string_view traceparent;  // as the caller sent it; empty: none
  absl::string_view error;        // the message of the error
};

// How much an operator wants to see such a call: an error where something is broken, a warning where the server is at
// its limits. Calls of standard services ("grpc."...) that went well, or asked for what is not there, are DEBUG.
Severity SeverityOf(absl::string_view method, absl::StatusCode code);

// One line "call" with the fields method, code, latency_s, deadline_s, peer, request_id, trace_id, error; those that
// are empty are left out.
void WriteCallLine(const JsonLog& log, const CallRecord& record);

// The trace id of a W3C `traceparent`, "00-<32 hex digits>-<16>-<2>"; empty when it is none.
absl::string_view TraceIdOf(absl::string_view traceparent);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_CALL_RECORD_H_
