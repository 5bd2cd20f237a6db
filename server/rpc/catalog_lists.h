// The lists of the catalog as messages, made once per catalog: a page is then a filter and a copy.
#ifndef SLICEPLAN_SERVER_RPC_CATALOG_LISTS_H_
#define SLICEPLAN_SERVER_RPC_CATALOG_LISTS_H_

#include <memory>
#include <mutex>
#include <vector>

#include "proto/sliceplan/v1/catalog.pb.h"
#include "proto/sliceplan/v1/hardware.pb.h"
#include "proto/sliceplan/v1/pricing.pb.h"
#include "server/catalog/catalog.h"
#include "server/rpc/model_cache.h"

namespace sliceplan::rpc {

// Immutable, but for what is made when first asked for. Thread-safe.
class CatalogLists {
 public:
  explicit CatalogLists(std::shared_ptr<const catalog::Catalog> catalog) : catalog_(std::move(catalog)) {}

  const std::vector<v1::Accelerator>& Accelerators() const;
  // TPU slices and GPU machines, by accelerator, chips, topology and machine type.
  const std::vector<v1::SliceInfo>& Slices() const;
  const std::vector<v1::Price>& Prices() const;
  // Reads every configuration the first time.
  const std::vector<v1::ModelPreset>& Models(ModelCache& models) const;

  const catalog::Catalog& catalog() const { return *catalog_; }

 private:
  const std::shared_ptr<const catalog::Catalog> catalog_;
  mutable std::once_flag accelerators_once_, slices_once_, prices_once_, models_once_;
  mutable std::vector<v1::Accelerator> accelerators_;
  mutable std::vector<v1::SliceInfo> slices_;
  mutable std::vector<v1::Price> prices_;
  mutable std::vector<v1::ModelPreset> models_;
};

// The lists of the newest catalog that was asked for. Thread-safe.
class CatalogListsHolder {
 public:
  std::shared_ptr<const CatalogLists> Of(std::shared_ptr<const catalog::Catalog> catalog);

 private:
  std::mutex mutex_;
  std::shared_ptr<const CatalogLists> lists_;
};

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_CATALOG_LISTS_H_
