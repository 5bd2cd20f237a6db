// The command `sliceplan`: reads the arguments, asks, prints.
#ifndef SLICEPLAN_CLIENT_CLI_COMMAND_H_
#define SLICEPLAN_CLIENT_CLI_COMMAND_H_

#include <istream>
#include <ostream>
#include <string>
#include <vector>

#include "client/cli/report.h"

namespace sliceplan::cli {

// Exit statuses.
inline constexpr int kAnswered = 0;      // also when the answer is that the job does not fit
inline constexpr int kUsageError = 1;    // the arguments cannot be read, a file is missing
inline constexpr int kServiceError = 2;  // the service refused the request or could not be reached
inline constexpr int kDifferent = 3;     // `replay`: a reply is not what the log says

struct Surroundings {
  std::istream* in;
  std::ostream* out;
  std::ostream* err;
  Style style;
  bool shows_progress = false;  // on `err`, which is a terminal
};

// `arguments` without the program's name.
int RunCommand(const std::vector<std::string>& arguments, const Surroundings& surroundings);

}  // namespace sliceplan::cli

#endif  // SLICEPLAN_CLIENT_CLI_COMMAND_H_
