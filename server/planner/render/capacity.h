// The terms on which capacity is asked for, and the labels of the nodes that have it.
#ifndef SLICEPLAN_SERVER_PLANNER_RENDER_CAPACITY_H_
#define SLICEPLAN_SERVER_PLANNER_RENDER_CAPACITY_H_

#include <string>
#include <utility>
#include <vector>

#include "server/planner/render/render_words.h"

namespace sliceplan::planner {

using Labels = std::vector<std::pair<std::string, std::string>>;

// Labels of the GKE nodes of the slice: accelerator, topology, terms, zone. FAILED_PRECONDITION when the label of the
// accelerator is not known.
absl::StatusOr<Labels> NodeLabels(RenderTarget target, const RenderInput& input);

// "key: \"value\"" lines.
std::string LabelLines(const Labels& labels, absl::string_view indent);

// "google.com/tpu" or "nvidia.com/gpu".
absl::string_view ChipResource(const RenderInput& input);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_RENDER_CAPACITY_H_
