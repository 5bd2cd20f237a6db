// Errors of the service on the command's standard error.
#ifndef SLICEPLAN_CLIENT_CLI_ERRORS_H_
#define SLICEPLAN_CLIENT_CLI_ERRORS_H_

#include <ostream>
#include <string>

#include "client/cli/flags.h"
#include "proto/google/rpc/status.pb.h"

namespace sliceplan::cli {

// google.rpc.Status in proto3 JSON, details expanded.
void PrintErrorAsJson(const google::rpc::Status& status, std::ostream& err);

// For people: the sentence, or one line per violation with the flag that it is about. `program` is "sliceplan train".
void PrintErrorAsText(const google::rpc::Status& status, const std::string& program, const Flags& flags,
                      std::ostream& err);

}  // namespace sliceplan::cli

#endif  // SLICEPLAN_CLIENT_CLI_ERRORS_H_
