// Charts of predictions beside measurements, as SVG.
#ifndef SLICEPLAN_SERVER_CALIBRATION_SVG_CHART_H_
#define SLICEPLAN_SERVER_CALIBRATION_SVG_CHART_H_

#include <string>
#include <vector>

namespace sliceplan::calibration {

// One figure of a chart. Both values are above 0 and in one unit.
struct ChartPoint {
  double measured = 0;
  double predicted = 0;
  std::string series;  // colour, shape and line of the legend: the chip
  std::string row;     // line of the residual chart: the source
  std::string label;   // shown, with the values, when a pointer rests on the mark; empty: nothing is
};

struct Chart {
  std::string title;
  std::string quantity;  // with its unit, "step time, seconds"
  std::vector<ChartPoint> points;
};

// Predicted over measured on logarithmic axes, with the diagonal and a band of 10% about it. Series are listed by name.
// Empty for no points.
std::string PredictedAgainstMeasuredSvg(const Chart& chart);

// One line per row, by name: predicted / measured of its figures, the middle of them, and the band of 10%. Ratios
// beyond 1/4 and 4 are drawn at the edge. Empty for no points.
std::string ResidualsSvg(const Chart& chart);

}  // namespace sliceplan::calibration

#endif  // SLICEPLAN_SERVER_CALIBRATION_SVG_CHART_H_
