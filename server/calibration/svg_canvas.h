// Text of an SVG picture: the few shapes that charts are made of. The same calls give the same bytes.
#ifndef SLICEPLAN_SERVER_CALIBRATION_SVG_CANVAS_H_
#define SLICEPLAN_SERVER_CALIBRATION_SVG_CANVAS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace sliceplan::calibration {

struct SvgPoint {
  double x = 0;  // pixels from the left
  double y = 0;  // pixels from the top
};

enum class TextAnchor { kStart, kMiddle, kEnd };

// Dark ink on its own near-white ground: readable on light and dark pages alike.
class SvgCanvas {
 public:
  // Pixels. `title` is also what a screen reader says.
  SvgCanvas(double width, double height, absl::string_view title);

  void Line(SvgPoint from, SvgPoint to, absl::string_view color, double width, bool dashed = false);
  void Polygon(const std::vector<SvgPoint>& corners, absl::string_view fill);
  void Text(SvgPoint at, absl::string_view text, double size, TextAnchor anchor = TextAnchor::kStart,
            bool upright = true);
  // The mark of a chart's n-th series, from 0: colours that colour-blind readers tell apart (Okabe and Ito 2008), in
  // shapes that say the same without colour. `meaning` is shown when a pointer rests on it.
  void Mark(SvgPoint at, size_t series, absl::string_view meaning = "");

  // The whole document.
  std::string Finish() const;

 private:
  std::string body_;
};

}  // namespace sliceplan::calibration

#endif  // SLICEPLAN_SERVER_CALIBRATION_SVG_CANVAS_H_
