#include "client/cli/progress.h"

#include <chrono>

namespace sliceplan::cli {

Progress::Progress(std::ostream* out) : out_(out) {
  if (out_ != nullptr) thread_ = std::thread([this] { Show(); });
}

Progress::~Progress() {
  if (out_ == nullptr) return;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Progress::Show() {
  std::unique_lock lock(mutex_);
  int seconds = 0;
  while (!changed_.wait_for(lock, std::chrono::seconds(1), [this] { return ended_; })) {
    *out_ << "\rsearching, " << ++seconds << " s" << std::flush;
  }
  // Back to the start, and the rest of the line wiped: ECMA-48.
  if (seconds > 0) *out_ << "\r\x1b[K" << std::flush;
}

}  // namespace sliceplan::cli
