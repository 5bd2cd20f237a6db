// The tool `sliceplan-calibrate`; everything is in command.cc.
#include <algorithm>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "client/calibrate/command.h"

int main(int argc, char** argv) {
  try {
    const std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
    return sliceplan::calibrate::RunCommand(arguments, std::cout, std::cerr);
  } catch (const std::exception& error) {
    std::cerr << "sliceplan-calibrate: " << error.what() << '\n';
    return sliceplan::calibrate::kUsageError;
  }
}
