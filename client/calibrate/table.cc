#include "client/calibrate/table.h"

#include <csv.h>

#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace sliceplan::calibrate {
namespace {

// What the parser's callbacks fill in.
struct Lines {
  std::vector<std::vector<std::string>> lines;
  std::vector<std::string> open;
};

void EndField(void* field, size_t size, void* lines) {
  static_cast<Lines*>(lines)->open.emplace_back(static_cast<const char*>(field), size);
}

void EndLine(int /*terminator*/, void* lines_pointer) {
  Lines& lines = *static_cast<Lines*>(lines_pointer);
  lines.lines.push_back(std::move(lines.open));
  lines.open.clear();
}

struct ParserCleanup {
  void operator()(csv_parser* parser) const { csv_free(parser); }
};

absl::StatusOr<std::vector<std::vector<std::string>>> ParseLines(absl::string_view text) {
  csv_parser parser;
  if (csv_init(&parser, CSV_STRICT | CSV_STRICT_FINI) != 0)
    return absl::ResourceExhaustedError("No memory to read a table.");
  const std::unique_ptr<csv_parser, ParserCleanup> cleanup(&parser);
  Lines lines;
  if (csv_parse(&parser, text.data(), text.size(), EndField, EndLine, &lines) != text.size() ||
      csv_fini(&parser, EndField, EndLine, &lines) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("Line ", lines.lines.size() + 1, ": ", csv_strerror(csv_error(&parser)), "."));
  }
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
  absl::StatusOr<std::vector<std::vector<std::string>>> lines = ParseLines(text);
  if (!lines.ok()) return lines.status();
  std::shared_ptr<Columns> shared;
  Table table;
  size_t line_number = 0;
  for (std::vector<std::string>& fields : *lines) {
    ++line_number;
    if (absl::StartsWith(fields[0], "#")) continue;
    if (shared == nullptr) {
      shared = std::make_shared<Columns>();
      for (size_t i = 0; i < fields.size(); ++i) {
        if (!shared->emplace(absl::StripAsciiWhitespace(fields[i]), i).second) {
          return absl::InvalidArgumentError(absl::StrCat("The column ", fields[i], " is there twice."));
        }
      }
      table.columns_ = shared;
      continue;
    }
    if (fields.size() != shared->size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("Line ", line_number, " has ", fields.size(), " fields, the header ", shared->size(), "."));
    }
    table.rows_.emplace_back(shared.get(), std::move(fields));
  }
  if (shared == nullptr) return absl::InvalidArgumentError("The table has no header.");
  return table;
}

}  // namespace sliceplan::calibrate
