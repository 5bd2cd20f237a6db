// Where load meets step time: what one step of an engine computes, and how long that takes.
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_STEP_SHAPE_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_STEP_SHAPE_H_

#include <cstdint>

namespace sliceplan::planner {

// One step of one replica. A step without decodes has no context of decodes, one without prompts none of prompts.
struct StepShape {
  int64_t decode_sequences = 0;      // sequences that write output in this step
  double decode_context_tokens = 0;  // mean keys that they see, the step's own token included
  int64_t prefill_tokens = 0;        // prompt tokens computed in this step, all prompts together
  // Mean keys that a prompt token of this step sees before the step's own chunk: cached prefix and earlier chunks.
  double prefill_context_tokens = 0;
  int64_t prefill_sequences = 0;    // prompts with a chunk in this step
  int64_t tokens_per_sequence = 1;  // tokens checked per decoding sequence: 1 + drafted tokens
};

class StepTimer {
 public:
  virtual ~StepTimer() = default;

  // Seconds of one step: finite, above 0, non-decreasing in every field. Requires some work. The same shape always
  // takes the same time. Called from one thread at a time.
  virtual double Seconds(const StepShape& shape) const = 0;
};

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SERVING_STEP_SHAPE_H_
