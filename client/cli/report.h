// What an answer looks like: a headline, labelled lines, tables and lists, at most 100 columns wide, plain unless the
// output is a terminal.
#ifndef SLICEPLAN_CLIENT_CLI_REPORT_H_
#define SLICEPLAN_CLIENT_CLI_REPORT_H_

#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace sliceplan::cli {

inline constexpr size_t kMaxColumns = 100;

struct Style {
  size_t columns = kMaxColumns;
  bool color = false;
};

enum class Tone { kPlain, kStrong, kGood, kBad, kFaint };

struct Column {
  std::string heading;  // lines are separated by \n
  bool right = false;   // numbers
};

class Report {
 public:
  Report(std::ostream* out, const Style& style) : out_(*out), style_(style) {}

  // The first line, with a verdict before it where there is one.
  void Headline(absl::string_view verdict, Tone tone, absl::string_view text);
  void EmptyLine();
  // A heading after an empty line.
  void Section(absl::string_view heading);
  // "label      text", wrapped; an empty label continues the one before.
  void Row(absl::string_view label, absl::string_view text);
  // "- text", wrapped.
  void Item(absl::string_view text);
  // A sentence, wrapped.
  void Sentence(absl::string_view text, Tone tone = Tone::kPlain);
  // Lines as they are: a drawing.
  void Lines(const std::vector<std::string>& lines);
  // Columns as wide as needed; the widest columns of text give way when the table is too wide.
  void Table(const std::vector<Column>& columns, const std::vector<std::vector<std::string>>& rows);

  // "########      " of a share between 0 and 1.
  static std::string Bar(double share);

 private:
  std::string Painted(absl::string_view text, Tone tone) const;

  std::ostream& out_;
  const Style style_;
};

}  // namespace sliceplan::cli

#endif  // SLICEPLAN_CLIENT_CLI_REPORT_H_
