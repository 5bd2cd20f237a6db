// Filters of list requests, in the style of AIP-160 (google.aip.dev/160):
//
//   accelerator="tpu-v5p" AND (chip_count>=64 OR topology="2x2x1") AND NOT multi_host=true
//
// AND, OR and NOT in capitals, `-` for NOT; OR binds tighter than AND, terms side by side are joined by AND. Operators:
// =, !=, <,
// <=, >, >=, and `:` ("has": text contains, a repeated field has the element, `field:*` is set). Values are numbers,
// true, false, bare words or text in single or double quotes (backslash escapes the next character); `*` in text after
// = and != stands for any characters. Text is compared without regard to case. On a repeated field, = and the orders
// ask whether any element fits, != whether none is equal. A field that is not set fits no comparison but !=.
#ifndef SLICEPLAN_SERVER_CATALOG_FILTER_H_
#define SLICEPLAN_SERVER_CATALOG_FILTER_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sliceplan::catalog {

inline constexpr size_t kMaxFilterLength = 2048;
inline constexpr size_t kMaxFilterTerms = 64;
inline constexpr size_t kMaxFilterDepth = 16;

// One value of a field. Text views need to live only during the call that receives them.
using FieldValue = std::variant<bool, double, absl::string_view>;

// Calls its second argument with each value of the field that the path names ("topology", "spec.hbm_bytes"): none when
// it is not set, several when it is repeated.
using FieldReader = absl::FunctionRef<void(absl::string_view path, absl::FunctionRef<void(const FieldValue&)> value)>;

// The types that a field can have in a filter.
enum class FieldType { kBool, kNumber, kText };

class Filter {
 public:
  // Empty or blank text matches everything. INVALID_ARGUMENT says what is wrong and at which character (from 1).
  static absl::StatusOr<Filter> Parse(absl::string_view text);

  Filter();  // matches everything
  Filter(Filter&&) noexcept;
  Filter& operator=(Filter&&) noexcept;
  ~Filter();

  // The type of a field; INVALID_ARGUMENT for an unknown one, and for a `value` that the field can never have. `value`
  // is empty where the filter asks for none by name, and in lower case.
  using TypeOf = absl::FunctionRef<absl::StatusOr<FieldType>(absl::string_view path, absl::string_view value)>;
  // Checks that every field exists and that its value fits its type.
  absl::Status Check(TypeOf type_of) const;

  // Puts other text in place of what the filter asks for by name: the id for an alias. nullopt: stays.
  using Replacement = absl::FunctionRef<std::optional<std::string>(absl::string_view path, absl::string_view text)>;
  void Replace(Replacement replacement);

  bool Matches(FieldReader read) const;

  struct Node;

 private:
  std::unique_ptr<Node> root_;  // nullptr: matches everything
};

}  // namespace sliceplan::catalog

#endif  // SLICEPLAN_SERVER_CATALOG_FILTER_H_
