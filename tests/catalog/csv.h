// Rows of a small table under tests/data: comment lines with #, then a header, no quotes, no commas in fields.
#ifndef SLICEPLAN_TESTS_CATALOG_CSV_H_
#define SLICEPLAN_TESTS_CATALOG_CSV_H_

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"

namespace sliceplan::catalog {

using CsvRow = std::map<std::string, std::string>;

inline std::vector<CsvRow> ReadCsv(const std::string& name) {
  std::ifstream stream(std::string(SLICEPLAN_TEST_DATA_DIR) + "/" + name);
  EXPECT_TRUE(stream.good()) << name;
  std::vector<std::string> header;
  std::vector<CsvRow> rows;
  for (std::string line; std::getline(stream, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::vector<std::string> fields = absl::StrSplit(line, ',');
    if (header.empty()) {
      header = fields;
      continue;
    }
    EXPECT_EQ(fields.size(), header.size()) << line;
    CsvRow row;
    for (size_t i = 0; i < header.size() && i < fields.size(); ++i) row[header[i]] = fields[i];
    rows.push_back(row);
  }
  return rows;
}

}  // namespace sliceplan::catalog

#endif  // SLICEPLAN_TESTS_CATALOG_CSV_H_
