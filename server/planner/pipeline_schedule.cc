#include "server/planner/pipeline_schedule.h"

#include <algorithm>

namespace sliceplan::planner {
namespace {

double Real(int64_t count) { return static_cast<double>(count); }

}  // namespace

double BubbleTime(const PipelineShape& shape, const StageWork& work) {
  const double waits = Real(shape.stage_count - 1);
  switch (shape.schedule) {
    case PipelineSchedule::kGpipe:
    case PipelineSchedule::kOneFOneB: return waits * work.Total();
    case PipelineSchedule::kInterleaved1F1B: return waits / Real(shape.virtual_stage_count) * work.Total();
    case PipelineSchedule::kZeroBubble:
      return waits * std::max(0.0, work.forward + work.input_gradient - work.weight_gradient);
  }
  return 0;
}

double ScheduleTime(const PipelineShape& shape, const StageWork& work) {
  return Real(shape.microbatch_count) * work.Total() + BubbleTime(shape, work);
}

double BubbleRatio(const PipelineShape& shape, const StageWork& work) {
  const double total = ScheduleTime(shape, work);
  return total > 0 ? BubbleTime(shape, work) / total : 0;
}

double MicrobatchesInFlight(const PipelineShape& shape, int64_t stage) {
  const int64_t stages = shape.stage_count;
  const int64_t microbatches = shape.microbatch_count;
  switch (shape.schedule) {
    case PipelineSchedule::kGpipe: return Real(microbatches);
    case PipelineSchedule::kOneFOneB:
    case PipelineSchedule::kZeroBubble: return Real(std::min(microbatches, stages - stage));
    case PipelineSchedule::kInterleaved1F1B: break;
  }
  const double chunks = Real(shape.virtual_stage_count);
  if (shape.virtual_stage_count == 1) return Real(std::min(microbatches, stages - stage));
  const double all = Real(microbatches) * chunks;
  if (microbatches == stages) return all / chunks;
  const double warm_up = 2 * Real(stages - stage - 1) + (chunks - 1) * Real(stages) + 1;
  return std::min(all, warm_up) / chunks;
}

PipelineTraffic PipelineTrafficOf(const PipelineShape& shape, double tokens, double hidden_dim,
                                  double bytes_per_element, double bytes_per_second) {
  PipelineTraffic traffic;
  if (shape.stage_count <= 1) return traffic;
  traffic.seconds_per_hop = tokens * hidden_dim * bytes_per_element / (bytes_per_second * Real(shape.microbatch_count));
  traffic.hop_count = shape.microbatch_count + shape.stage_count - 2;
  traffic.total_seconds = traffic.seconds_per_hop * Real(traffic.hop_count);
  return traffic;
}

double PipelineSecondsPerLayer(double tokens, double hidden_dim, double bytes_per_element, double bytes_per_second,
                               double layer_count) {
  // Hops over microbatches when there are about twice as many microbatches as stages: (m + p - 2) / m.
  constexpr double kHopsPerMicrobatch = 1.5;
  return kHopsPerMicrobatch * tokens * hidden_dim * bytes_per_element / (bytes_per_second * layer_count);
}

}  // namespace sliceplan::planner
