// The counts of a model that degrees of a plan must divide.
#ifndef SLICEPLAN_SERVER_PLANNER_MODEL_DIVISORS_H_
#define SLICEPLAN_SERVER_PLANNER_MODEL_DIVISORS_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "server/transformer/operations.h"

namespace sliceplan::planner {

// Gathered once per model. Names are plural and live forever.
struct ModelDivisors {
  // What tensor parallelism deals out whole: heads of each kind. `copies`: copied when tensor exceeds them.
  struct Unit {
    int32_t count = 0;
    bool copies = false;
    absl::string_view name;  // "query heads"
  };
  // Widths that tensor parallelism cuts anywhere, padding what is left over.
  struct Width {
    int64_t size = 0;
    absl::string_view name;  // "FFN width"
  };
  absl::InlinedVector<Unit, 4> units;             // distinct counts
  absl::InlinedVector<Width, 4> widths;           // distinct sizes
  absl::InlinedVector<int32_t, 2> expert_counts;  // distinct; empty: a dense model
  int64_t layer_count = 0;                        // without multi-token prediction
  int64_t vocab_size = 0;

  // What tensor must divide on account of heads that are never copied; 0: anything.
  int64_t HeadDivisor() const;
  // What expert must divide; 0: no experts.
  int64_t ExpertDivisor() const;
};

ModelDivisors DivisorsOf(const transformer::ModelOperations& model);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_MODEL_DIVISORS_H_
