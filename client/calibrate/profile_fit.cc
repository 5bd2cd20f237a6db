#include "client/calibrate/profile_fit.h"

#include <algorithm>
#include <cmath>
#include <map>
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
  double first = 0;  // residual of the profile as it is
};

// The figures of one profile, and what it said of them under constants that were tried before: most steps of a joint
// fit move the constants of one profile.
struct Share {
  CalibrationProfile record;
  std::vector<size_t> constants;  // of the plan
  std::vector<ConstantName> names;
  std::vector<const Case*> cases;
  std::vector<Figure> figures;
  size_t begin = 0;  // of its figures among those of all profiles
  std::map<std::vector<double>, std::vector<double>> known;
};

// The figure in `answers`, nullptr when its case has none.
const Prediction* Find(const std::vector<Answer>& answers, const Figure& figure) {
  const std::vector<Prediction>& predictions = answers[figure.asked].predictions;
  return figure.prediction < predictions.size() ? &predictions[figure.prediction] : nullptr;
}

double LogRatio(const Prediction& said) { return std::log(said.expected / said.measured); }

// What a figure scatters under a perfect model. The first token under a number of users waits for whoever came just
// before, and starts with the client's burst: repeats of one run differ by a third.
double SpreadOf(Metric metric) { return metric == Metric::kTimeToFirstToken ? 0.3 : 0.1; }

double Rounded(double value) {
  double rounded = value;
  return absl::SimpleAtod(absl::StrFormat("%.4g", value), &rounded) ? rounded : value;
}

void RoundAll(const FitPlan& plan, calibration::Fit& fit) {
  for (size_t c = 0; c < fit.constants.size(); ++c) {
    fit.constants[c] = std::min(std::max(Rounded(fit.constants[c]), plan.constants[c].lower), plan.constants[c].upper);
  }
}

std::vector<double> Selected(const std::vector<double>& values, const std::vector<size_t>& indices) {
  std::vector<double> selected;
  for (const size_t i : indices) selected.push_back(values[i]);
  return selected;
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
std::vector<std::optional<size_t>> IntervalsOf(Predictor& predictor, const Share& share,
                                               const std::vector<std::string>& names) {
  constexpr double kWidest = 2;
  constexpr double kSame = 1e-6;
  const auto mark = [](size_t i) { return kWidest + static_cast<double>(i); };
  CalibrationProfile marked = share.record;
  marked.clear_measured_accelerators();  // chips that were not measured so far are now: no interval is widened
  for (size_t i = 0; i < names.size(); ++i)
    FindConstant(marked, {"", absl::StrCat(names[i], kHighSuffix)})->set_value(mark(i));
  predictor.Try(marked);
  const std::vector<Answer> answers = predictor.PredictAll(share.cases);
  predictor.Try(share.record);
  std::vector<std::optional<size_t>> intervals(share.figures.size());
  for (size_t f = 0; f < share.figures.size(); ++f) {
    const Prediction* const said = Find(answers, share.figures[f]);
    for (size_t i = 0; said != nullptr && i < names.size(); ++i) {
      if (std::abs(said->high / said->expected - mark(i)) < kSame) intervals[f] = i;
    }
  }
  return intervals;
}

const std::vector<double>& ResidualsOf(Predictor& predictor, Share& share, const std::vector<double>& constants) {
  std::vector<double> own = Selected(constants, share.constants);
  const auto found = share.known.find(own);
  if (found != share.known.end()) return found->second;
  predictor.Try(WithConstants(share.record, share.names, own));
  const std::vector<Answer> answers = predictor.PredictAll(share.cases);
  std::vector<double> residuals;
  for (const Figure& figure : share.figures) {
    // A trial that a case has no answer under (its plan no longer runs) is judged by the others.
    const Prediction* const said = Find(answers, figure);
    residuals.push_back(said != nullptr ? LogRatio(*said) : figure.first);
  }
  return share.known.emplace(std::move(own), std::move(residuals)).first->second;
}

Share ShareOf(const Predictor& predictor, const FitPlan& plan, size_t profile) {
  Share share;
  share.record = predictor.Profile(plan.profiles[profile]);
  share.constants = ConstantsOf(plan, profile);
  for (const size_t c : share.constants) share.names.push_back(plan.names[c]);
  return share;
}

// Adds the profile's figures of `answered` to its share, and to the problem.
void AddFigures(const std::vector<AnsweredCase>& answered, Share& share, FittedProfile& fitted,
                calibration::FitProblem& problem, std::vector<const Case*>& figure_cases) {
  share.begin = problem.sources.size();
  for (const AnsweredCase& one : answered) {
    if (one.asked->standing != Standing::kScored || one.answer.profile != fitted.name) continue;
    for (size_t p = 0; p < one.answer.predictions.size(); ++p) {
      const Prediction& said = one.answer.predictions[p];
      if (absl::EndsWith(NameOf(said.metric), kMemorySuffix) || one.asked->measured[p].derived) continue;
      if (share.cases.empty() || share.cases.back() != one.asked) share.cases.push_back(one.asked);
      share.figures.push_back({share.cases.size() - 1, p, LogRatio(said)});
      problem.sources.push_back(one.asked->source);
      problem.spreads.push_back(SpreadOf(said.metric));
      figure_cases.push_back(one.asked);
      fitted.sources.insert(one.asked->source);
      fitted.accelerators.insert(one.asked->accelerator);
    }
  }
  fitted.figures = share.figures.size();
}

void SetIntervals(Predictor& predictor, const Share& share, const std::vector<calibration::CrossValidation>& fits,
                  FittedProfile& fitted) {
  const std::vector<std::string> names = IntervalNames(share.record);
  const std::vector<std::optional<size_t>> intervals = IntervalsOf(predictor, share, names);
  for (size_t i = 0; i < names.size(); ++i) {
    fitted.intervals.push_back({names[i], 0, {}});
    std::vector<double> residuals;
    for (size_t f = 0; f < share.figures.size(); ++f) {
      if (intervals[f] != i) continue;
      ++fitted.intervals.back().figures;
      for (const calibration::CrossValidation& fit : fits) residuals.push_back(fit.left_out[share.begin + f]);
    }
    if (!residuals.empty()) fitted.intervals.back().ratios = calibration::IntervalOf(residuals);
  }
}

}  // namespace

