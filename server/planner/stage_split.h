// Which layers each pipeline stage runs. Chunk c of pipeline x virtual stages runs on stage c % pipeline, as
// interleaved schedules place them (Narayanan et al. 2021, section 2.2).
#ifndef SLICEPLAN_SERVER_PLANNER_STAGE_SPLIT_H_
#define SLICEPLAN_SERVER_PLANNER_STAGE_SPLIT_H_

#include <cstddef>
#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "server/planner/parallelism.h"
#include "server/transformer/operations.h"

namespace sliceplan::planner {

struct StageSplit {
  int32_t stage_count = 1;
  int32_t kind_count = 1;
  absl::InlinedVector<int32_t, 16> layers_per_chunk;  // in the order that they run
  absl::InlinedVector<int32_t, 32> layer_counts;      // [stage][kind], kinds as in ModelOperations.layers

  // Layers of each kind on one stage, 0 to stage_count - 1.
  absl::Span<const int32_t> OfStage(int32_t stage) const {
    const size_t kinds = static_cast<size_t>(kind_count);
    return absl::MakeConstSpan(layer_counts).subspan(static_cast<size_t>(stage) * kinds, kinds);
  }
  // Whether two chunks differ in size.
  bool IsUneven() const;
};

// Layers of chunk `chunk` of `chunk_count` by default: as even as it goes, first and last smallest. The larger chunks
// are the last ones but one, where schedules hold the fewest microbatches; the first chunk grows only when all but the
// last must. Requires 0 <= chunk < chunk_count <= layer_count.
constexpr int64_t DefaultChunkLayers(int64_t layer_count, int64_t chunk_count, int64_t chunk) {
  const int64_t remainder = layer_count % chunk_count;
  const bool larger = chunk + 1 < chunk_count && chunk + 1 >= chunk_count - remainder;
  return layer_count / chunk_count + (larger ? 1 : 0);
}

// Fills `split`, whose storage is reused. Requires a legal plan (legality.h): chunks of at least one layer each that
// add up to the model's layers. Layers beyond the main stack (multi-token prediction) are not counted: they follow the
// last.
void SplitStages(const transformer::ModelOperations& model, const Parallelism& parallelism, StageSplit& split);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_STAGE_SPLIT_H_
