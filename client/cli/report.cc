#include "client/cli/report.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/text.h"

namespace sliceplan::cli {
namespace {

constexpr size_t kLabelColumns = 13;
constexpr size_t kIndent = 2;
constexpr size_t kBarColumns = 24;
constexpr size_t kGap = 2;
// Columns of text are not cut below this.
constexpr size_t kMinTextColumns = 12;

absl::string_view EscapeOf(Tone tone) {
  switch (tone) {
    case Tone::kPlain: return "";
    case Tone::kStrong: return "\033[1m";
    case Tone::kGood: return "\033[1;32m";
    case Tone::kBad: return "\033[1;31m";
    case Tone::kFaint: return "\033[2m";
  }
  return "";
}

// Columns on screen: characters, not bytes.
size_t Width(absl::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string Padded(absl::string_view text, size_t width, bool right) {
  const std::string padding(width - std::min(width, Width(text)), ' ');
  return right ? absl::StrCat(padding, text) : absl::StrCat(text, padding);
}

// Cut to `width` columns, with dots where something is missing.
std::string Cut(const std::string& text, size_t width) {
  if (Width(text) <= width) return text;
  std::string cut;
  for (size_t i = 0; i < text.size(); ++i) {
    if ((text[i] & 0xc0) != 0x80 && Width(cut) + 2 >= width) break;
    cut += text[i];
  }
  return absl::StrCat(cut, "..");
}

}  // namespace

std::string Report::Painted(absl::string_view text, Tone tone) const {
  if (!style_.color || tone == Tone::kPlain) return std::string(text);
  return absl::StrCat(EscapeOf(tone), text, "\033[0m");
}

void Report::Headline(absl::string_view verdict, Tone tone, absl::string_view text) {
  const std::string before = verdict.empty() ? "" : absl::StrCat(verdict, "  ");
  const std::vector<std::string> lines = Wrap(text, style_.columns - before.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string start = i == 0 ? Painted(before, tone) : std::string(before.size(), ' ');
    out_ << start << Painted(lines[i], Tone::kStrong) << '\n';
  }
}

void Report::EmptyLine() { out_ << '\n'; }

void Report::Section(absl::string_view heading) { out_ << '\n' << Painted(heading, Tone::kStrong) << '\n'; }

void Report::Row(absl::string_view label, absl::string_view text) {
  const size_t start = kIndent + kLabelColumns;
  std::string before = absl::StrCat(std::string(kIndent, ' '), Padded(label, kLabelColumns - 1, /*right=*/false), " ");
  for (const std::string& line : Wrap(text, style_.columns - start)) {
    out_ << before << line << '\n';
    before.assign(start, ' ');
  }
}

void Report::Item(absl::string_view text) {
  std::string before = "  - ";
  for (const std::string& line : Wrap(text, style_.columns - before.size())) {
    out_ << before << line << '\n';
    before.assign(before.size(), ' ');
  }
}

void Report::Sentence(absl::string_view text, Tone tone) {
  for (const std::string& line : Wrap(text, style_.columns - kIndent)) {
    out_ << std::string(kIndent, ' ') << Painted(line, tone) << '\n';
  }
}

void Report::Lines(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) out_ << std::string(kIndent, ' ') << line << '\n';
}

void Report::Table(const std::vector<Column>& columns, const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  std::vector<std::vector<std::string>> headings;
  size_t heading_lines = 0;
  for (const Column& column : columns) {
    headings.push_back(absl::StrSplit(column.heading, '\n'));
    heading_lines = std::max(heading_lines, headings.back().size());
    widths.push_back(0);
    for (const std::string& line : headings.back()) widths.back() = std::max(widths.back(), Width(line));
  }
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size() && i < widths.size(); ++i) widths[i] = std::max(widths[i], Width(row[i]));
  }
  const auto total = [&] {
    size_t sum = kIndent + kGap * (widths.size() - 1);
    for (const size_t width : widths) sum += width;
    return sum;
  };
  while (total() > style_.columns) {
    size_t widest = widths.size();
    for (size_t i = 0; i < widths.size(); ++i) {
      const bool shrinks = !columns[i].right && widths[i] > kMinTextColumns;
      if (shrinks && (widest == widths.size() || widths[i] > widths[widest])) widest = i;
    }
    if (widest == widths.size()) break;
    --widths[widest];
  }
  const auto print = [&](const std::vector<std::string>& cells, Tone tone) {
    std::string line(kIndent, ' ');
    for (size_t i = 0; i < cells.size() && i < widths.size(); ++i) {
      if (i > 0) line.append(kGap, ' ');
      line += Padded(Cut(cells[i], widths[i]), widths[i], columns[i].right);
    }
    out_ << Painted(absl::StripTrailingAsciiWhitespace(line), tone) << '\n';
  };
  if (std::any_of(columns.begin(), columns.end(), [](const Column& column) { return !column.heading.empty(); })) {
    for (size_t left = heading_lines; left > 0; --left) {
      // The last lines stand side by side.
      std::vector<std::string> cells;
      for (const auto& lines : headings) cells.push_back(left > lines.size() ? "" : lines[lines.size() - left]);
      print(cells, Tone::kFaint);
    }
  }
  for (const auto& row : rows) print(row, Tone::kPlain);
}

std::string Report::Bar(double share) {
  if (!(share > 0)) return "";
  const double length = std::min(share, 1.0) * static_cast<double>(kBarColumns);
  // What is there at all shows.
  return std::string(std::max<size_t>(1, static_cast<size_t>(std::lround(length))), '#');
}

}  // namespace sliceplan::cli
