// sliceplan call SERVICE/METHOD: any RPC, in proto3 JSON.
#ifndef SLICEPLAN_CLIENT_CLI_CALL_H_
#define SLICEPLAN_CLIENT_CLI_CALL_H_

#include <istream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/backend.h"
#include "google/protobuf/message.h"
#include "proto/google/rpc/status.pb.h"

namespace sliceplan::cli {

// One RPC found by name.
struct NamedMethod {
  std::string full_name;  // "sliceplan.v1.PlannerService/EstimateTraining"
  std::unique_ptr<google::protobuf::Message> request;
  std::unique_ptr<google::protobuf::Message> response;
};

// By "PlannerService/EstimateTraining", with or without the package and a leading slash, "/" or "." between. The error
// lists what there is.
absl::StatusOr<NamedMethod> FindMethod(const std::string& name);

// Reads the request from JSON and calls. A request that does not fit is INVALID_ARGUMENT, as from the service.
google::rpc::Status CallWithJson(const std::string& json, Backend& backend, NamedMethod& method);

}  // namespace sliceplan::cli

#endif  // SLICEPLAN_CLIENT_CLI_CALL_H_
