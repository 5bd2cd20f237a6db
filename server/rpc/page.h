// Pages of filtered lists (AIP-158, AIP-160).
#ifndef SLICEPLAN_SERVER_RPC_PAGE_H_
#define SLICEPLAN_SERVER_RPC_PAGE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "server/catalog/filter.h"
#include "server/catalog/message_filter.h"
#include "server/rpc/field_path.h"
#include "server/rpc/violations.h"

namespace sliceplan::rpc {

inline constexpr int32_t kDefaultPageSize = 50;
inline constexpr int32_t kMaxPageSize = 500;

// Where a page starts. The token that carries it holds for one list, filter and catalog, and callers cannot make one up
// by accident: it has a checksum.
std::string MakePageToken(absl::string_view list, absl::string_view filter, absl::string_view catalog_version,
                          size_t offset);
std::optional<size_t> ReadPageToken(absl::string_view token, absl::string_view list, absl::string_view filter,
                                    absl::string_view catalog_version);

// What a list request asks for.
struct PageQuery {
  catalog::Filter filter;
  size_t offset = 0;
  size_t size = kDefaultPageSize;
};

// nullopt with violations under `path`. `Request` has filter, page_size and page_token; `item` describes the list's
// items.
template <typename Request>
std::optional<PageQuery> ToPageQuery(const Request& request, const google::protobuf::Descriptor& item,
                                     absl::string_view catalog_version, const FieldPath& path, Violations& violations);

// Adds the items of the page to `page`; returns how many match in all.
template <typename Item, typename Page>
size_t FillPage(const std::vector<Item>& items, const PageQuery& query, Page* page);

// ---- Implementation ----

std::optional<PageQuery> MakePageQuery(const std::string& filter, int32_t page_size, const std::string& page_token,
                                       const google::protobuf::Descriptor& item, absl::string_view catalog_version,
                                       const FieldPath& path, Violations& violations);

template <typename Request>
std::optional<PageQuery> ToPageQuery(const Request& request, const google::protobuf::Descriptor& item,
                                     absl::string_view catalog_version, const FieldPath& path, Violations& violations) {
  return MakePageQuery(request.filter(), request.page_size(), request.page_token(), item, catalog_version, path,
                       violations);
}

template <typename Item, typename Page>
size_t FillPage(const std::vector<Item>& items, const PageQuery& query, Page* page) {
  size_t count = 0;
  for (const Item& item : items) {
    if (!catalog::MatchesFilter(query.filter, item)) continue;
    if (count >= query.offset && count - query.offset < query.size) *page->Add() = item;
    ++count;
  }
  return count;
}

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_PAGE_H_
