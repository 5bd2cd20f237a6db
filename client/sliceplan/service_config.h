// The gRPC service config of a client: balancing, health checks, retries. Internal to the library.
#ifndef SLICEPLAN_CLIENT_SLICEPLAN_SERVICE_CONFIG_H_
#define SLICEPLAN_CLIENT_SLICEPLAN_SERVICE_CONFIG_H_

#include <string>

#include "client/sliceplan/options.h"

namespace sliceplan {

// JSON as github.com/grpc/grpc-proto, grpc/service_config/service_config.proto has it. Deadlines are not in it: gRPC
// takes the shorter of a config's and a call's, so that a call could not ask for more time.
std::string ServiceConfigJson(const ClientOptions& options);

}  // namespace sliceplan

#endif  // SLICEPLAN_CLIENT_SLICEPLAN_SERVICE_CONFIG_H_
