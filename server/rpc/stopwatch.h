// Time since a moment, whatever becomes of the wall clock meanwhile.
#ifndef SLICEPLAN_SERVER_RPC_STOPWATCH_H_
#define SLICEPLAN_SERVER_RPC_STOPWATCH_H_

#include <chrono>

#include "absl/time/time.h"

namespace sliceplan::rpc {

// Runs from its construction on.
class Stopwatch {
 public:
  absl::Duration Elapsed() const { return absl::FromChrono(std::chrono::steady_clock::now() - start_); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_STOPWATCH_H_
