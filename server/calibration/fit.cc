#include "server/calibration/fit.h"

#include <ceres/cost_function.h>
#include <ceres/problem.h>
#include <ceres/solver.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "server/calibration/error_summary.h"

namespace sliceplan::calibration {
namespace {

double ToParameter(const FreeConstant& constant, double value) {
  return constant.scale == Scale::kLogarithmic ? std::log(value) : value / constant.spread;
}

double ToValue(const FreeConstant& constant, double parameter) {
  const double value = constant.scale == Scale::kLogarithmic ? std::exp(parameter) : parameter * constant.spread;
  return std::clamp(value, constant.lower, constant.upper);
}

double PriorResidual(const FreeConstant& constant, double parameter) {
  const double off = parameter - ToParameter(constant, constant.prior);
  return constant.scale == Scale::kLogarithmic ? off / constant.spread : off;
}

// Square root of the soft L1 loss, with its sign: the solver squares it again.
double Softened(double scaled) { return std::copysign(std::sqrt(2 * (std::sqrt(1 + scaled * scaled) - 1)), scaled); }

// What predictions were already asked for: every fold starts where the fit of all figures ended.
class Memory {
 public:
  explicit Memory(const FitProblem& problem) : problem_(problem) {}

  const std::vector<double>& ResidualsAt(const double* parameters) {
    std::vector<double> key(parameters, parameters + problem_.constants.size());
    const auto found = known_.find(key);
    if (found != known_.end()) return found->second;
    return known_.emplace(std::move(key), problem_.residuals(ValuesAt(parameters))).first->second;
  }

  std::vector<double> ValuesAt(const double* parameters) const {
    std::vector<double> values;
    for (size_t i = 0; i < problem_.constants.size(); ++i)
      values.push_back(ToValue(problem_.constants[i], parameters[i]));
    return values;
  }

 private:
  const FitProblem& problem_;
  std::map<std::vector<double>, std::vector<double>> known_;
};

// Square roots of the figures' weights; 0 for the figures of `left_out`.
std::vector<double> WeightRoots(const FitProblem& problem, const FitOptions& options, const std::string* left_out) {
  const auto counts = [&](size_t i) { return left_out == nullptr || problem.groups[i] != *left_out; };
  std::map<std::string, double> figures_of_source;
  for (size_t i = 0; i < problem.sources.size(); ++i) {
    if (counts(i)) ++figures_of_source[problem.sources[i]];
  }
  std::vector<double> roots;
  for (size_t i = 0; i < problem.sources.size(); ++i) {
    roots.push_back(counts(i) ? std::pow(figures_of_source[problem.sources[i]], 0.5 * (options.source_power - 1)) : 0);
  }
  return roots;
}

// Step of a derivative, away from the bound that is nearer.
double StepFrom(const FreeConstant& constant, double parameter, const FitOptions& options) {
  const bool beyond = parameter + options.derivative_step > ToParameter(constant, constant.upper);
  return beyond ? -options.derivative_step : options.derivative_step;
}

// Whether a step of each constant changes any figure.
std::vector<bool> MovesAt(const FitProblem& problem, const FitOptions& options, Memory& memory,
                          std::vector<double> parameters) {
  std::vector<bool> moves;
  for (size_t c = 0; c < parameters.size(); ++c) {
    const double kept = parameters[c];
    parameters[c] += StepFrom(problem.constants[c], kept, options);
    const std::vector<double> there = memory.ResidualsAt(parameters.data());
    parameters[c] = kept;
    moves.push_back(there != memory.ResidualsAt(parameters.data()));
  }
  return moves;
}

// The problem with residuals that are linear about `parameters`, in parameters as the solver has them.
FitProblem LinearAbout(const FitProblem& problem, const FitOptions& options, const std::vector<double>& parameters,
                       Memory& memory) {
  const std::vector<double> here = memory.ResidualsAt(parameters.data());
  std::vector<std::vector<double>> slopes;  // by constant
  for (size_t c = 0; c < parameters.size(); ++c) {
    std::vector<double> moved = parameters;
    const double step = StepFrom(problem.constants[c], moved[c], options);
    moved[c] += step;
    std::vector<double> slope = memory.ResidualsAt(moved.data());
    for (size_t i = 0; i < slope.size(); ++i) slope[i] = (slope[i] - here[i]) / step;
    slopes.push_back(std::move(slope));
  }
  FitProblem linear = problem;
  linear.residuals = [here, slopes = std::move(slopes), parameters,
                      constants = problem.constants](const std::vector<double>& values) {
    std::vector<double> residuals = here;
    for (size_t c = 0; c < values.size(); ++c) {
      const double moved = ToParameter(constants[c], values[c]) - parameters[c];
      for (size_t i = 0; i < residuals.size(); ++i) residuals[i] += moved * slopes[c][i];
    }
    return residuals;
  };
  return linear;
}

// All figures and priors as one block: one evaluation asks for every prediction at once.
class AllResiduals : public ceres::CostFunction {
 public:
  AllResiduals(const FitProblem& problem, const FitOptions& options, std::vector<double> weight_roots, Memory& memory)
      : problem_(problem), options_(options), weight_roots_(std::move(weight_roots)), memory_(memory) {
    mutable_parameter_block_sizes()->push_back(static_cast<int>(problem.constants.size()));
    set_num_residuals(static_cast<int>(weight_roots_.size() + problem.constants.size()));
  }

