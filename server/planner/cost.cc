#include "server/planner/cost.h"

#include "absl/strings/str_cat.h"
#include "server/planner/budget.h"
#include "server/planner/words.h"

namespace sliceplan::planner {
double ChipHours(int64_t chip_count, double seconds) {
  return static_cast<double>(chip_count) * seconds / kSecondsPerHour;
}

Cost CostOf(double usd_per_chip_hour, int64_t paid_chip_count, double step_seconds, double tokens_per_step,
            std::optional<double> goodput_ratio, std::optional<double> total_seconds) {
  Cost cost;
  cost.usd_per_chip_hour = usd_per_chip_hour;
  cost.usd_per_step = usd_per_chip_hour * ChipHours(paid_chip_count, step_seconds);
  if (goodput_ratio) {
    cost.usd_per_million_tokens = cost.usd_per_step / tokens_per_step * kTokensPerMillion / *goodput_ratio;
  }
  if (total_seconds) cost.total_usd = usd_per_chip_hour * ChipHours(paid_chip_count, *total_seconds);
  return cost;
}

std::optional<double> WattsOf(const hardware::AcceleratorSpec& accelerator) {
  return accelerator.mean_watts ? accelerator.mean_watts : accelerator.tdp_watts;
}

std::optional<Energy> EnergyOf(const hardware::AcceleratorSpec& accelerator, int64_t chip_count, double step_seconds,
                               std::optional<double> total_seconds, std::vector<std::string>& assumptions) {
  const std::optional<double> watts = WattsOf(accelerator);
  if (!watts) return std::nullopt;
  assumptions.push_back(
      absl::StrCat("Energy is that of the chips alone at ", NumberWords(*watts),
                   accelerator.mean_watts ? " W, their mean under load." : " W, their thermal design power."));
  const double job_watts = static_cast<double>(chip_count) * *watts;
  Energy energy;
  energy.joules_per_step = job_watts * step_seconds;
  if (total_seconds) energy.total_kilowatt_hours = job_watts * *total_seconds / kJoulesPerKilowattHour;
  return energy;
}

}  // namespace sliceplan::planner
