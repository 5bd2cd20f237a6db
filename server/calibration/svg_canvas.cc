#include "server/calibration/svg_canvas.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace sliceplan::calibration {
namespace {

constexpr absl::string_view kGround = "#fcfcfc";
constexpr absl::string_view kInk = "#222222";
constexpr absl::string_view kColors[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                         "#e69f00", "#56b4e9", "#000000", "#7a5c00"};
constexpr size_t kColorCount = sizeof(kColors) / sizeof(kColors[0]);
constexpr size_t kShapeCount = 4;
constexpr double kMarkRadius = 3.5;

std::string Escaped(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

std::string CornersText(const std::vector<SvgPoint>& corners) {
  std::string text;
  for (const SvgPoint& corner : corners)
    absl::StrAppendFormat(&text, "%s%.1f,%.1f", text.empty() ? "" : " ", corner.x, corner.y);
  return text;
}

}  // namespace

SvgCanvas::SvgCanvas(double width, double height, absl::string_view title) {
  absl::StrAppendFormat(&body_,
                        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f "
                        "%.0f\" role=\"img\" font-family=\"sans-serif\">\n<title>%s</title>\n",
                        width, height, width, height, Escaped(title));
  absl::StrAppendFormat(&body_, "<rect width=\"%.0f\" height=\"%.0f\" fill=\"%s\"/>\n", width, height, kGround);
}

void SvgCanvas::Line(SvgPoint from, SvgPoint to, absl::string_view color, double width, bool dashed) {
  absl::StrAppendFormat(&body_, "<path d=\"M%.1f,%.1fL%.1f,%.1f\" stroke=\"%s\" stroke-width=\"%.1f\"%s/>\n", from.x,
                        from.y, to.x, to.y, color, width, dashed ? " stroke-dasharray=\"4 3\"" : "");
}

void SvgCanvas::Polygon(const std::vector<SvgPoint>& corners, absl::string_view fill) {
  absl::StrAppendFormat(&body_, "<polygon points=\"%s\" fill=\"%s\"/>\n", CornersText(corners), fill);
}

void SvgCanvas::Text(SvgPoint at, absl::string_view text, double size, TextAnchor anchor, bool upright) {
  const absl::string_view anchor_name = anchor == TextAnchor::kStart    ? "start"
                                        : anchor == TextAnchor::kMiddle ? "middle"
                                                                        : "end";
  const std::string turned = upright ? "" : absl::StrFormat(" transform=\"rotate(-90 %.1f %.1f)\"", at.x, at.y);
  absl::StrAppendFormat(&body_,
                        "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%.0f\" text-anchor=\"%s\" fill=\"%s\"%s>%s</text>\n",
                        at.x, at.y, size, anchor_name, kInk, turned, Escaped(text));
}

void SvgCanvas::Mark(SvgPoint at, size_t series, absl::string_view meaning) {
  constexpr double r = kMarkRadius;
  std::string shape;
  switch ((series + series / kColorCount) % kShapeCount) {
    case 0: shape = absl::StrFormat("circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"", at.x, at.y, r); break;
    case 1:
      shape = absl::StrFormat("rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"", at.x - r, at.y - r, 2 * r,
                              2 * r);
      break;
    case 2:
      shape = absl::StrFormat("polygon points=\"%s\"",
                              CornersText({{at.x, at.y - r - 1}, {at.x + r + 1, at.y + r}, {at.x - r - 1, at.y + r}}));
      break;
    default:
      shape = absl::StrFormat(
          "polygon points=\"%s\"",
          CornersText({{at.x, at.y - r - 1}, {at.x + r + 1, at.y}, {at.x, at.y + r + 1}, {at.x - r - 1, at.y}}));
  }
  absl::StrAppend(&body_, "<", shape, " fill=\"", kColors[series % kColorCount], "\" fill-opacity=\"0.75\"");
  if (meaning.empty()) {
    absl::StrAppend(&body_, "/>\n");
  } else {
    const absl::string_view tag = absl::string_view(shape).substr(0, shape.find(' '));
    absl::StrAppend(&body_, "><title>", Escaped(meaning), "</title></", tag, ">\n");
  }
}

std::string SvgCanvas::Finish() const { return absl::StrCat(body_, "</svg>\n"); }

}  // namespace sliceplan::calibration
