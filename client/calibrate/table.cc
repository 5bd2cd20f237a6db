#include "client/calibrate/table.h"

#include <csv.h>

#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace sliceplan::calibrate {
namespace {

struct Line {
  size_t number = 0;  // in the file, from 1
  std::vector<std::string> fields;
};

// What the parser's callbacks fill in.
struct Lines {
  std::vector<Line> lines;
  Line open;
  size_t number = 1;  // that the parser is in
};

void EndField(void* field, size_t size, void* lines_pointer) {
  Lines& lines = *static_cast<Lines*>(lines_pointer);
  if (lines.open.fields.empty()) lines.open.number = lines.number;
  lines.open.fields.emplace_back(static_cast<const char*>(field), size);
}

void EndLine(int /*terminator*/, void* lines_pointer) {
  Lines& lines = *static_cast<Lines*>(lines_pointer);
  lines.lines.push_back(std::move(lines.open));
  lines.open = Line();
}

struct ParserCleanup {
  void operator()(csv_parser* parser) const { csv_free(parser); }
};

// The remarks are gone: an apostrophe or a quote in one opens nothing.
absl::StatusOr<std::vector<Line>> ParseLines(absl::string_view text) {
  csv_parser parser;
  if (csv_init(&parser, CSV_STRICT | CSV_STRICT_FINI) != 0)
    return absl::ResourceExhaustedError("No memory to read a table.");
  const std::unique_ptr<csv_parser, ParserCleanup> cleanup(&parser);
  Lines lines;
  size_t record_line = 1;  // where the record begins that the parser is in
  const auto fault = [&](absl::string_view what) {
    const bool is_parse = csv_error(&parser) == CSV_EPARSE;
    return absl::InvalidArgumentError(
        absl::StrCat("Line ", record_line, ": ", is_parse ? what : csv_strerror(csv_error(&parser)), "."));
  };
  // Line by line, because the parser does not count them.
  bool in_record = false;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    const absl::string_view line = text.substr(0, end);
    text.remove_prefix(end);
    if (in_record || line[0] != '#') {
      const size_t before = lines.lines.size();
      if (!in_record) record_line = lines.number;
      if (csv_parse(&parser, line.data(), line.size(), EndField, EndLine, &lines) != line.size()) {
        return fault(
            absl::StrCat("at line ", lines.number, " a quote is neither doubled (\"\") nor at an end of its field"));
      }
      in_record = line != "\n" && line != "\r\n" ? lines.lines.size() == before : in_record;
    }
    if (!text.empty()) ++lines.number;
  }
  if (csv_fini(&parser, EndField, EndLine, &lines) != 0) return fault("a quote that opens here is never closed");
  return std::move(lines.lines);
}

}  // namespace

absl::string_view Row::Text(absl::string_view column) const {
  const auto found = columns_->find(column);
  return found == columns_->end() ? absl::string_view() : absl::StripAsciiWhitespace(fields_[found->second]);
}

std::optional<double> Row::Number(absl::string_view column) const {
  double number = 0;
  if (!absl::SimpleAtod(Text(column), &number) || !std::isfinite(number)) return std::nullopt;
  return number;
}

std::optional<int64_t> Row::Count(absl::string_view column) const {
  const std::optional<double> number = Number(column);
  constexpr double kMostExact = 9007199254740992.0;  // 2^53
  if (!number || std::floor(*number) != *number || std::abs(*number) > kMostExact) return std::nullopt;
  return static_cast<int64_t>(*number);
}

std::optional<absl::string_view> Row::Token(absl::string_view column, absl::string_view name) const {
  for (absl::string_view token : absl::StrSplit(Text(column), ';')) {
    const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(token, absl::MaxSplits('=', 1));
    if (absl::StripAsciiWhitespace(parts.first) == name) return absl::StripAsciiWhitespace(parts.second);
  }
  return std::nullopt;
}

absl::StatusOr<Table> Table::Parse(absl::string_view text) {
  absl::StatusOr<std::vector<Line>> lines = ParseLines(text);
  if (!lines.ok()) return lines.status();
  std::shared_ptr<Columns> shared;
  Table table;
  for (Line& line : *lines) {
    if (shared == nullptr) {
      shared = std::make_shared<Columns>();
      for (size_t i = 0; i < line.fields.size(); ++i) {
        if (!shared->emplace(absl::StripAsciiWhitespace(line.fields[i]), i).second)
          return absl::InvalidArgumentError(absl::StrCat("The column ", line.fields[i], " is there twice."));
      }
      table.columns_ = shared;
      continue;
    }
    if (line.fields.size() != shared->size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("Line ", line.number, " has ", line.fields.size(), " fields, the header ", shared->size(), "."));
    }
    table.rows_.emplace_back(shared.get(), std::move(line.fields), line.number);
  }
  if (shared == nullptr) return absl::InvalidArgumentError("The table has no header.");
  return table;
}

}  // namespace sliceplan::calibrate
