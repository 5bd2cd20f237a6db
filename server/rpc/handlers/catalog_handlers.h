// CatalogService: what the server knows.
#ifndef SLICEPLAN_SERVER_RPC_HANDLERS_CATALOG_HANDLERS_H_
#define SLICEPLAN_SERVER_RPC_HANDLERS_CATALOG_HANDLERS_H_

#include "proto/sliceplan/v1/catalog.pb.h"
#include "server/rpc/call_context.h"
#include "server/rpc/handlers/engine.h"
#include "server/rpc/result.h"

namespace sliceplan::rpc {

class CatalogHandlers {
 public:
  // `engine` must outlive the handlers.
  explicit CatalogHandlers(Engine* engine) : engine_(*engine) {}

  Result ListAccelerators(const v1::ListAcceleratorsRequest& request, v1::ListAcceleratorsResponse* response,
                          const CallContext& call);
  Result ListSlices(const v1::ListSlicesRequest& request, v1::ListSlicesResponse* response, const CallContext& call);
  Result ListPrices(const v1::ListPricesRequest& request, v1::ListPricesResponse* response, const CallContext& call);
  Result ListModels(const v1::ListModelsRequest& request, v1::ListModelsResponse* response, const CallContext& call);

 private:
  Engine& engine_;
};

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_HANDLERS_CATALOG_HANDLERS_H_
