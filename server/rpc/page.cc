#include "server/rpc/page.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace sliceplan::rpc {
namespace {

constexpr size_t kMaxTokenBytes = 256;

// FNV-1a of 64 bits: the same on every replica and in every release, unlike absl::Hash.
uint64_t Fingerprint(absl::string_view text) {
  constexpr uint64_t kOffset = 14695981039346656037u;
  constexpr uint64_t kPrime = 1099511628211u;
  uint64_t hash = kOffset;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * kPrime;
  return hash;
}

std::string ScopeOf(absl::string_view list, absl::string_view filter, absl::string_view catalog_version,
                    size_t offset) {
  const std::string scope = absl::StrCat(list, "\n", catalog_version, "\n", offset, "\n", filter);
  return absl::StrCat(absl::Hex(Fingerprint(scope), absl::kZeroPad16));
}

}  // namespace

std::string MakePageToken(absl::string_view list, absl::string_view filter, absl::string_view catalog_version,
                          size_t offset) {
  return absl::WebSafeBase64Escape(absl::StrCat(offset, ".", ScopeOf(list, filter, catalog_version, offset)));
}

std::optional<size_t> ReadPageToken(absl::string_view token, absl::string_view list, absl::string_view filter,
                                    absl::string_view catalog_version) {
  std::string text;
  if (token.size() > kMaxTokenBytes || !absl::WebSafeBase64Unescape(token, &text)) return std::nullopt;
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '.');
  uint64_t offset = 0;
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &offset)) return std::nullopt;
  if (parts[1] != ScopeOf(list, filter, catalog_version, offset)) return std::nullopt;
  return offset;
}

std::optional<PageQuery> MakePageQuery(const std::string& filter, int32_t page_size, const std::string& page_token,
                                       const google::protobuf::Descriptor& item, absl::string_view catalog_version,
                                       const FieldPath& path, Violations& violations) {
  PageQuery query;
  bool legal = true;
  if (page_size < 0) {
    violations.Add(FieldPath(path, "page_size"), absl::StrCat("must not be negative; it is ", page_size, "."),
                   "OUT_OF_RANGE");
    legal = false;
  } else if (page_size > 0) {
    query.size = static_cast<size_t>(std::min(page_size, kMaxPageSize));
  }
  absl::StatusOr<catalog::Filter> parsed = catalog::Filter::Parse(filter);
  absl::Status status = parsed.status();
  if (status.ok()) status = catalog::CheckFilter(*parsed, item);
  if (!status.ok()) {
    violations.Add(FieldPath(path, "filter"), std::string(status.message()), "INVALID_FILTER");
    legal = false;
  } else {
    query.filter = *std::move(parsed);
  }
  if (!page_token.empty()) {
    const std::optional<size_t> offset = ReadPageToken(page_token, item.full_name(), filter, catalog_version);
    if (!offset.has_value()) {
      violations.Add(FieldPath(path, "page_token"),
                     "is not a token of this list, filter and catalog version; start again without one.",
                     "INVALID_PAGE_TOKEN");
      legal = false;
    } else {
      query.offset = *offset;
    }
  }
  if (!legal) return std::nullopt;
  return query;
}

}  // namespace sliceplan::rpc
