#include "server/calibration/svg_chart.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/calibration/error_summary.h"
#include "server/calibration/svg_canvas.h"

namespace sliceplan::calibration {
namespace {

constexpr absl::string_view kBandColor = "#e3e9ee";
constexpr absl::string_view kGridColor = "#d9d9d9";
constexpr absl::string_view kAxisColor = "#555555";
constexpr double kBandRatio = 1.1;

// Pixels.
constexpr double kTitleSize = 15;
constexpr double kTextSize = 12;
constexpr double kTop = 44;
constexpr double kBottom = 52;
constexpr double kLegendWidth = 190;
constexpr double kLineHeight = 18;
constexpr double kGap = 14;

// A logarithmic axis from `low` at pixel `from` to `high` at pixel `to`.
struct LogAxis {
  double low = 1;
  double high = 10;
  double from = 0;
  double to = 1;

  double At(double value) const {
    const double share = std::log(std::clamp(value, low, high) / low) / std::log(high / low);
    return from + share * (to - from);
  }
};

// 1, 2 and 5 times powers of ten within the range; powers of ten alone where those would crowd.
std::vector<double> Ticks(double low, double high) {
  constexpr double kMostDecades = 3;
  const bool fine = std::log10(high / low) < kMostDecades;
  std::vector<double> ticks;
  for (int power = static_cast<int>(std::floor(std::log10(low))); std::pow(10, power) <= high; ++power) {
    for (double step : {1.0, 2.0, 5.0}) {
      const double tick = step * std::pow(10, power);
      if ((fine || step == 1) && tick >= low && tick <= high) ticks.push_back(tick);
    }
  }
  return ticks;
}

std::map<std::string, size_t> SeriesOf(const Chart& chart) {
  std::map<std::string, size_t> series;
  for (const ChartPoint& point : chart.points) series[point.series];
  size_t number = 0;
  for (auto& [name, index] : series) index = number++;
  return series;
}

void DrawLegend(const std::map<std::string, size_t>& series, SvgPoint at, SvgCanvas& canvas) {
  for (const auto& [name, number] : series) {
    canvas.Mark({at.x, at.y - kTextSize / 3}, number);
    canvas.Text({at.x + kGap, at.y}, name, kTextSize);
    at.y += kLineHeight;
  }
}

std::string Meaning(const ChartPoint& point) {
  if (point.label.empty()) return "";
  return absl::StrFormat("%s: measured %.3g, predicted %.3g", point.label, point.measured, point.predicted);
}

}  // namespace

std::string PredictedAgainstMeasuredSvg(const Chart& chart) {
  if (chart.points.empty()) return "";
  constexpr double kSide = 480;
  constexpr double kLeft = 78;
  constexpr double kRoom = 1.15;  // about the outermost points
  double low = std::numeric_limits<double>::infinity();
  double high = 0;
  for (const ChartPoint& point : chart.points) {
    low = std::min({low, point.measured, point.predicted});
    high = std::max({high, point.measured, point.predicted});
  }
  low /= kRoom;
  high *= kRoom;
  const LogAxis x{low, high, kLeft, kLeft + kSide};
  const LogAxis y{low, high, kTop + kSide, kTop};
  const std::map<std::string, size_t> series = SeriesOf(chart);
  const double height = kTop + std::max(kSide + kBottom, kLineHeight * static_cast<double>(series.size() + 1));
  SvgCanvas canvas(x.to + kGap + kLegendWidth, height, chart.title);
  canvas.Text({kLeft, kTop - kGap - 4}, chart.title, kTitleSize);
  canvas.Polygon({{x.At(low), y.At(low)},
                  {x.At(low), y.At(low * kBandRatio)},
                  {x.At(high / kBandRatio), y.At(high)},
                  {x.At(high), y.At(high)},
                  {x.At(high), y.At(high / kBandRatio)},
                  {x.At(low * kBandRatio), y.At(low)}},
                 kBandColor);
  for (const double tick : Ticks(low, high)) {
    const std::string text = absl::StrFormat("%g", tick);
    canvas.Line({x.At(tick), y.from}, {x.At(tick), y.to}, kGridColor, 0.5);
    canvas.Line({x.from, y.At(tick)}, {x.to, y.At(tick)}, kGridColor, 0.5);
    canvas.Text({x.At(tick), y.from + kLineHeight}, text, kTextSize, TextAnchor::kMiddle);
    canvas.Text({x.from - 6, y.At(tick) + kTextSize / 3}, text, kTextSize, TextAnchor::kEnd);
  }
  canvas.Line({x.from, y.from}, {x.to, y.from}, kAxisColor, 1);
  canvas.Line({x.from, y.from}, {x.from, y.to}, kAxisColor, 1);
  canvas.Line({x.from, y.from}, {x.to, y.to}, kAxisColor, 1, /*dashed=*/true);
  canvas.Text({kLeft + kSide / 2, y.from + 2.2 * kLineHeight}, absl::StrCat("Measured ", chart.quantity), kTextSize,
              TextAnchor::kMiddle);
  canvas.Text({kTextSize + 4, kTop + kSide / 2}, absl::StrCat("Predicted ", chart.quantity), kTextSize,
              TextAnchor::kMiddle, /*upright=*/false);
  for (const ChartPoint& point : chart.points)
    canvas.Mark({x.At(point.measured), y.At(point.predicted)}, series.at(point.series), Meaning(point));
  DrawLegend(series, {x.to + kGap + 4, kTop + kGap}, canvas);
  canvas.Text({x.from + 8, y.to + kGap}, "band: within 10%", kTextSize - 1);
  return canvas.Finish();
}

std::string ResidualsSvg(const Chart& chart) {
  if (chart.points.empty()) return "";
  constexpr double kLeft = 170;
  constexpr double kWidth = 520;
  constexpr double kEdge = 4;
  constexpr double kRatios[] = {0.25, 0.33, 0.5, 0.67, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 2, 3, 4};
  const std::map<std::string, size_t> series = SeriesOf(chart);
  std::map<std::string, std::vector<const ChartPoint*>> rows;
  double farthest = kBandRatio;
  for (const ChartPoint& point : chart.points) {
    rows[point.row].push_back(&point);
    const double ratio = point.predicted / point.measured;
    farthest = std::max({farthest, ratio, 1 / ratio});
  }
  farthest = std::min(farthest * 1.02, kEdge);
  const LogAxis x{1 / farthest, farthest, kLeft, kLeft + kWidth};
  const double bottom = kTop + kLineHeight * static_cast<double>(rows.size());
  const double legend_bottom = kTop + kLineHeight * static_cast<double>(series.size() + 1);
  SvgCanvas canvas(x.to + 2 * kGap + kLegendWidth, std::max(bottom + kBottom, legend_bottom), chart.title);
  canvas.Text({kGap, kTop - kGap - 4}, chart.title, kTitleSize);
  canvas.Polygon({{x.At(1 / kBandRatio), kTop},
                  {x.At(kBandRatio), kTop},
                  {x.At(kBandRatio), bottom},
                  {x.At(1 / kBandRatio), bottom}},
                 kBandColor);
  double last_text = 0;
  for (const double ratio : kRatios) {
    if (ratio < x.low || ratio > x.high) continue;
    canvas.Line({x.At(ratio), kTop}, {x.At(ratio), bottom}, ratio == 1 ? kAxisColor : kGridColor, ratio == 1 ? 1 : 0.5);
    if (x.At(ratio) - last_text < 2 * kGap) continue;
    last_text = x.At(ratio);
    canvas.Text({last_text, bottom + kLineHeight}, absl::StrFormat("%g", ratio), kTextSize, TextAnchor::kMiddle);
  }
  canvas.Text({kLeft + kWidth / 2, bottom + 2.2 * kLineHeight},
              absl::StrCat("Predicted / measured ", chart.quantity.substr(0, chart.quantity.find(',')), " (ratio)"),
              kTextSize, TextAnchor::kMiddle);
  double y = kTop + kLineHeight / 2;
  for (const auto& [row, points] : rows) {
    canvas.Text({kLeft - 8, y + kTextSize / 3}, absl::StrFormat("%s (%d)", row, points.size()), kTextSize,
                TextAnchor::kEnd);
    std::vector<double> ratios;
    for (const ChartPoint* point : points) {
      ratios.push_back(point->predicted / point->measured);
      canvas.Mark({x.At(ratios.back()), y}, series.at(point->series), Meaning(*point));
    }
    const double middle = x.At(Quantile(ratios, 0.5));
    canvas.Line({middle, y - kLineHeight / 2}, {middle, y + kLineHeight / 2}, kAxisColor, 2);
    y += kLineHeight;
  }
  DrawLegend(series, {x.to + 2 * kGap, kTop + kGap}, canvas);
  return canvas.Finish();
}

}  // namespace sliceplan::calibration
