#include <errno.h>
#include <unistd.h>

#include <utility>

#include "absl/time/clock.h"
#include "server/rpc/json_log.h"

namespace sliceplan::rpc {

BufferedSink::BufferedSink(int file_descriptor) : file_descriptor_(file_descriptor), thread_([this] { RunThread(); }) {}

BufferedSink::~BufferedSink() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void BufferedSink::Write(absl::string_view line, bool urgent) {
  bool wake = urgent;
  {
    std::lock_guard lock(mutex_);
    if (waiting_.size() + line.size() > kMaxBytes) {
      ++dropped_count_;
      return;
    }
    // A sleeping thread looks for itself after kDelay; it must be told only of the first line and of urgent ones.
    wake = wake || waiting_.empty();
    waiting_.append(line.data(), line.size());
    urgent_ = urgent_ || urgent;
  }
  if (wake) wake_.notify_one();
}

void BufferedSink::Flush() {
  std::unique_lock lock(mutex_);
  urgent_ = true;
  wake_.notify_one();
  written_.wait(lock, [this] { return waiting_.empty() && !writing_; });
}

void BufferedSink::RunThread() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    wake_.wait_for(lock, absl::ToChronoMilliseconds(kDelay), [this] { return stopping_ || urgent_; });
    std::string text = std::exchange(waiting_, std::string());
    const int64_t dropped_count = std::exchange(dropped_count_, 0);
    urgent_ = false;
    const bool last = stopping_;
    writing_ = true;
    lock.unlock();
    if (dropped_count > 0) {
      LogLine line(absl::Now(), Severity::kWarning, "log lines dropped: the reader is too slow");
      line.Integer("count", dropped_count);
      text += std::move(line).Finish();
    }
    WriteOut(text);
    lock.lock();
    writing_ = false;
    if (waiting_.empty()) written_.notify_all();
    if (last && waiting_.empty()) return;
  }
}

void BufferedSink::WriteOut(absl::string_view text) const {
  while (!text.empty()) {
    const ssize_t written = write(file_descriptor_, text.data(), text.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return;  // nobody to tell
    }
    text.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace sliceplan::rpc
