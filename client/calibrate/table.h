// A measured table: comma-separated text (RFC 4180 quotes) whose first line names the columns.
#ifndef SLICEPLAN_CLIENT_CALIBRATE_TABLE_H_
#define SLICEPLAN_CLIENT_CALIBRATE_TABLE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sliceplan::calibrate {

using Columns = absl::flat_hash_map<std::string, size_t>;

// One line. Valid as long as its table is.
class Row {
 public:
  Row(const Columns* columns, std::vector<std::string> fields, size_t line)
      : columns_(columns), fields_(std::move(fields)), line_(line) {}

  // In its file, from 1.
  size_t line() const { return line_; }

  // The field without blanks around it; empty when the table has no such column.
  absl::string_view Text(absl::string_view column) const;
  // Absent when the field is empty or no finite number.
  std::optional<double> Number(absl::string_view column) const;
  // Absent when the field is empty, no number, or not whole.
  std::optional<int64_t> Count(absl::string_view column) const;
  // The value of a "name=value" token of a column whose tokens are separated by semicolons ("conv=6N;peak_tflops=989");
  // absent when there is none. A token without "=" has the value "".
  std::optional<absl::string_view> Token(absl::string_view column, absl::string_view name) const;

 private:
  const Columns* columns_;
  std::vector<std::string> fields_;
  size_t line_;
};

class Table {
 public:
  // INVALID_ARGUMENT: no header, a column named twice, a line with another number of fields, an unclosed quote. Lines
  // that begin with # are remarks.
  static absl::StatusOr<Table> Parse(absl::string_view text);

  bool Has(absl::string_view column) const { return columns_->contains(column); }
  const std::vector<Row>& rows() const { return rows_; }

 private:
  std::shared_ptr<const Columns> columns_;
  std::vector<Row> rows_;
};

}  // namespace sliceplan::calibrate

#endif  // SLICEPLAN_CLIENT_CALIBRATE_TABLE_H_
