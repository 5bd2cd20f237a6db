#include "server/catalog/near_names.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace sliceplan::catalog {
namespace {

// Longer names are not compared: nobody types them, and the cost grows with the product of the lengths.
constexpr size_t kMaxComparedLength = 128;
constexpr size_t kShortestContained = 2;

}  // namespace

std::string NormalizeName(absl::string_view name) {
  std::string normal = absl::AsciiStrToLower(absl::StripAsciiWhitespace(name));
  std::replace(normal.begin(), normal.end(), ' ', '-');
  std::replace(normal.begin(), normal.end(), '_', '-');
  return normal;
}

size_t EditDistance(absl::string_view a, absl::string_view b, size_t limit) {
  const size_t longer = std::max(a.size(), b.size());
  if (longer - std::min(a.size(), b.size()) > limit) return limit + 1;
  // Rows of the table for the last two, and the current, prefix of `a`.
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return std::min(last[b.size()], limit + 1);
}

std::vector<std::string> NearNames(absl::string_view name, absl::Span<const absl::string_view> names,
                                   size_t max_count) {
  std::vector<std::string> near;
  const std::string wanted = NormalizeName(name);
  if (wanted.empty() || wanted.size() > kMaxComparedLength) return near;

  struct Candidate {
    bool contains = false;
    size_t distance = 0;
    size_t index = 0;
  };
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string other = NormalizeName(names[i]);
    if (other.empty() || other.size() > kMaxComparedLength) continue;
    const size_t limit = std::max(wanted.size(), other.size()) / 3;
    const size_t distance = EditDistance(wanted, other, limit);
    if (distance <= limit) {
      candidates.push_back({false, distance, i});
    } else if (std::min(wanted.size(), other.size()) >= kShortestContained &&
               (absl::StrContains(other, wanted) || absl::StrContains(wanted, other))) {
      const size_t lengths_apart = std::max(wanted.size(), other.size()) - std::min(wanted.size(), other.size());
      candidates.push_back({true, lengths_apart, i});
    }
  }
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return std::tie(a.contains, a.distance, a.index) < std::tie(b.contains, b.distance, b.index);
  });
  for (const Candidate& candidate : candidates) {
    if (near.size() == max_count) break;
    const absl::string_view found = names[candidate.index];
    if (std::find(near.begin(), near.end(), found) == near.end()) near.emplace_back(found);
  }
  return near;
}

std::string DidYouMean(absl::Span<const std::string> near_names) {
  std::string text;
  for (size_t i = 0; i < near_names.size(); ++i) {
    absl::StrAppend(&text,
                    i == 0                       ? "; did you mean "
                    : i + 1 == near_names.size() ? " or "
                                                 : ", ",
                    "\"", near_names[i], "\"");
  }
  if (!text.empty()) text.push_back('?');
  return text;
}

std::string Quoted(absl::string_view name) {
  constexpr size_t kMaxQuoted = 80;
  return absl::StrCat("\"", name.substr(0, kMaxQuoted), name.size() > kMaxQuoted ? "..." : "", "\"");
}

}  // namespace sliceplan::catalog
