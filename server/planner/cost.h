// Money and energy of a job from chips and seconds.
#ifndef SLICEPLAN_SERVER_PLANNER_COST_H_
#define SLICEPLAN_SERVER_PLANNER_COST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/hardware/accelerator.h"
#include "server/planner/training_estimate.h"

namespace sliceplan::planner {

double ChipHours(int64_t chip_count, double seconds);

// `paid_chip_count` includes idle chips. A step is priced without interruptions; a token with them, by
// `goodput_ratio`, unset where nothing is left; the total is what `total_seconds` of all chips cost, so pass the wall
// time. tokens_per_step > 0.
Cost CostOf(double usd_per_chip_hour, int64_t paid_chip_count, double step_seconds, double tokens_per_step,
            std::optional<double> goodput_ratio, std::optional<double> total_seconds);

// Of one chip: its mean under load or, where only that is public, its thermal design power.
std::optional<double> WattsOf(const hardware::AcceleratorSpec& accelerator);

// Energy of the chips alone, without hosts, network and cooling, at their mean power under load or, where only that is
// public, at their thermal design power; `assumptions` says which. Unset when neither is public.
std::optional<Energy> EnergyOf(const hardware::AcceleratorSpec& accelerator, int64_t chip_count, double step_seconds,
                               std::optional<double> total_seconds, std::vector<std::string>& assumptions);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_COST_H_
