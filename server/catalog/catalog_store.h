// The catalog that a running server answers from: the built-in data, overlaid by an operator's directory, exchanged
// whole when the directory is read again.
#ifndef SLICEPLAN_SERVER_CATALOG_CATALOG_STORE_H_
#define SLICEPLAN_SERVER_CATALOG_CATALOG_STORE_H_

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/catalog/catalog.h"

namespace sliceplan::catalog {

// The data built into the program alone. Never fails in a program whose tests passed.
absl::StatusOr<std::shared_ptr<const Catalog>> BuiltInCatalog();

// Thread-safe.
class CatalogStore {
 public:
  // `directory`: overlay; empty for none. Fails like Reload.
  static absl::StatusOr<std::unique_ptr<CatalogStore>> Create(std::string directory);

  // Valid for as long as the caller holds it, whatever is loaded meanwhile.
  std::shared_ptr<const Catalog> Snapshot() const;

  // Reads the directory again. On an error (INVALID_ARGUMENT lists every problem; NOT_FOUND: no such directory;
  // UNAVAILABLE: cannot be read) the snapshot stays as it was.
  absl::Status Reload();

 private:
  explicit CatalogStore(std::string directory) : directory_(std::move(directory)) {}

  const std::string directory_;
  mutable std::mutex mutex_;
  std::shared_ptr<const Catalog> snapshot_;  // guarded by mutex_
};

}  // namespace sliceplan::catalog

#endif  // SLICEPLAN_SERVER_CATALOG_CATALOG_STORE_H_
