#include "client/calibrate/profile_text.h"

#include <algorithm>

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

std::string FittedOn(const FittedProfile& fitted, const Provenance& provenance) {
  const std::string sources =
      fitted.sources.size() <= kMostNamed ? absl::StrCat(" (", absl::StrJoin(fitted.sources, ", "), ")") : "";
  return absl::StrCat("fit on ", fitted.figures, " measured figures of ", fitted.sources.size(),
                      fitted.sources.size() == 1 ? " source" : " sources", sources, ", ", provenance.as_of);
}

std::string LeftOutWords(LeaveOut leave_out) { return absl::StrCat("one ", NameOf(leave_out), " left out at a time"); }

// "0.71 to 0.75 with one source left out at a time"; empty without folds.
std::string RangeOverFolds(const FittedProfile& fitted, size_t constant) {
  if (fitted.fits.folds.empty()) return "";
  double low = fitted.fits.all.constants[constant];
  double high = low;
  for (const calibration::Fold& fold : fitted.fits.folds) {
    low = std::min(low, fold.fit.constants[constant]);
    high = std::max(high, fold.fit.constants[constant]);
  }
  return absl::StrFormat("%.4g to %.4g with %s", low, high, LeftOutWords(fitted.plan.leave_out));
}

void SetInterval(const FittedProfile& fitted, const FittedInterval& interval, const Provenance& provenance,
                 CalibrationProfile& record) {
  if (interval.figures < kFewestOfInterval || fitted.fits.folds.empty()) return;
  const auto set = [&](absl::string_view side, absl::string_view percentile, double value) {
    Constant* const constant = FindConstant(record, {"", absl::StrCat(interval.name, "_", side, "_ratio")});
    if (constant == nullptr) return;
    double rounded = value;
    if (!absl::SimpleAtod(absl::StrFormat("%.3g", value), &rounded)) rounded = value;
    constant->set_value(rounded);
    constant->set_source(absl::StrCat(percentile, " percentile of measured / predicted on ", interval.figures,
                                      " figures, ", LeftOutWords(fitted.plan.leave_out), ", ", provenance.as_of));
    constant->clear_note();
  };
  set("low", "5th", interval.ratios.low);
  set("high", "95th", interval.ratios.high);
}

}  // namespace

CalibrationProfile FittedRecord(const CalibrationProfile& record, const FittedProfile& fitted,
                                const Provenance& provenance) {
  CalibrationProfile result = WithConstants(record, fitted.plan.names, fitted.fits.all.constants);
  const std::string fitted_on = FittedOn(fitted, provenance);
  for (size_t c = 0; c < fitted.plan.names.size(); ++c) {
    Constant* const constant = FindConstant(result, fitted.plan.names[c]);
    constant->set_source(fitted_on);
    constant->set_note(absl::StrFormat(
        "held to %.4g with spread %.3g (%s)", fitted.plan.constants[c].prior, fitted.plan.constants[c].spread,
        fitted.plan.constants[c].scale == calibration::Scale::kLinear ? "absolute" : "of its log"));
    const std::string range = RangeOverFolds(fitted, c);
    if (!range.empty()) constant->set_note(absl::StrCat(range, "; ", constant->note()));
  }
  for (const FittedInterval& interval : fitted.intervals) SetInterval(fitted, interval, provenance, result);
  // A list of none means that no chip counts as measured alone.
  const auto& measured = record.measured_accelerators();
  for (const std::string& id : fitted.accelerators) {
    if (!measured.empty() && std::find(measured.begin(), measured.end(), id) == measured.end())
      result.add_measured_accelerators(id);
  }
  result.set_version(provenance.version.empty() ? NextVersion(record.version(), provenance.as_of) : provenance.version);
  result.set_source(absl::StrCat(fitted_on, fitted.fits.folds.empty() ? "" : ", ",
                                 fitted.fits.folds.empty() ? "" : LeftOutWords(fitted.plan.leave_out),
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
