// Idle time, work in flight and traffic of pipeline schedules. "How To Scale Your Model", chapter 12; GPipe (Huang et
// al. 2019), 1F1B and interleaved 1F1B (Narayanan et al. 2021, section 2.2), zero bubble ZB-H1, which keeps the memory
// of 1F1B (Qi et al. 2023, section 3).
#ifndef SLICEPLAN_SERVER_PLANNER_PIPELINE_SCHEDULE_H_
#define SLICEPLAN_SERVER_PLANNER_PIPELINE_SCHEDULE_H_

#include <cstdint>

#include "server/planner/parallelism.h"

namespace sliceplan::planner {

// Counts at least 1; `virtual_stage_count` counts in kInterleaved1F1B only, which fills its groups when
// microbatch_count is a multiple of stage_count.
struct PipelineShape {
  PipelineSchedule schedule = PipelineSchedule::kOneFOneB;
  int64_t stage_count = 1;          // p
  int64_t microbatch_count = 1;     // m
  int64_t virtual_stage_count = 1;  // v
};

// One microbatch on one stage, all its chunks. Not negative, in seconds or any other unit.
struct StageWork {
  double forward = 1;
  double input_gradient = 1;   // the part of the backward pass that the stage before waits for
  double weight_gradient = 1;  // the part that can be put off
  double Total() const { return forward + input_gradient + weight_gradient; }
};

// Time that a stage idles from the first forward to the last backward of a step, stages alike:
//   kGpipe, kOneFOneB   (p - 1) x (F + B + W)
//   kInterleaved1F1B    (p - 1) / v x (F + B + W)
//   kZeroBubble         (p - 1) x (F + B - W), at least 0
double BubbleTime(const PipelineShape& shape, const StageWork& work);

// m x (F + B + W) + BubbleTime.
double ScheduleTime(const PipelineShape& shape, const StageWork& work);

// BubbleTime / ScheduleTime: (p - 1) / (m + p - 1) for kGpipe and kOneFOneB. 0 to below 1; 0 without work.
double BubbleRatio(const PipelineShape& shape, const StageWork& work = {});

// Microbatches whose activations stage `stage` (0 is the first) holds at the worst moment, in activations of the whole
// stage: m under kGpipe; min(m, p - stage) under kOneFOneB and kZeroBubble; interleaved, chunks of 1 / v stage each:
// min(m x v, 2 x (p - stage - 1) + (v - 1) x p + 1) / v, and all of m x v when m = p.
double MicrobatchesInFlight(const PipelineShape& shape, int64_t stage);

// Activations sent to the next stage and gradients sent back do not overlap with the fill and drain of the pipeline.
struct PipelineTraffic {
  double seconds_per_hop = 0;  // one microbatch across one stage boundary
  int64_t hop_count = 0;       // m + p - 2 on the critical path, one way
  double total_seconds = 0;
};
// `tokens` x `hidden_dim` activations of `bytes_per_element` in m microbatches through `bytes_per_second`.
PipelineTraffic PipelineTrafficOf(const PipelineShape& shape, double tokens, double hidden_dim,
                                  double bytes_per_element, double bytes_per_second);
// The book's rule of thumb for many microbatches, spread over the layers: 1.5 x tokens x hidden x bytes / (rate x
// layers).
double PipelineSecondsPerLayer(double tokens, double hidden_dim, double bytes_per_element, double bytes_per_second,
                               double layer_count);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_PIPELINE_SCHEDULE_H_
