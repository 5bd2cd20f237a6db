// The command `sliceplan`; everything but the terminal is in command.cc.
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "client/cli/command.h"

namespace {

// Narrower is unreadable.
constexpr size_t kMinColumns = 60;

sliceplan::cli::Style TerminalStyle() {
  sliceplan::cli::Style style;
  if (isatty(STDOUT_FILENO) == 0) return style;
  const char* const no_color = std::getenv("NO_COLOR");
  const char* const terminal = std::getenv("TERM");
  const bool dumb = terminal == nullptr || std::string(terminal) == "dumb";
  // no-color.org: set and not empty.
  style.color = !dumb && (no_color == nullptr || *no_color == '\0');
  winsize size = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    style.columns = std::clamp<size_t>(size.ws_col, kMinColumns, sliceplan::cli::kMaxColumns);
  }
  return style;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
    return sliceplan::cli::RunCommand(arguments,
                                      {&std::cin, &std::cout, &std::cerr, TerminalStyle(), isatty(STDERR_FILENO) != 0});
  } catch (const std::exception& error) {
    std::cerr << "sliceplan: " << error.what() << '\n';
    return sliceplan::cli::kUsageError;
  }
}
