// The recompute keys of a MaxText config.
#ifndef SLICEPLAN_SERVER_PLANNER_RENDER_MAXTEXT_REMAT_H_
#define SLICEPLAN_SERVER_PLANNER_RENDER_MAXTEXT_REMAT_H_

#include <string>

#include "server/planner/render/render_words.h"

namespace sliceplan::planner {

// "remat_policy: ..." and, where that is "custom", a line for each tensor of the model's layers.
std::string MaxTextRemat(const RenderInput& input);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_RENDER_MAXTEXT_REMAT_H_
