// What subcommands there are, with their help.
#ifndef SLICEPLAN_CLIENT_CLI_SUBCOMMANDS_H_
#define SLICEPLAN_CLIENT_CLI_SUBCOMMANDS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/cli/question.h"

namespace sliceplan::cli {

struct Subcommand {
  std::string group;  // "op" of "sliceplan op matmul"; empty for "sliceplan train"
  std::string name;
  std::string description;
  std::string examples;
  std::function<std::unique_ptr<Question>()> make;
};

// In the order of the help. Not in it: call, replay and version, which ask no question of their own.
std::vector<Subcommand> AllSubcommands();

// What a group is about.
std::string GroupDescription(const std::string& group);

}  // namespace sliceplan::cli

#endif  // SLICEPLAN_CLIENT_CLI_SUBCOMMANDS_H_
