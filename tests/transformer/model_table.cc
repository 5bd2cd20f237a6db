#include "tests/transformer/model_table.h"

#include <algorithm>
#include <fstream>

#include "absl/strings/ascii.h"
#include "gtest/gtest.h"
#include "server/transformer/hugging_face/import.h"

namespace sliceplan::transformer {

std::optional<int64_t> ModelRow::Number(const char* key) const {
  const auto place = row.find(key);
  if (place == row.end()) return std::nullopt;
  return place->get<int64_t>();
}

int64_t ModelRow::PartSum(std::initializer_list<absl::string_view> kinds) const {
  int64_t sum = 0;
  const auto parts = row.find("published_parts");
  if (parts == row.end()) return 0;
  for (const nlohmann::json& part : *parts) {
    const std::string kind = part.at("kind");
    if (std::find(kinds.begin(), kinds.end(), kind) != kinds.end()) sum += part.at("count").get<int64_t>();
  }
  return sum;
}

std::vector<nlohmann::json> ReadLines(const std::string& file) {
  std::ifstream stream(std::string(SLICEPLAN_TEST_DATA_DIR) + "/" + file);
  EXPECT_TRUE(stream.good()) << file;
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty()) lines.push_back(nlohmann::json::parse(line));
  }
  return lines;
}

const std::vector<ModelRow>& AllModels() {
  static const std::vector<ModelRow>* const models = [] {
    auto* rows = new std::vector<ModelRow>;
    for (nlohmann::json& line : ReadLines("models.jsonl")) {
      ModelRow row;
      row.name = line.at("name");
      row.config_text = line.at("hf_config").dump();
      row.row = std::move(line);
      rows->push_back(std::move(row));
    }
    return rows;
  }();
  return *models;
}

const ModelRow& ModelNamed(absl::string_view name) {
  for (const ModelRow& row : AllModels()) {
    if (row.name == name) return row;
  }
  ADD_FAILURE() << "no model named " << name;
  return AllModels().front();
}

Architecture Imported(const std::string& config_text) {
  const ImportResult result = ImportHuggingFaceConfig(config_text);
  for (const hardware::Violation& violation : result.violations) {
    ADD_FAILURE() << violation.field << ": " << violation.description;
  }
  return result.model ? result.model->architecture : Architecture();
}

std::string TestName(absl::string_view name) {
  std::string test_name;
  for (const char c : name) test_name += absl::ascii_isalnum(c) ? c : '_';
  return test_name;
}

}  // namespace sliceplan::transformer
