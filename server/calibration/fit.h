// Named constants fitted to measurements: robust least squares on log ratios, held by priors.
#ifndef SLICEPLAN_SERVER_CALIBRATION_FIT_H_
#define SLICEPLAN_SERVER_CALIBRATION_FIT_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace sliceplan::calibration {

enum class Scale {
  kLogarithmic,  // ratios, rates, times: `spread` is of the natural logarithm; values are above 0
  kLinear,       // shares that may be 0: `spread` is absolute
};

// One constant that the fit may move.
struct FreeConstant {
  std::string name;
  Scale scale = Scale::kLogarithmic;
  double start = 1;     // within the bounds
  double prior = 1;     // what it is taken for without data
  double spread = 0.3;  // standard deviation about `prior`, above 0
  double lower = 0;     // bounds, inclusive; kLogarithmic: above 0
  double upper = 0;
};

// ln(predicted / measured) of every figure for the given constants: as many as `FitProblem::groups`, finite, always in
// the same order.
using Residuals = std::function<std::vector<double>(const std::vector<double>& constants)>;

struct FitProblem {
  std::vector<FreeConstant> constants;
  Residuals residuals;
  std::vector<std::string> sources;  // of each figure; figures of one source share a weight, see FitOptions
  std::vector<std::string> groups;   // of each figure: what is left out together
  // Of each figure: what it would scatter under a perfect model, instead of FitOptions::figure_spread. Empty: all that.
  std::vector<double> spreads;
};

struct FitOptions {
  // What a figure of a perfect model would scatter: residuals of this size weigh as much as a constant one `spread` off
  // its prior. The loss (soft L1) grows linearly beyond it, so that a wrong row cannot pull far.
  double figure_spread = 0.1;
  // A source of n figures weighs n^this: 1 counts figures, 0 counts sources.
  double source_power = 0.5;
  // Step of the numeric derivatives, of the logarithm or of `spread` (kLinear).
  double derivative_step = 1e-3;
  int max_iterations = 30;
  // Folds minimise residuals that are linear about the fit of all figures, where derivatives are known: for predictions
  // that take too long to be asked for anew in every fold. What they leave out is predicted in full.
  bool linear_folds = false;
};

struct Fit {
  std::vector<double> constants;  // in the order of `FitProblem::constants`
  std::vector<double> residuals;  // of every figure, left out or not
  double cost = 0;
};

// All figures.
Fit FitAll(const FitProblem& problem, const FitOptions& options);

// One group left out.
struct Fold {
  std::string group;
  Fit fit;
};

struct CrossValidation {
  Fit all;
  std::vector<bool> moves;       // of each constant: whether any figure depends on it where the fit of all ended
  std::vector<Fold> folds;       // by group, in the order of first appearance; none for a single group
  std::vector<double> left_out;  // residual of each figure under the fold that left it out
};

// FitAll, and once without each group, from where FitAll ended. With a single group `left_out` is that of the priors.
CrossValidation CrossValidate(const FitProblem& problem, const FitOptions& options);

// Where the middle 90% of measured / predicted lie.
struct IntervalRatios {
  double low = 0;   // 5% quantile
  double high = 0;  // 95% quantile
};

// Of at least one ln(predicted / measured).
IntervalRatios IntervalOf(const std::vector<double>& residuals);

}  // namespace sliceplan::calibration

#endif  // SLICEPLAN_SERVER_CALIBRATION_FIT_H_
