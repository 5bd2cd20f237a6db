// What all handlers share: the catalog and what was read and computed before. One per process.
#ifndef SLICEPLAN_SERVER_RPC_HANDLERS_ENGINE_H_
#define SLICEPLAN_SERVER_RPC_HANDLERS_ENGINE_H_

#include "server/catalog/catalog_store.h"
#include "server/planner/mapping.h"
#include "server/rpc/catalog_lists.h"
#include "server/rpc/model_cache.h"
#include "server/rpc/profile_cache.h"

namespace sliceplan::rpc {

// Thread-safe.
struct Engine {
  // `store` must outlive the engine.
  explicit Engine(catalog::CatalogStore* store) : catalogs(*store) {}

  catalog::CatalogStore& catalogs;
  CatalogListsHolder lists;
  ModelCache models;
  ProfileCache profiles;
  planner::MappingCache mappings;
};

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_HANDLERS_ENGINE_H_
