// Something in a request that makes no sense. All violations are collected and reported at once.
#ifndef SLICEPLAN_SERVER_HARDWARE_VIOLATION_H_
#define SLICEPLAN_SERVER_HARDWARE_VIOLATION_H_

#include <string>

namespace sliceplan::hardware {

struct Violation {
  enum class Kind {
    kInvalid,      // malformed or impossible
    kNotFound,     // an unknown name
    kUnsupported,  // outside what the engine models
  };
  std::string field;        // path relative to the message checked: "layer_groups[0].repeat_count"
  std::string description;  // a sentence: what is wrong, what would be right
  std::string reason;       // UPPER_SNAKE, for programs
  Kind kind = Kind::kInvalid;
};

}  // namespace sliceplan::hardware

#endif  // SLICEPLAN_SERVER_HARDWARE_VIOLATION_H_
