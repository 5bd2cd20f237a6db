// A scatter plot in characters.
#ifndef SLICEPLAN_CLIENT_CLI_FRONTIER_PLOT_H_
#define SLICEPLAN_CLIENT_CLI_FRONTIER_PLOT_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace sliceplan::cli {

struct PlotPoint {
  double x = 0;
  double y = 0;
  char mark = '*';  // of points on one spot the last one shows
};

struct PlotAxis {
  std::string name;
  std::function<std::string(double)> text;  // of a value
};

// Lines of the plot with labelled axes, y from 0 at the bottom, x from the least to the largest. `rows` and `columns`
// are those of the field of points. Nothing for fewer than two points or values that are not positive and finite.
std::vector<std::string> Plot(const std::vector<PlotPoint>& points, const PlotAxis& x_axis, const PlotAxis& y_axis,
                              size_t rows, size_t columns);

}  // namespace sliceplan::cli

#endif  // SLICEPLAN_CLIENT_CLI_FRONTIER_PLOT_H_
