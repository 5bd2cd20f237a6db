#include "server/rpc/file_watch.h"

#include <sys/stat.h>

#include <utility>

#include "absl/strings/str_cat.h"

namespace sliceplan::rpc {
namespace {

// Differs when a file was written, replaced or removed.
std::string LookOf(const std::vector<std::string>& paths) {
  std::string look;
  for (const std::string& path : paths) {
    struct stat status = {};
    if (stat(path.c_str(), &status) != 0) {
      absl::StrAppend(&look, "none;");
      continue;
    }
    absl::StrAppend(&look, status.st_dev, ",", status.st_ino, ",", status.st_size, ",", status.st_mtim.tv_sec, ".",
                    status.st_mtim.tv_nsec, ";");
  }
  return look;
}

}  // namespace

FileWatch::FileWatch(std::vector<std::string> paths, absl::Duration interval, std::function<void()> on_change)
    : paths_(std::move(paths)),
      interval_(interval),
      on_change_(std::move(on_change)),
      seen_(LookOf(paths_)),
      thread_([this] { RunThread(); }) {}

FileWatch::~FileWatch() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void FileWatch::RunThread() {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, absl::ToChronoMilliseconds(interval_), [this] { return stopping_; })) {
    std::string look = LookOf(paths_);
    if (look == seen_) continue;
    seen_ = std::move(look);
    lock.unlock();
    on_change_();
    lock.lock();
  }
}

}  // namespace sliceplan::rpc
