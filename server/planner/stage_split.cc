#include "server/planner/stage_split.h"

#include <algorithm>

namespace sliceplan::planner {

bool StageSplit::IsUneven() const {
  return std::any_of(layers_per_chunk.begin(), layers_per_chunk.end(),
                     [this](int32_t layers) { return layers != layers_per_chunk.front(); });
}

void SplitStages(const transformer::ModelOperations& model, const Parallelism& parallelism, StageSplit& split) {
  const int64_t layer_count = static_cast<int64_t>(model.layer_kind.size());
  const int64_t stages = int64_t{parallelism.ici[LogicalAxis::kPipeline]} * parallelism.dcn[LogicalAxis::kPipeline];
  const int64_t chunks = stages * parallelism.virtual_stage_count;
  const size_t kinds = model.layers.size();
  split.stage_count = static_cast<int32_t>(stages);
  split.kind_count = static_cast<int32_t>(kinds);

  const auto& given = parallelism.layers_per_stage;
  if (given.empty()) {
    split.layers_per_chunk.resize(static_cast<size_t>(chunks));
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      split.layers_per_chunk[static_cast<size_t>(chunk)] =
          static_cast<int32_t>(DefaultChunkLayers(layer_count, chunks, chunk));
    }
  } else {
    split.layers_per_chunk.assign(given.begin(), given.end());
  }

  split.layer_counts.assign(static_cast<size_t>(stages) * kinds, 0);
  size_t position = 0;
  size_t stage = 0;
  for (const int32_t layers : split.layers_per_chunk) {
    int32_t* const counts = &split.layer_counts[stage * kinds];
    if (kinds == 1) {
      counts[0] += layers;
    } else {
      const size_t end = position + static_cast<size_t>(layers);
      for (; position < end; ++position) ++counts[model.layer_kind[position]];
    }
    if (++stage == static_cast<size_t>(stages)) stage = 0;
  }
}

}  // namespace sliceplan::planner