FittedPlan FitProfiles(Predictor& predictor, const FitPlan& plan, const std::vector<AnsweredCase>& answered,
                       const calibration::FitOptions& options) {
  FittedPlan fitted;
  fitted.plan = plan;
  calibration::FitProblem problem;
  problem.constants = plan.constants;
  std::vector<const Case*> figure_cases;
  std::vector<Share> shares;
  for (size_t i = 0; i < plan.profiles.size(); ++i) {
    shares.push_back(ShareOf(predictor, plan, i));
    fitted.profiles.push_back({plan.profiles[i], 0, {}, {}, {}});
    AddFigures(answered, shares.back(), fitted.profiles.back(), problem, figure_cases);
  }
  fitted.figures = figure_cases.size();
  if (fitted.figures == 0) return fitted;
  problem.residuals = [&](const std::vector<double>& constants) {
    std::vector<double> residuals;
    for (Share& share : shares) {
      const std::vector<double>& own = ResidualsOf(predictor, share, constants);
      residuals.insert(residuals.end(), own.begin(), own.end());
    }
    return residuals;
  };
  for (const LeaveOut leave_out : plan.leave_outs) {
    problem.groups.clear();
    for (const Case* asked : figure_cases) problem.groups.push_back(FoldOf(leave_out, *asked));
    fitted.fits.push_back(calibration::CrossValidate(problem, options));
    RoundAll(plan, fitted.fits.back().all);
    for (calibration::Fold& fold : fitted.fits.back().folds) RoundAll(plan, fold.fit);
  }
  for (size_t i = 0; i < shares.size(); ++i) {
    predictor.Try(shares[i].record);
    if (!shares[i].figures.empty()) SetIntervals(predictor, shares[i], fitted.fits, fitted.profiles[i]);
  }
  return fitted;
}

std::vector<ProfileFolds> FoldsOf(const FittedPlan& fitted) {
  std::vector<ProfileFolds> all;
  for (size_t i = 0; i < fitted.profiles.size(); ++i) {
    const std::vector<size_t> constants = ConstantsOf(fitted.plan, i);
    for (size_t way = 0; way < fitted.fits.size() && fitted.profiles[i].figures > 0; ++way) {
      if (fitted.fits[way].folds.empty()) continue;
      ProfileFolds folds;
      folds.profile = fitted.profiles[i].name;
      folds.leave_out = fitted.plan.leave_outs[way];
      for (const size_t c : constants) folds.names.push_back(fitted.plan.names[c]);
      for (const calibration::Fold& fold : fitted.fits[way].folds)
        folds.values[fold.group] = Selected(fold.fit.constants, constants);
      all.push_back(std::move(folds));
    }
  }
  return all;
}

}  // namespace sliceplan::calibrate
