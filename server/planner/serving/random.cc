#include "server/planner/serving/random.h"

#include <cmath>

namespace sliceplan::planner {
namespace {

// Acklam's rational approximations: tails below kTail and the middle.
constexpr double kTail = 0.02425;

double TailQuantile(double p) {
  const double q = std::sqrt(-2 * std::log(p));
  const double above = ((((-7.784894002430293e-03 * q - 3.223964580411365e-01) * q - 2.400758277161838e+00) * q -
                         2.549732539343734e+00) *
                            q +
                        4.374664141464968e+00) *
                           q +
                       2.938163982698783e+00;
  const double below =
      (((7.784695709041462e-03 * q + 3.224671290700398e-01) * q + 2.445134137142996e+00) * q + 3.754408661907416e+00) *
          q +
      1;
  return above / below;
}

double MiddleQuantile(double p) {
  const double q = p - 0.5;
  const double r = q * q;
  const double above = ((((-3.969683028665376e+01 * r + 2.209460984245205e+02) * r - 2.759285104469687e+02) * r +
                         1.383577518672690e+02) *
                            r -
                        3.066479806614716e+01) *
                           r +
                       2.506628277459239e+00;
  const double below = ((((-5.447609879822406e+01 * r + 1.615858368580409e+02) * r - 1.556989798598866e+02) * r +
                         6.680131188771972e+01) *
                            r -
                        1.328068155288572e+01) *
                           r +
                       1;
  return above * q / below;
}

}  // namespace

double NormalQuantile(double p) {
  if (p < kTail) return TailQuantile(p);
  if (p > 1 - kTail) return -TailQuantile(1 - p);
  return MiddleQuantile(p);
}

double NormalProbability(double x) { return 0.5 * std::erfc(-x * std::sqrt(0.5)); }

double Random::Exponential() { return -std::log(Uniform()); }

double Random::Normal() { return NormalQuantile(Uniform()); }

// Marsaglia, Tsang, "A simple method for generating gamma variables", ACM TOMS 26(3), 2000; shapes below 1 by their
// power of a uniform variable.
double Random::Gamma(double c2) {
  const double shape = 1 / c2;
  const double boosted = shape < 1 ? shape + 1 : shape;
  const double d = boosted - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = Normal();
    const double v = (1 + c * x) * (1 + c * x) * (1 + c * x);
    if (v <= 0) continue;
    if (std::log(Uniform()) >= 0.5 * x * x + d - d * v + d * std::log(v)) continue;
    const double drawn = shape < 1 ? d * v * std::pow(Uniform(), 1 / shape) : d * v;
    return drawn * c2;
  }
}

}  // namespace sliceplan::planner
