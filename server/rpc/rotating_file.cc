#include "server/rpc/rotating_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace sliceplan::rpc {
namespace {

absl::Status ErrorOf(absl::string_view what, const std::string& path) {
  const int error = errno;
  return absl::ErrnoToStatus(error, absl::StrCat("cannot ", what, " ", path));
}

// Whether the file ends in the middle of a line, because a process ended while it wrote it.
bool EndsInALine(const std::string& path, int64_t size) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return false;
  char last = '\n';
  const bool read_one = pread(descriptor, &last, 1, size - 1) == 1;
  close(descriptor);
  return read_one && last != '\n';
}

}  // namespace

RotatingFile::~RotatingFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

std::string RotatingFile::OldPath(int age) const { return age == 0 ? path_ : absl::StrCat(path_, ".", age); }

absl::Status RotatingFile::Open() {
  if (descriptor_ >= 0) return absl::OkStatus();
  constexpr mode_t kOwnerOnly = 0600;
  descriptor_ = open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, kOwnerOnly);
  if (descriptor_ < 0) return ErrorOf("open", path_);
  struct stat status = {};
  regular_ = fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode);
  size_ = regular_ ? status.st_size : 0;
  if (size_ > 0 && EndsInALine(path_, size_)) return Append("\n");
  return absl::OkStatus();
}

absl::Status RotatingFile::Rotate() {
  close(descriptor_);
  descriptor_ = -1;
  if (file_count_ == 1) {
    if (unlink(path_.c_str()) != 0) return ErrorOf("remove", path_);
  }
  for (int age = file_count_ - 1; age > 0; --age) {
    // What is not there yet cannot be renamed.
    if (rename(OldPath(age - 1).c_str(), OldPath(age).c_str()) != 0 && errno != ENOENT) {
      return ErrorOf("rename", OldPath(age - 1));
    }
  }
  return Open();
}

absl::Status RotatingFile::Append(absl::string_view line) {
  if (absl::Status status = Open(); !status.ok()) return status;
  if (regular_ && size_ > 0 && size_ + static_cast<int64_t>(line.size()) > max_bytes_) {
    if (absl::Status status = Rotate(); !status.ok()) return status;
  }
  absl::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t written = write(descriptor_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const absl::Status status = ErrorOf("write", path_);
      // Half a line would spoil the next one.
      if (regular_ && rest.size() < line.size() && ftruncate(descriptor_, size_) != 0) {
        close(descriptor_);
        descriptor_ = -1;
      }
      return status;
    }
    rest.remove_prefix(static_cast<size_t>(written));
  }
  size_ += static_cast<int64_t>(line.size());
  return absl::OkStatus();
}

}  // namespace sliceplan::rpc
