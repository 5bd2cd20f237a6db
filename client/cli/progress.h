// "searching, 3 s" on a terminal while an answer takes long.
#ifndef SLICEPLAN_CLIENT_CLI_PROGRESS_H_
#define SLICEPLAN_CLIENT_CLI_PROGRESS_H_

#include <condition_variable>
#include <mutex>
#include <ostream>
#include <thread>

namespace sliceplan::cli {

// Shows the line from the first second on, and wipes it when it ends. Nobody else may write to `out` meanwhile.
class Progress {
 public:
  // nullptr: shows nothing.
  explicit Progress(std::ostream* out);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

 private:
  void Show();

  std::ostream* const out_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace sliceplan::cli

#endif  // SLICEPLAN_CLIENT_CLI_PROGRESS_H_
