// A directory of a test's own, gone with it.
#ifndef SLICEPLAN_TESTS_RPC_FILES_H_
#define SLICEPLAN_TESTS_RPC_FILES_H_

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"

namespace sliceplan::rpc {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = testing::TempDir() + "sliceplan.XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  std::string Path(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// Replaces the file at once, as an operator should.
inline void WriteFile(const std::string& path, absl::string_view text) {
  const std::string next = path + ".next";
  std::ofstream(next, std::ios::binary) << text;
  std::filesystem::rename(next, path);
}

inline std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline std::vector<std::string> ReadLines(const std::string& path) {
  return absl::StrSplit(ReadFile(path), '\n', absl::SkipEmpty());
}

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_TESTS_RPC_FILES_H_
