// The tool `sliceplan-calibrate`: reads the arguments and tables, predicts, fits, writes.
#ifndef SLICEPLAN_CLIENT_CALIBRATE_COMMAND_H_
#define SLICEPLAN_CLIENT_CALIBRATE_COMMAND_H_

#include <ostream>
#include <string>
#include <vector>

namespace sliceplan::calibrate {

// Exit statuses.
inline constexpr int kDone = 0;
inline constexpr int kUsageError = 1;   // the arguments or a file cannot be read, or a file cannot be written
inline constexpr int kNothingToDo = 2;  // no row could be predicted, or none by a profile that is to be fitted

// `arguments` without the program's name.
int RunCommand(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err);

}  // namespace sliceplan::calibrate

#endif  // SLICEPLAN_CLIENT_CALIBRATE_COMMAND_H_
