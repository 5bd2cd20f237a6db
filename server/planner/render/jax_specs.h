// The PartitionSpecs of a plan as Python text; docs/training.md says how weights and activations are split.
#ifndef SLICEPLAN_SERVER_PLANNER_RENDER_JAX_SPECS_H_
#define SLICEPLAN_SERVER_PLANNER_RENDER_JAX_SPECS_H_

#include <string>

#include "server/planner/render/render_words.h"

namespace sliceplan::planner {

// def weight_specs(...), PARAMETERS, GRADIENTS and OPTIMIZER_STATE, stacked().
std::string JaxWeightSpecs(const RenderInput& input, const DeviceDegrees& degrees);

// ACTIVATIONS.
std::string JaxActivationSpecs(const RenderInput& input, const DeviceDegrees& degrees);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_RENDER_JAX_SPECS_H_
