// Whether a parallelism can run a model on a slice. Rules of Megatron (heads, virtual stages, chunks of a causal
// sequence), and of the contract (proto/sliceplan/v1/parallelism.proto). Where the axes lie is checked with the
// mapping.
#ifndef SLICEPLAN_SERVER_PLANNER_LEGALITY_H_
#define SLICEPLAN_SERVER_PLANNER_LEGALITY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "server/hardware/slice.h"
#include "server/hardware/violation.h"
#include "server/planner/model_divisors.h"
#include "server/planner/parallelism.h"
#include "server/planner/training_estimate.h"
#include "server/planner/training_job.h"
#include "server/transformer/operations.h"

namespace sliceplan::planner {

inline constexpr int64_t kMaxDegree = int64_t{1} << 20;
inline constexpr int32_t kMaxVirtualStages = 1024;
inline constexpr int32_t kMaxMicrobatches = 1 << 20;
inline constexpr int64_t kMaxAccumulation = int64_t{1} << 20;

struct LegalityOptions {
  bool allow_idle_chips = false;  // fewer chips than the slice has
  bool allow_padding = false;     // heads and experts that divide unevenly
};

// Adds one violation for everything that is wrong, and to `notes` a sentence for everything that is uneven, copied,
// padded or idle in a plan that is right; `paddings`, when given, receives the same as numbers. Fields are relative to
// the request: "parallelism.ici.tensor". The workload's own ranges are checked by CheckWorkload.
void CheckParallelism(const transformer::ModelOperations& model, const hardware::Slice& slice,
                      const TrainingWorkload& workload, const Parallelism& parallelism, bool allow_idle_chips,
                      bool allow_padding, std::vector<hardware::Violation>& violations, std::vector<std::string>& notes,
                      std::vector<Padding>* paddings = nullptr);

// Whether CheckParallelism would find nothing wrong; for loops over plans. Does not allocate.
bool IsLegal(const ModelDivisors& divisors, const hardware::Slice& slice, const TrainingWorkload& workload,
             const Parallelism& parallelism, LegalityOptions options);

// Prime factors of a slice's chips that neither batch, sequence nor heads of the job have, so that only pipeline stages
// can take them. A sentence, or empty when there are none. "A slice of 8,960 chips is 2^8 x 5 x 7, and neither ...".
std::string ExplainOddFactors(const ModelDivisors& divisors, const hardware::Slice& slice,
                              const TrainingWorkload& workload);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_LEGALITY_H_
