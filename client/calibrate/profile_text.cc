#include "client/calibrate/profile_text.h"

#include <algorithm>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "google/protobuf/text_format.h"

namespace sliceplan::calibrate {
namespace {

using catalog::v1::CalibrationProfile;
using catalog::v1::Constant;

// The 5% and 95% quantiles of fewer figures are their extremes.
constexpr size_t kFewestOfInterval = 20;
// More source names than this are counted.
constexpr size_t kMostNamed = 12;
constexpr size_t kMonthDigits = 7;  // "2026-11"

std::string NextVersion(absl::string_view version, absl::string_view as_of) {
  const absl::string_view month = as_of.substr(0, kMonthDigits);
  int number = 0;
  if (absl::ConsumePrefix(&version, month) && absl::ConsumePrefix(&version, ".")) {
    if (!absl::SimpleAtoi(version, &number)) number = 0;
  }
  return absl::StrCat(month, ".", number + 1);
}

std::string SourcesOf(size_t figures, const std::set<std::string>& sources) {
  const std::string names = sources.size() <= kMostNamed ? absl::StrCat(" (", absl::StrJoin(sources, ", "), ")") : "";
  return absl::StrCat("fit on ", figures, " measured figures of ", sources.size(),
                      sources.size() == 1 ? " source" : " sources", names);
}

// Of a constant, or of a profile: what the profiles of `holders` were fitted on.
std::string FittedOn(const FittedPlan& fitted, const std::vector<size_t>& holders, const Provenance& provenance) {
  size_t figures = 0;
  std::set<std::string> sources;
  for (const size_t i : holders) {
    figures += fitted.profiles[i].figures;
    sources.insert(fitted.profiles[i].sources.begin(), fitted.profiles[i].sources.end());
  }
  return absl::StrCat(SourcesOf(figures, sources), ", ", provenance.as_of);
}

bool HasFolds(const FittedPlan& fitted) {
  return absl::c_any_of(fitted.fits, [](const auto& fit) { return !fit.folds.empty(); });
}

std::string LeftOutWords(const FitPlan& plan) {
  const auto name = [](std::string* text, LeaveOut leave_out) { absl::StrAppend(text, "one ", NameOf(leave_out)); };
  return absl::StrCat(absl::StrJoin(plan.leave_outs, " or ", name), " left out at a time");
}

// "0.71 to 0.75 with one source left out at a time"; empty without folds.
std::string RangeOverFolds(const FittedPlan& fitted, size_t constant) {
  if (!HasFolds(fitted)) return "";
  double low = fitted.all().constants[constant];
  double high = low;
  for (const calibration::CrossValidation& fit : fitted.fits) {
    for (const calibration::Fold& fold : fit.folds) {
      low = std::min(low, fold.fit.constants[constant]);
      high = std::max(high, fold.fit.constants[constant]);
    }
  }
  return absl::StrFormat("%.4g to %.4g with %s", low, high, LeftOutWords(fitted.plan));
}

void SetInterval(const FittedPlan& fitted, const FittedInterval& interval, const Provenance& provenance,
                 CalibrationProfile& record) {
  if (interval.figures < kFewestOfInterval || !HasFolds(fitted)) return;
  const auto set = [&](absl::string_view side, absl::string_view percentile, double value) {
    Constant* const constant = FindConstant(record, {"", absl::StrCat(interval.name, "_", side, "_ratio")});
    if (constant == nullptr) return;
    double rounded = value;
    if (!absl::SimpleAtod(absl::StrFormat("%.3g", value), &rounded)) rounded = value;
    constant->set_value(rounded);
    constant->set_source(absl::StrCat(percentile, " percentile of measured / predicted on ", interval.figures,
                                      " figures, ", LeftOutWords(fitted.plan), ", ", provenance.as_of));
    constant->clear_note();
  };
  set("low", "5th", interval.ratios.low);
  set("high", "95th", interval.ratios.high);
}

}  // namespace

CalibrationProfile FittedRecord(const CalibrationProfile& record, const FittedPlan& fitted, size_t profile,
                                const Provenance& provenance) {
  CalibrationProfile result = record;
  const FittedProfile& own = fitted.profiles[profile];
  for (const size_t c : ConstantsOf(fitted.plan, profile)) {
    if (!fitted.Moves(c)) continue;
    Constant* const constant = FindConstant(result, fitted.plan.names[c]);
    constant->set_value(fitted.all().constants[c]);
    constant->set_source(FittedOn(fitted, fitted.plan.holders[c], provenance));
    constant->set_note(absl::StrFormat(
        "held to %.4g with spread %.3g (%s)", fitted.plan.constants[c].prior, fitted.plan.constants[c].spread,
        fitted.plan.constants[c].scale == calibration::Scale::kLinear ? "absolute" : "of its log"));
    const std::string range = RangeOverFolds(fitted, c);
    if (!range.empty()) constant->set_note(absl::StrCat(range, "; ", constant->note()));
  }
  for (const FittedInterval& interval : own.intervals) SetInterval(fitted, interval, provenance, result);
  // A list of none means that no chip counts as measured alone.
  const auto& measured = record.measured_accelerators();
  for (const std::string& id : own.accelerators) {
    if (!measured.empty() && std::find(measured.begin(), measured.end(), id) == measured.end())
      result.add_measured_accelerators(id);
  }
  result.set_version(provenance.version.empty() ? NextVersion(record.version(), provenance.as_of) : provenance.version);
  result.set_source(absl::StrCat(FittedOn(fitted, {profile}, provenance), HasFolds(fitted) ? ", " : "",
                                 HasFolds(fitted) ? LeftOutWords(fitted.plan) : "",
                                 "; what was not fitted is as in version ", record.version()));
  result.set_as_of(provenance.as_of);
  return result;
}

std::string ProfileText(const std::vector<CalibrationProfile>& records) {
  catalog::v1::CalibrationProfiles file;
  for (const CalibrationProfile& record : records) *file.add_profiles() = record;
  std::string text;
  google::protobuf::TextFormat::Printer printer;
  printer.SetUseUtf8StringEscaping(true);
  printer.PrintToString(file, &text);
  return absl::StrCat(
      "# proto-file: proto/sliceplan/catalog/v1/catalog.proto\n"
      "# proto-message: sliceplan.catalog.v1.CalibrationProfiles\n\n",
      text);
}

}  // namespace sliceplan::calibrate
