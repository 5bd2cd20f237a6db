#include "client/calibrate/plots.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "server/calibration/svg_chart.h"

namespace sliceplan::calibrate {
namespace {

// Above this many marks nobody finds one with a pointer, and the names would make most of the file.
constexpr size_t kMostLabelled = 400;

// "step, seconds" of "step_seconds".
std::string Quantity(absl::string_view metric) {
  for (const absl::string_view unit : {"tokens_per_second", "seconds", "bytes"}) {
    if (absl::ConsumeSuffix(&metric, absl::StrCat("_", unit)))
      return absl::StrReplaceAll(absl::StrCat(metric, ", ", unit), {{"_", " "}});
  }
  return std::string(metric);
}

absl::string_view KindOf(const catalog::Catalog& catalog, const std::string& accelerator) {
  for (const catalog::Accelerator& known : catalog.accelerators()) {
    if (known.record.id() == accelerator)
      return known.record.kind() == catalog::v1::ACCELERATOR_KIND_TPU ? "tpu" : "gpu";
  }
  return "other";
}

}  // namespace

std::vector<Picture> PicturesOf(const std::vector<AnsweredCase>& answered, const std::vector<AnsweredCase>& left_out,
                                const catalog::Catalog& catalog) {
  std::map<std::pair<std::string, std::string>, calibration::Chart> charts;
  std::map<std::pair<std::string, std::string>, size_t> without_group;
  for (size_t i = 0; i < answered.size(); ++i) {
    const Case& asked = *answered[i].asked;
    if (asked.standing != Standing::kScored) continue;
    const bool held_out = i < left_out.size() && !left_out[i].answer.predictions.empty();
    const Answer& answer = held_out ? left_out[i].answer : answered[i].answer;
    for (const Prediction& said : answer.predictions) {
      const std::pair<std::string, std::string> key(NameOf(said.metric), KindOf(catalog, asked.accelerator));
      calibration::Chart& chart = charts[key];
      chart.quantity = Quantity(key.first);
      chart.points.push_back({said.measured, said.expected, asked.accelerator, asked.source, asked.id});
      if (held_out) ++without_group[key];
    }
  }
  std::vector<Picture> pictures;
  for (auto& [key, chart] : charts) {
    const std::string kind = key.second == "tpu" ? "TPUs" : key.second == "gpu" ? "GPUs" : "other chips";
    chart.title = absl::StrCat(chart.quantity, ": ", chart.points.size(), " figures on ", kind);
    if (without_group[key] > 0) absl::StrAppend(&chart.title, ", ", without_group[key], " with their group left out");
    if (chart.points.size() > kMostLabelled) {
      for (calibration::ChartPoint& point : chart.points) point.label.clear();
    }
    const std::string name = absl::StrCat(key.first, "_", key.second);
    pictures.push_back({absl::StrCat(name, "_predicted.svg"), calibration::PredictedAgainstMeasuredSvg(chart)});
    pictures.push_back({absl::StrCat(name, "_residuals.svg"), calibration::ResidualsSvg(chart)});
  }
  return pictures;
}

}  // namespace sliceplan::calibrate
