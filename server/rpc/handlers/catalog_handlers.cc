#include "server/rpc/handlers/catalog_handlers.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/rpc/catalog_lists.h"
#include "server/rpc/field_path.h"
#include "server/rpc/page.h"
#include "server/rpc/version.h"
#include "server/rpc/violations.h"

namespace sliceplan::rpc {
namespace {

// One page of `items` into the repeated field `page` of `response`.
template <typename Item, typename Request, typename Response, typename Page>
Result List(const Request& request, const CatalogLists& lists, const std::vector<Item>& items, Response* response,
            Page* page) {
  const std::string& version = lists.catalog().version();
  const google::protobuf::Descriptor& type = *Item::descriptor();
  Violations violations;
  std::optional<PageQuery> query = ToPageQuery(request, type, version, FieldPath(), violations);
  if (!query.has_value()) return violations.ToResult();
  const absl::string_view id_field = type.name() == "Accelerator" ? "id" : "accelerator";
  query->filter.Replace([&](absl::string_view path, absl::string_view text) -> std::optional<std::string> {
    if (path != id_field) return std::nullopt;
    const catalog::Accelerator* const named = lists.catalog().FindAccelerator(text).accelerator;
    return named == nullptr ? std::nullopt : std::optional<std::string>(named->record.id());
  });
  const size_t total_count = FillPage(items, *query, page);
  const size_t next = query->offset + static_cast<size_t>(page->size());
  if (next < total_count) {
    response->set_next_page_token(MakePageToken(type.full_name(), request.filter(), version, next));
  }
  response->set_total_count(static_cast<int32_t>(total_count));
  response->set_engine_version(EngineVersion());
  response->set_catalog_version(version);
  return Result();
}

}  // namespace

Result CatalogHandlers::ListAccelerators(const v1::ListAcceleratorsRequest& request,
                                         v1::ListAcceleratorsResponse* response, const CallContext&) {
  const auto lists = engine_.lists.Of(engine_.catalogs.Snapshot());
  return List(request, *lists, lists->Accelerators(), response, response->mutable_accelerators());
}

Result CatalogHandlers::ListSlices(const v1::ListSlicesRequest& request, v1::ListSlicesResponse* response,
                                   const CallContext&) {
  const auto lists = engine_.lists.Of(engine_.catalogs.Snapshot());
  return List(request, *lists, lists->Slices(), response, response->mutable_slices());
}

Result CatalogHandlers::ListPrices(const v1::ListPricesRequest& request, v1::ListPricesResponse* response,
                                   const CallContext&) {
  const auto lists = engine_.lists.Of(engine_.catalogs.Snapshot());
  return List(request, *lists, lists->Prices(), response, response->mutable_prices());
}

Result CatalogHandlers::ListModels(const v1::ListModelsRequest& request, v1::ListModelsResponse* response,
                                   const CallContext&) {
  const auto lists = engine_.lists.Of(engine_.catalogs.Snapshot());
  return List(request, *lists, lists->Models(engine_.models), response, response->mutable_models());
}

}  // namespace sliceplan::rpc
