// Notices that files have changed, by looking at them every now and then: also when what changed is the target of a
// symbolic link or the directory above, as with the secrets that Kubernetes mounts.
#ifndef SLICEPLAN_SERVER_RPC_FILE_WATCH_H_
#define SLICEPLAN_SERVER_RPC_FILE_WATCH_H_

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"

namespace sliceplan::rpc {

class FileWatch {
 public:
  // Calls `on_change` from a thread of its own, once for each look that finds something different from the look before.
  // The first look is now.
  FileWatch(std::vector<std::string> paths, absl::Duration interval, std::function<void()> on_change);
  // Waits for a callback that runs.
  ~FileWatch();
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;

 private:
  void RunThread();

  const std::vector<std::string> paths_;
  const absl::Duration interval_;
  const std::function<void()> on_change_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::string seen_;  // of the thread alone
  std::thread thread_;
};

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_FILE_WATCH_H_
