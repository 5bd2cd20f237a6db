// Step times that are asked for again and again.
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_STEP_CACHE_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_STEP_CACHE_H_

#include <cstdint>
#include <vector>

#include "server/planner/serving/step_shape.h"

namespace sliceplan::planner {

// One timer's answers. Steps without prompts are asked at contexts of 2^n x {1, 1.25, 1.5, 1.75} and interpolated in
// between: exact where time is linear in context. Others are remembered as they are; with varied prompts they hardly
// ever come twice: about one question per request.
class StepCache {
 public:
  StepCache(const StepTimer& timer, int64_t tokens_per_sequence);

  // Requires sequences >= 1, context_tokens >= 1.
  double DecodeSeconds(int64_t sequences, double context_tokens);
  // Sets tokens_per_sequence.
  double Seconds(StepShape shape);

 private:
  struct Node {
    uint64_t key = 0;
    double seconds = 0;
  };
  struct Entry {
    StepShape shape;
    double seconds = 0;
  };

  double AtNode(int64_t sequences, uint64_t node);

  const StepTimer& timer_;
  int64_t tokens_per_sequence_;
  std::vector<Node> nodes_;
  std::vector<Entry> entries_;
};

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SERVING_STEP_CACHE_H_
