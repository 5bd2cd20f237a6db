// One replica of the replay: its queue, its cache blocks, its steps.
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_ENGINE_REPLICA_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_ENGINE_REPLICA_H_

#include <cstdint>
#include <deque>
#include <limits>
#include <vector>

#include "server/planner/serving/latency_stats.h"
#include "server/planner/serving/serving_load.h"
#include "server/planner/serving/step_cache.h"

namespace sliceplan::planner {

inline constexpr double kNever = std::numeric_limits<double>::infinity();

// A request on its way. Replicas of a system share one pool of them and name them by index.
struct ReplayRequest {
  double arrival = 0;
  double first_start = -1;  // of the first step that reads its prompt; < 0: not yet
  double first_token = -1;  // < 0: not yet
  double last_token = 0;    // when it last joined the decodes, or was sent back; < 0: when it is admitted
  int64_t prompt = 1;
  int64_t output = 1;
  int64_t cached = 0;      // tokens that need no prefill
  int64_t context = 1;     // tokens that its cache holds once the prompt is read
  int64_t to_read = 0;     // prompt tokens to compute yet; 0: the cache is there
  int64_t peak = 1;        // tokens that its cache holds at the end
  int64_t steps_left = 0;  // decode steps, from when it last joined
  int64_t joined_step = 0;
  int64_t joined_clock = 0;
  int32_t epoch = 0;  // changes when it leaves a replica or is sent back
  bool is_decoding = false;
  bool is_measured = false;
  bool is_resumed = false;  // sent back before: the read ends with a token that is not the first
};

// What all replicas of a station count.
struct StationTotals {
  double busy_seconds = 0;
  double resident_seconds = 0;  // resident sequences x seconds
  int64_t steps = 0;
  int64_t max_resident = 0;
  int64_t events = 0;
  int64_t preemptions = 0;
  int64_t computed_prompt_tokens = 0;
  int64_t largest_prompt_step_tokens = 0;
  int64_t peak_blocks = 0;
};

// What replicas of a station share.
struct StationState {
  StationState(const Station& station, const RequestMix& mix, bool hands_over);

  EngineLimits limits;
  double tokens_per_step;  // written, mean
  int64_t checked_tokens;  // per sequence and step
  int64_t block_count;
  int64_t reserved_blocks;
  int64_t resident_limit;
  bool hands_over;  // prefill only
  StepCache steps;
  StationTotals totals;
  WeightedSeconds* gaps = nullptr;  // between tokens, while they are measured
};

class EngineReplica {
 public:
  // Who left in a step.
  struct Leavers {
    std::vector<int32_t> finished;
    std::vector<int32_t> read;  // prompts to hand over
  };

  EngineReplica(StationState& station, std::vector<ReplayRequest>& pool);

  // Whether an empty replica can take the request to its end.
  static bool CanEverHold(const StationState& station, const ReplayRequest& request);

  void Enqueue(int32_t request, double now);
  // When the current step or run ends; kNever when idle.
  double end() const { return end_; }
  // Ends the current step or run. Adds to `leavers`.
  void Complete(Leavers& leavers);
  // Starts the next one, unless there is nothing to do. Requires that the last one is complete.
  void Start(double now);

  int64_t waiting() const { return static_cast<int64_t>(waiting_.size()); }
  int64_t outstanding() const { return waiting() + resident_; }

 private:
  struct HeapEntry {
    int64_t step;
    int32_t request;
    int32_t epoch;
    bool operator<(const HeapEntry& other) const {  // std::push_heap keeps the largest in front
      return step != other.step ? step > other.step : request > other.request;
    }
  };
  struct Joined {
    double seconds;
    int64_t count;
  };
  struct Chunk {
    int32_t request;
    int64_t tokens;
  };
  struct Admitted {
    int32_t request;
    int32_t epoch;
  };

  // Runs of steps (engine_replica.cc).
  void StartStatic(double now);
  void StartWholePrefill(double now);
  void StartChunkedPrefill(double now);
  void StartPromptStep(double now);
  void StartMixedSteps(double now, int64_t budget);
  void StartRun(double now);
  void Schedule(double now, int64_t steps, double first_seconds, double middle_seconds);
  StepShape PromptShape() const;
  double RunSeconds(int64_t steps) const;
  void Truncate(double now);
  void AdvanceDecodes(Leavers& leavers);
  void RecordGaps();
  void FinishChunks(Leavers& leavers);
  void EndRead(int32_t index, Leavers& leavers);
  int64_t StepsToFirstFinish();
  int64_t StepsUntilChange();
  int64_t SequencesPerStep() const;
  double FirstContext() const;

  // Sequences and blocks (engine_replica_cache.cc).
  bool CanAdmitNext() const;
  bool AdmitNext(double now);
  void Join(int32_t index);
  void Finish(int32_t index, Leavers& leavers);
  void Leave(int32_t index);
  void StopDecoding(ReplayRequest& request);
  void ReleaseStaticBatch();
  bool MakeRoomForOneStep();
  void Preempt(int32_t index);
  int32_t Youngest();
  int64_t ClockAt(int64_t step) const;
  int64_t BlocksFor(int64_t tokens) const;
  int64_t BlocksHeld(const ReplayRequest& request) const;
  int64_t GrowthBlocks(int64_t clock) const;
  int64_t StepsWithinBlocks(int64_t limit) const;
  int64_t PhaseOf(const ReplayRequest& request) const;

  StationState& station_;
  std::vector<ReplayRequest>& pool_;
  std::deque<int32_t> waiting_;
  std::vector<HeapEntry> finishes_;  // heap: the next to finish first; entries of the past stay until popped
  std::vector<Admitted> order_;      // by admission; entries of the past stay until the next sweep
  std::deque<int32_t> reading_;      // admitted, prompt not read yet
  std::vector<Chunk> chunks_;        // of the current step
  std::vector<Joined> joined_;       // decoding since the last decode step: when they wrote their last token
  std::vector<int64_t> phases_;      // decoding sequences by clock modulo block at which they need another block
  int64_t resident_ = 0;
  int64_t decoding_ = 0;
  int64_t static_batch_ = 0;    // sequences that take part in the steps of a static batch, finished ones too
  int64_t context_tokens_ = 0;  // in the cache, of all sequences that take part in steps
  int64_t free_blocks_;
  int64_t step_ = 0;   // decode steps so far
  int64_t clock_ = 0;  // tokens that a sequence decoding from the start would have written by now
  double last_decode_end_ = 0;

  double start_ = 0;
  double end_ = kNever;
  int64_t run_steps_ = 0;  // of the step or run in progress; 0: none, or waking up
  double first_seconds_ = 0;
  double slope_ = 0;          // growth of step seconds per step
  bool has_decodes_ = false;  // in the step or run in progress
};

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SERVING_ENGINE_REPLICA_H_
