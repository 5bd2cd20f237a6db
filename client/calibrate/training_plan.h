// Where a training row ran and how it was spread: slice, degrees, microbatches.
#ifndef SLICEPLAN_CLIENT_CALIBRATE_TRAINING_PLAN_H_
#define SLICEPLAN_CLIENT_CALIBRATE_TRAINING_PLAN_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/calibrate/table.h"
#include "proto/sliceplan/v1/hardware.pb.h"
#include "proto/sliceplan/v1/parallelism.pb.h"
#include "server/catalog/catalog.h"

namespace sliceplan::calibrate {

struct RowPlan {
  v1::Slice slice;
  std::string accelerator;                     // catalog id
  std::optional<v1::Parallelism> parallelism;  // absent: the row names no degrees
  std::optional<int32_t> gradient_accumulation;
  std::vector<std::string> unknown;  // what the time depends on and the row does not say
  std::vector<std::string> taken;    // what was taken for it
};

// `chips` are physical chips; the degrees count devices and multiply to chips x devices of a chip, `ep` beside `dp` or
// inside it; a blank `dp` is what remains. `sp_or_cp` is a number of context shards, or SP=TP: Megatron's sequence
// parallelism. INVALID_ARGUMENT: no chip of the catalog, no chip count, degrees that do not divide the chips.
absl::StatusOr<RowPlan> PlanOfRow(const Row& row, const catalog::Catalog& catalog);

}  // namespace sliceplan::calibrate

#endif  // SLICEPLAN_CLIENT_CALIBRATE_TRAINING_PLAN_H_