  bool Evaluate(double const* const* blocks, double* residuals, double** jacobians) const override {
    const size_t constants = problem_.constants.size();
    const std::vector<double> here = At(blocks[0]);
    std::copy(here.begin(), here.end(), residuals);
    if (jacobians == nullptr || jacobians[0] == nullptr) return true;
    std::vector<double> moved(blocks[0], blocks[0] + constants);
    for (size_t c = 0; c < constants; ++c) {
      const double step = StepFrom(problem_.constants[c], moved[c], options_);
      const double kept = moved[c];
      moved[c] += step;
      const std::vector<double> there = At(moved.data());
      moved[c] = kept;
      for (size_t r = 0; r < here.size(); ++r) jacobians[0][r * constants + c] = (there[r] - here[r]) / step;
    }
    return true;
  }

 private:
  double SpreadOf(size_t figure) const {
    return problem_.spreads.empty() ? options_.figure_spread : problem_.spreads[figure];
  }

  std::vector<double> At(const double* parameters) const {
    std::vector<double> all;
    const std::vector<double>& figures = memory_.ResidualsAt(parameters);
    for (size_t i = 0; i < figures.size(); ++i) all.push_back(weight_roots_[i] * Softened(figures[i] / SpreadOf(i)));
    for (size_t c = 0; c < problem_.constants.size(); ++c)
      all.push_back(PriorResidual(problem_.constants[c], parameters[c]));
    return all;
  }

  const FitProblem& problem_;
  const FitOptions& options_;
  const std::vector<double> weight_roots_;
  Memory& memory_;
};

// Moves `parameters` to the minimum.
Fit Solve(const FitProblem& problem, const FitOptions& options, const std::string* left_out, Memory& memory,
          std::vector<double>& parameters) {
  Fit fit;
  if (!parameters.empty()) {
    ceres::Problem solved;
    solved.AddResidualBlock(new AllResiduals(problem, options, WeightRoots(problem, options, left_out), memory),
                            nullptr, parameters.data());
    for (size_t c = 0; c < parameters.size(); ++c) {
      const FreeConstant& constant = problem.constants[c];
      solved.SetParameterLowerBound(parameters.data(), static_cast<int>(c), ToParameter(constant, constant.lower));
      solved.SetParameterUpperBound(parameters.data(), static_cast<int>(c), ToParameter(constant, constant.upper));
    }
    ceres::Solver::Options solver;
    solver.linear_solver_type = ceres::DENSE_QR;
    solver.max_num_iterations = options.max_iterations;
    solver.logging_type = ceres::SILENT;
    solver.num_threads = 1;
    // Constants are published with three digits.
    solver.parameter_tolerance = 1e-5;
    solver.function_tolerance = 1e-7;
    ceres::Solver::Summary summary;
    ceres::Solve(solver, &solved, &summary);
    fit.cost = summary.final_cost;
  }
  fit.constants = memory.ValuesAt(parameters.data());
  fit.residuals = memory.ResidualsAt(parameters.data());
  return fit;
}

std::vector<double> Start(const FitProblem& problem, double FreeConstant::*from) {
  std::vector<double> parameters;
  for (const FreeConstant& constant : problem.constants)
    parameters.push_back(ToParameter(constant, std::clamp(constant.*from, constant.lower, constant.upper)));
  return parameters;
}

}  // namespace

Fit FitAll(const FitProblem& problem, const FitOptions& options) {
  Memory memory(problem);
  std::vector<double> parameters = Start(problem, &FreeConstant::start);
  return Solve(problem, options, nullptr, memory, parameters);
}

CrossValidation CrossValidate(const FitProblem& problem, const FitOptions& options) {
  Memory memory(problem);
  std::vector<double> parameters = Start(problem, &FreeConstant::start);
  CrossValidation result;
  result.all = Solve(problem, options, nullptr, memory, parameters);
  result.moves = MovesAt(problem, options, memory, parameters);
  std::vector<std::string> groups;
  for (const std::string& group : problem.groups) {
    if (std::find(groups.begin(), groups.end(), group) == groups.end()) groups.push_back(group);
  }
  if (groups.size() < 2) {
    result.left_out = memory.ResidualsAt(Start(problem, &FreeConstant::prior).data());
    return result;
  }
  result.left_out.resize(problem.groups.size());
  FitProblem linear;
  if (options.linear_folds) linear = LinearAbout(problem, options, parameters, memory);
  const FitProblem& solved = options.linear_folds ? linear : problem;
  Memory linear_memory(solved);
  Memory& solved_memory = options.linear_folds ? linear_memory : memory;
  for (const std::string& group : groups) {
    std::vector<double> moved = parameters;
    result.folds.push_back({group, Solve(solved, options, &group, solved_memory, moved)});
    if (options.linear_folds) result.folds.back().fit.residuals = memory.ResidualsAt(moved.data());
    for (size_t i = 0; i < problem.groups.size(); ++i) {
      if (problem.groups[i] == group) result.left_out[i] = result.folds.back().fit.residuals[i];
    }
  }
  return result;
}

IntervalRatios IntervalOf(const std::vector<double>& residuals) {
  constexpr double kLowShare = 0.05;
  constexpr double kHighShare = 0.95;
  // measured / predicted is largest where the residual is smallest.
  return {std::exp(-Quantile(residuals, kHighShare)), std::exp(-Quantile(residuals, kLowShare))};
}

}  // namespace sliceplan::calibration
