// Arguments to the request of a question, as the command reads them.
#ifndef SLICEPLAN_TESTS_CLIENT_CLI_PARSE_H_
#define SLICEPLAN_TESTS_CLIENT_CLI_PARSE_H_

#include <algorithm>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "client/cli/flags.h"
#include "client/cli/question.h"

namespace sliceplan::cli {

class ParsedFlags {
 public:
  ParsedFlags(Question* question, std::vector<std::string> arguments, const std::string& in = "") : in_(in) {
    flags_ = std::make_unique<Flags>(&app_, question->request(), &in_);
    question->AddFlags(*flags_);
    std::reverse(arguments.begin(), arguments.end());
    app_.parse(std::move(arguments));
  }

  const Flags& flags() const { return *flags_; }
  std::vector<std::string> problems() const { return flags_->Problems(); }

 private:
  CLI::App app_;
  std::istringstream in_;
  std::unique_ptr<Flags> flags_;
};

}  // namespace sliceplan::cli

#endif  // SLICEPLAN_TESTS_CLIENT_CLI_PARSE_H_
