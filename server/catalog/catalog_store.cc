#include "server/catalog/catalog_store.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/catalog/embedded_files.h"

namespace sliceplan::catalog {
namespace {

namespace fs = std::filesystem;

// Limits on an operator's directory, far above any real one.
constexpr size_t kMaxFiles = 10000;
constexpr uintmax_t kMaxFileBytes = 16 << 20;

struct OwnedFile {
  std::string name;
  std::string text;
};

// The .textproto and .json files below `directory`, by name; hidden ones are left out.
absl::StatusOr<std::vector<OwnedFile>> ReadDirectory(const std::string& directory) {
  std::error_code error;
  if (!fs::is_directory(directory, error)) {
    return absl::NotFoundError(
        absl::StrCat("the catalog directory ", directory, " does not exist or is not a directory"));
  }
  std::vector<OwnedFile> files;
  fs::recursive_directory_iterator entry(directory, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    const fs::path& path = entry->path();
    // A mounted Kubernetes ConfigMap keeps its files twice: behind links, and in a directory named "..date".
    if (absl::StartsWith(path.filename().string(), ".")) {
      entry.disable_recursion_pending();
      continue;
    }
    if (path.extension() != ".textproto" && path.extension() != ".json") continue;
    std::error_code ignored;
    if (!entry->is_regular_file(ignored)) continue;
    const std::string name = path.lexically_relative(directory).generic_string();
    if (files.size() == kMaxFiles) {
      return absl::InvalidArgumentError(absl::StrCat("the catalog directory has more than ", kMaxFiles, " files"));
    }
    const uintmax_t size = fs::file_size(path, error);
    if (!error && size > kMaxFileBytes) {
      return absl::InvalidArgumentError(absl::StrCat(name, " is larger than ", kMaxFileBytes, " bytes"));
    }
    std::ifstream stream(path, std::ios::binary);
    std::string text((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
    if (error || !stream.good())
      return absl::UnavailableError(absl::StrCat("cannot read ", name, " of the catalog directory"));
    files.push_back({name, std::move(text)});
  }
  if (error) return absl::UnavailableError(absl::StrCat("cannot list the catalog directory: ", error.message()));
  std::sort(files.begin(), files.end(), [](const OwnedFile& a, const OwnedFile& b) { return a.name < b.name; });
  return files;
}

std::vector<SourceFile> BuiltInFiles() {
  std::vector<SourceFile> files;
  for (const SourceFileText& file : EmbeddedFiles()) files.push_back({std::string(file.name), file.text});
  return files;
}

absl::StatusOr<std::shared_ptr<const Catalog>> Load(const std::string& directory) {
  std::vector<OwnedFile> owned;
  if (!directory.empty()) {
    absl::StatusOr<std::vector<OwnedFile>> read = ReadDirectory(directory);
    if (!read.ok()) return read.status();
    owned = *std::move(read);
  }
  std::vector<SourceFile> overlay;
  for (const OwnedFile& file : owned) overlay.push_back({file.name, file.text});
  return Catalog::Build(BuiltInFiles(), overlay);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Catalog>> BuiltInCatalog() { return Catalog::Build(BuiltInFiles()); }

absl::StatusOr<std::unique_ptr<CatalogStore>> CatalogStore::Create(std::string directory) {
  std::unique_ptr<CatalogStore> store(new CatalogStore(std::move(directory)));
  if (absl::Status status = store->Reload(); !status.ok()) return status;
  return store;
}

std::shared_ptr<const Catalog> CatalogStore::Snapshot() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return snapshot_;
}

absl::Status CatalogStore::Reload() {
  // Built outside the lock: requests are answered meanwhile.
  absl::StatusOr<std::shared_ptr<const Catalog>> loaded = Load(directory_);
  if (!loaded.ok()) return loaded.status();
  std::lock_guard<std::mutex> lock(mutex_);
  snapshot_ = *std::move(loaded);
  return absl::OkStatus();
}

}  // namespace sliceplan::catalog
