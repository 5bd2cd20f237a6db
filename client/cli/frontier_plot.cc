#include "client/cli/frontier_plot.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace sliceplan::cli {
namespace {

// Index of `share` of the way along `size` cells.
size_t Cell(double share, size_t size) {
  return static_cast<size_t>(std::lround(std::clamp(share, 0.0, 1.0) * static_cast<double>(size - 1)));
}

std::string RightAligned(const std::string& text, size_t width) {
  return absl::StrCat(std::string(width - std::min(width, text.size()), ' '), text);
}

}  // namespace

std::vector<std::string> Plot(const std::vector<PlotPoint>& points, const PlotAxis& x_axis, const PlotAxis& y_axis,
                              size_t rows, size_t columns) {
  const bool drawable = std::all_of(points.begin(), points.end(), [](const PlotPoint& point) {
    return std::isfinite(point.x) && std::isfinite(point.y) && point.x > 0 && point.y > 0;
  });
  if (points.size() < 2 || !drawable || rows < 2 || columns < 2) return {};
  double least_x = points[0].x;
  double most_x = points[0].x;
  double most_y = points[0].y;
  for (const PlotPoint& point : points) {
    least_x = std::min(least_x, point.x);
    most_x = std::max(most_x, point.x);
    most_y = std::max(most_y, point.y);
  }
  std::vector<std::string> field(rows, std::string(columns, ' '));
  const double width = most_x - least_x;
  for (const PlotPoint& point : points) {
    const size_t column = Cell(width > 0 ? (point.x - least_x) / width : 0, columns);
    field[rows - 1 - Cell(point.y / most_y, rows)][column] = point.mark;
  }
  const std::string top = y_axis.text(most_y);
  const std::string middle = y_axis.text(most_y / 2);
  const size_t label_columns = std::max({top.size(), middle.size(), size_t{1}});
  std::vector<std::string> lines = {y_axis.name};
  for (size_t row = 0; row < rows; ++row) {
    const std::string label = row == 0 ? top : row == rows / 2 ? middle : row + 1 == rows ? "0" : "";
    lines.push_back(std::string(
        absl::StripTrailingAsciiWhitespace(absl::StrCat(RightAligned(label, label_columns), " |", field[row]))));
  }
  lines.push_back(absl::StrCat(std::string(label_columns + 1, ' '), "+", std::string(columns, '-')));
  const std::string left = x_axis.text(least_x);
  const std::string right = x_axis.text(most_x);
  const size_t taken = left.size() + right.size() + x_axis.name.size();
  const size_t gap = columns > taken ? (columns - taken) / 2 : 1;
  lines.push_back(absl::StrCat(std::string(label_columns + 2, ' '), left, std::string(gap, ' '), x_axis.name,
                               std::string(gap, ' '), right));
  return lines;
}

}  // namespace sliceplan::cli
