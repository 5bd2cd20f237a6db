// Rows of tests/data/models.jsonl.
#ifndef SLICEPLAN_TESTS_TRANSFORMER_MODEL_TABLE_H_
#define SLICEPLAN_TESTS_TRANSFORMER_MODEL_TABLE_H_

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "absl/strings/string_view.h"
#include "server/transformer/architecture.h"

namespace sliceplan::transformer {

struct ModelRow {
  std::string name;
  std::string config_text;
  nlohmann::json row;

  std::optional<int64_t> Number(const char* key) const;
  // Sum of the published parts of these kinds.
  int64_t PartSum(std::initializer_list<absl::string_view> kinds) const;
  bool IsRefused() const { return row.contains("refused"); }
};

// How GoogleTest shows a row.
inline void PrintTo(const ModelRow& row, std::ostream* out) { *out << row.name; }

// All lines of a JSON-lines file under tests/data.
std::vector<nlohmann::json> ReadLines(const std::string& file);

const std::vector<ModelRow>& AllModels();
// Fails the test when the table has no such row.
const ModelRow& ModelNamed(absl::string_view name);

// Fails the test when the import does.
Architecture Imported(const std::string& config_text);

// A row's name as GoogleTest allows it in a test's name.
std::string TestName(absl::string_view name);

}  // namespace sliceplan::transformer

#endif  // SLICEPLAN_TESTS_TRANSFORMER_MODEL_TABLE_H_
