// From gRPC's status to Abseil's, without loss. Internal to the library.
#ifndef SLICEPLAN_CLIENT_SLICEPLAN_STATUS_H_
#define SLICEPLAN_CLIENT_SLICEPLAN_STATUS_H_

#include <string>

#include "absl/status/status.h"

namespace grpc {
class Status;
}  // namespace grpc

namespace sliceplan {

// Where the payload of a detail lies: the type URL that google.protobuf.Any writes for it.
std::string DetailUrl(const std::string& message_full_name);

// Code, message, and every detail of the `grpc-status-details-bin` trailer as a payload. Trailers that hold no
// google.rpc.Status are ignored.
absl::Status FromGrpcStatus(const grpc::Status& status);

}  // namespace sliceplan

#endif  // SLICEPLAN_CLIENT_SLICEPLAN_STATUS_H_
