// How a call ended: OK, or a google.rpc.Status. Knows no transport, so that the gRPC server, the HTTP port, the command
// line and the fuzzer share it.
#ifndef SLICEPLAN_SERVER_RPC_RESULT_H_
#define SLICEPLAN_SERVER_RPC_RESULT_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "proto/google/rpc/status.pb.h"

namespace sliceplan::rpc {

class [[nodiscard]] Result {
 public:
  // OK: costs nothing.
  Result() = default;
  // An error; `status.code` must not be OK. `log_text` is for the operator's log only and never leaves the server.
  explicit Result(google::rpc::Status status, std::string log_text = "");

  bool ok() const { return error_ == nullptr; }
  // gRPC's codes have the numbers of Abseil's.
  absl::StatusCode code() const;
  // Code, message and details as they travel. Requires !ok().
  const google::rpc::Status& status() const { return error_->status; }
  // Empty when OK.
  const std::string& log_text() const;

 private:
  struct Error {
    google::rpc::Status status;
    std::string log_text;
  };
  std::unique_ptr<Error> error_;
};

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_RESULT_H_
