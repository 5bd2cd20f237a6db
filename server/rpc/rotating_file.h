// A file of whole lines with a largest size. When the next line would not fit, FILE becomes FILE.1, FILE.1 becomes
// FILE.2 and so on, and the oldest goes. Not thread-safe.
#ifndef SLICEPLAN_SERVER_RPC_ROTATING_FILE_H_
#define SLICEPLAN_SERVER_RPC_ROTATING_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace sliceplan::rpc {

class RotatingFile {
 public:
  // `max_bytes` of each file, above 0; `file_count` of them with FILE itself, 1 or more. Anything but a regular file is
  // never rotated.
  RotatingFile(std::string path, int64_t max_bytes, int file_count)
      : path_(std::move(path)), max_bytes_(max_bytes), file_count_(file_count) {}
  ~RotatingFile();
  RotatingFile(const RotatingFile&) = delete;
  RotatingFile& operator=(const RotatingFile&) = delete;

  // Appends a line with its newline, or nothing of it. Opens the file when it is not open: readable for its owner only.
  absl::Status Append(absl::string_view line);
  // Opens the file now, to learn whether that can be done.
  absl::Status Open();

 private:
  absl::Status Rotate();
  std::string OldPath(int age) const;

  const std::string path_;
  const int64_t max_bytes_;
  const int file_count_;
  int descriptor_ = -1;
  bool regular_ = false;
  int64_t size_ = 0;
};

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_ROTATING_FILE_H_
