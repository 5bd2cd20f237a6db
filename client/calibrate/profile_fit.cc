#include "client/calibrate/profile_fit.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

namespace sliceplan::calibrate {
namespace {

using catalog::v1::CalibrationProfile;

constexpr absl::string_view kHighSuffix = "_high_ratio";
// Metrics in bytes: these constants do not move them.
constexpr absl::string_view kMemorySuffix = "_bytes";

// A figure that is fitted to: a prediction of a case.
struct Figure {
  size_t asked = 0;  // index of the cases that are asked
  size_t prediction = 0;
};

// The figure in `answers`, nullptr when its case has none.
const Prediction* Find(const std::vector<Answer>& answers, const Figure& figure) {
  const std::vector<Prediction>& predictions = answers[figure.asked].predictions;
  return figure.prediction < predictions.size() ? &predictions[figure.prediction] : nullptr;
}

double LogRatio(const Prediction& said) { return std::log(said.expected / said.measured); }

double Rounded(double value) {
  double rounded = value;
  return absl::SimpleAtod(absl::StrFormat("%.4g", value), &rounded) ? rounded : value;
}

void RoundAll(const ProfilePlan& plan, calibration::Fit& fit) {
  for (size_t c = 0; c < fit.constants.size(); ++c) {
    fit.constants[c] = std::min(std::max(Rounded(fit.constants[c]), plan.constants[c].lower), plan.constants[c].upper);
  }
}

std::vector<std::string> IntervalNames(const CalibrationProfile& record) {
  std::vector<std::string> names;
  for (const catalog::v1::Constant& constant : record.constants()) {
    absl::string_view name = constant.name();
    if (absl::ConsumeSuffix(&name, kHighSuffix)) names.emplace_back(name);
  }
  return names;
}

// Which interval each figure has, as an index of `names`: found by giving every one a width of its own, so that nothing
// here needs to know what the service decides by.
std::vector<std::optional<size_t>> IntervalsOf(Predictor& predictor, const CalibrationProfile& record,
                                               const std::vector<std::string>& names,
                                               const std::vector<const Case*>& cases,
                                               const std::vector<Figure>& figures) {
  constexpr double kWidest = 2;
  constexpr double kSame = 1e-6;
  const auto mark = [](size_t i) { return kWidest + static_cast<double>(i); };
  CalibrationProfile marked = record;
  marked.clear_measured_accelerators();  // chips that were not measured so far are now: no interval is widened
  for (size_t i = 0; i < names.size(); ++i)
    FindConstant(marked, {"", absl::StrCat(names[i], kHighSuffix)})->set_value(mark(i));
  predictor.Try(marked);
  const std::vector<Answer> answers = predictor.PredictAll(cases);
  predictor.Try(record);
  std::vector<std::optional<size_t>> intervals(figures.size());
  for (size_t f = 0; f < figures.size(); ++f) {
    const Prediction* const said = Find(answers, figures[f]);
    for (size_t i = 0; said != nullptr && i < names.size(); ++i) {
      if (std::abs(said->high / said->expected - mark(i)) < kSame) intervals[f] = i;
    }
  }
  return intervals;
}

}  // namespace

FittedProfile FitProfile(Predictor& predictor, const ProfilePlan& plan, const std::vector<AnsweredCase>& answered) {
  const CalibrationProfile record = predictor.Profile(plan.profile);
  FittedProfile fitted;
  fitted.plan = plan;
  std::vector<const Case*> cases;
  std::vector<Figure> figures;
  std::vector<double> first;  // residuals of the profile as it is
  calibration::FitProblem problem;
  problem.constants = plan.constants;
  for (const auto& [asked, answer] : answered) {
    if (asked->standing != Standing::kScored || answer.profile != plan.profile) continue;
    for (size_t p = 0; p < answer.predictions.size(); ++p) {
      if (absl::EndsWith(NameOf(answer.predictions[p].metric), kMemorySuffix)) continue;
      if (cases.empty() || cases.back() != asked) cases.push_back(asked);
      figures.push_back({cases.size() - 1, p});
      first.push_back(LogRatio(answer.predictions[p]));
      problem.sources.push_back(asked->source);
      problem.groups.push_back(FoldOf(plan.leave_out, *asked));
      fitted.sources.insert(asked->source);
      fitted.accelerators.insert(asked->accelerator);
    }
  }
  fitted.figures = figures.size();
  if (figures.empty()) return fitted;
  problem.residuals = [&](const std::vector<double>& constants) {
    predictor.Try(WithConstants(record, plan.names, constants));
    const std::vector<Answer> answers = predictor.PredictAll(cases);
    std::vector<double> residuals;
    for (size_t f = 0; f < figures.size(); ++f) {
      // A trial that a case has no answer under (its plan no longer runs) is judged by the others.
      const Prediction* const said = Find(answers, figures[f]);
      residuals.push_back(said != nullptr ? LogRatio(*said) : first[f]);
    }
    return residuals;
  };
  fitted.fits = calibration::CrossValidate(problem, {});
  RoundAll(plan, fitted.fits.all);
  for (calibration::Fold& fold : fitted.fits.folds) RoundAll(plan, fold.fit);

  const std::vector<std::string> names = IntervalNames(record);
  const std::vector<std::optional<size_t>> intervals = IntervalsOf(predictor, record, names, cases, figures);
  for (size_t i = 0; i < names.size(); ++i) {
    std::vector<double> residuals;
    for (size_t f = 0; f < figures.size(); ++f) {
      if (intervals[f] == i) residuals.push_back(fitted.fits.left_out[f]);
    }
    fitted.intervals.push_back({names[i], residuals.size(), {}});
    if (!residuals.empty()) fitted.intervals.back().ratios = calibration::IntervalOf(residuals);
  }
  return fitted;
}

ProfileFolds FoldsOf(const FittedProfile& fitted) {
  ProfileFolds folds;
  folds.profile = fitted.plan.profile;
  folds.leave_out = fitted.plan.leave_out;
  folds.names = fitted.plan.names;
  for (const calibration::Fold& fold : fitted.fits.folds) folds.values[fold.group] = fold.fit.constants;
  return folds;
}

}  // namespace sliceplan::calibrate
