#include "server/catalog/torus_axes.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/catalog/shape_choice.h"
#include "server/hardware/slice.h"

namespace sliceplan::catalog {
namespace {

using hardware::AxisWraps;
using hardware::Shape;
using hardware::ShapeName;
using hardware::Violation;

AxisWraps WrapsOfQuery(const SliceQuery& query, const Shape& shape, ResolvedSlice& out) {
  AxisWraps wraps;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (query.axis_wraps[i] && shape[i] == 2) {
      out.notes.push_back(
          absl::StrCat("Axis ", i, " has two chips: it does not close, since both links would join the same pair."));
    }
    wraps.push_back(query.axis_wraps[i] && shape[i] > 2);
  }
  return wraps;
}

AxisWraps WrapsOfCustomChip(const Shape& shape, ResolvedSlice& out) {
  AxisWraps wraps;
  for (int32_t size : shape) wraps.push_back(size > 2);
  if (std::any_of(wraps.begin(), wraps.end(), [](bool wrap) { return wrap; })) {
    out.notes.push_back("Every axis of the custom chip with more than two chips closes: ici_axis_wraps was not given.");
  }
  return wraps;
}

AxisWraps WrapsOfCatalog(const Accelerator& accelerator, const Shape& shape, ResolvedSlice& out) {
  const hardware::WrapRule rule = accelerator.spec.wrap_rule;
  if (!hardware::IsWrapKnown(rule, shape, accelerator.pod_shape) && hardware::ChipCount(shape) > 1) {
    out.notes.push_back(absl::StrCat("No source says which axes of ", ShapeName(shape), " close on ",
                                     accelerator.record.id(), ": planned as open."));
  }
  return hardware::WrapsOf(rule, shape, accelerator.pod_shape);
}

// Why the shape cannot be twisted; empty when it can.
std::string WhyNotTwisted(const Shape& shape, const ResolvedSlice& out) {
  if (out.accelerator != nullptr) {
    if (IsTwistOffered(*out.accelerator, shape)) return "";
    return absl::StrCat(out.accelerator->record.id(), " ", ShapeName(shape), " is not offered twisted. ",
                        TwistedShapes(*out.accelerator));
  }
  const bool closes = std::all_of(out.slice.axes.begin(), out.slice.axes.end(),
                                  [](const hardware::TorusAxis& axis) { return axis.wraps; });
  if (closes && hardware::IsTwistable(shape)) return "";
  return absl::StrCat("A twisted torus has the shape k x 2k, k x k x 2k or k x 2k x 2k and closes along every axis; ",
                      ShapeName(shape), " does not.");
}

void SetTwist(const SliceQuery& query, const Shape& shape, ResolvedSlice& out, std::vector<Violation>& violations) {
  if (query.twisted) {
    std::string why_not = WhyNotTwisted(shape, out);
    out.slice.twisted = why_not.empty();
    if (!why_not.empty()) violations.push_back({"twisted", std::move(why_not), "TWIST_NOT_OFFERED"});
    return;
  }
  if (out.accelerator == nullptr || !IsTwistOffered(*out.accelerator, shape)) return;
  const std::string& default_text = out.accelerator->record.interconnect().twisted_torus().default_text();
  if (!default_text.empty()) {
    out.notes.push_back(absl::StrCat("Planned untwisted. ", ShapeName(shape), ": ", default_text, "."));
  }
}

}  // namespace

void SetTorus(const SliceQuery& query, const Shape& shape, ResolvedSlice& out, std::vector<Violation>& violations) {
  out.slice.chip_count = hardware::ChipCount(shape);
  out.slice.topology = ShapeName(shape);
  if (!query.axis_wraps.empty() && query.axis_wraps.size() != shape.size()) {
    violations.push_back({out.accelerator == nullptr ? "custom.ici_axis_wraps" : "override.ici_axis_wraps",
                          absl::StrCat("ici_axis_wraps has ", query.axis_wraps.size(), " entries, ", out.slice.topology,
                                       " has ", shape.size(), " axes."),
                          "ILLEGAL_AXIS_WRAPS"});
    return;
  }
  const AxisWraps wraps = !query.axis_wraps.empty()    ? WrapsOfQuery(query, shape, out)
                          : out.accelerator == nullptr ? WrapsOfCustomChip(shape, out)
                                                       : WrapsOfCatalog(*out.accelerator, shape, out);
  out.slice.axes.clear();
  for (size_t i = 0; i < shape.size(); ++i) out.slice.axes.push_back({shape[i], wraps[i]});
  SetTwist(query, shape, out, violations);
}

}  // namespace sliceplan::catalog
