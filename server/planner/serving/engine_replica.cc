#include "server/planner/serving/engine_replica.h"

#include <algorithm>
#include <cmath>

namespace sliceplan::planner {
namespace {

// A run of decode steps is timed at its middle and ends before the mean context has grown by this share, so that a time
// that is not linear in context stays close; short contexts may double.
constexpr double kRunGrowth = 1.0 / 8;
constexpr int64_t kShortRun = 16;
// The same for chunks of one long prompt.
constexpr int64_t kShortChunkRun = 4;

}  // namespace

EngineReplica::EngineReplica(StationState& station, std::vector<ReplayRequest>& pool)
    : station_(station),
      pool_(pool),
      phases_(static_cast<size_t>(station.limits.kv_block_tokens)),
      free_blocks_(station.block_count) {}

void EngineReplica::Enqueue(int32_t request, double now) {
  waiting_.push_back(request);
  if (end_ == kNever) {
    end_ = now;
  } else if (waiting_.size() == 1) {
    Truncate(now);
  }
}

// A run of decodes ends with the step in which somebody arrives who may fit.
void EngineReplica::Truncate(double now) {
  if (run_steps_ <= 1 || !chunks_.empty() || station_.limits.policy == BatchPolicy::kStatic ||
      resident_ >= station_.resident_limit) {
    return;
  }
  const double elapsed = now - start_;
  int64_t low = 0;
  int64_t high = run_steps_;
  // The quadratic's root is right but for rounding.
  const double b = first_seconds_ - slope_ / 2;
  const double root = std::max(0.0, b * b + 2 * slope_ * elapsed);
  const double guess = std::ceil(2 * elapsed / (b + std::sqrt(root)));
  const int64_t steps =
      std::clamp<int64_t>(guess < static_cast<double>(high) ? static_cast<int64_t>(guess) : high, 1, high);
  if (RunSeconds(steps) >= elapsed) high = steps;
  if (steps > 1 && RunSeconds(steps - 1) < elapsed) low = steps - 1;
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (RunSeconds(middle) < elapsed ? low : high) = middle;
  }
  run_steps_ = high;
  end_ = start_ + RunSeconds(high);
}

double EngineReplica::RunSeconds(int64_t steps) const {
  const double n = static_cast<double>(steps);
  return n * (first_seconds_ + slope_ * (n - 1) / 2);
}

// Time grows evenly from the first step through the middle one.
void EngineReplica::Schedule(double now, int64_t steps, double first_seconds, double middle_seconds) {
  start_ = now;
  run_steps_ = steps;
  first_seconds_ = first_seconds;
  slope_ = steps > 1 ? (middle_seconds - first_seconds) / (static_cast<double>(steps - 1) / 2) : 0;
  end_ = now + RunSeconds(steps);
}

void EngineReplica::Start(double now) {
  end_ = kNever;
  chunks_.clear();
  switch (station_.limits.policy) {
    case BatchPolicy::kStatic: return StartStatic(now);
    case BatchPolicy::kWholePrefill: return StartWholePrefill(now);
    case BatchPolicy::kChunkedPrefill: return StartChunkedPrefill(now);
  }
}

void EngineReplica::StartStatic(double now) {
  if (decoding_ == 0) {
    ReleaseStaticBatch();
    while (CanAdmitNext()) {
      const int32_t next = waiting_.front();
      if (AdmitNext(now)) chunks_.push_back({next, pool_[static_cast<size_t>(next)].to_read});
    }
  }
  chunks_.empty() ? StartRun(now) : StartPromptStep(now);
}

void EngineReplica::StartWholePrefill(double now) {
  int64_t budget = station_.limits.step_token_budget;
  while (CanAdmitNext()) {
    const int32_t next = waiting_.front();
    const int64_t tokens = pool_[static_cast<size_t>(next)].to_read;
    if (!chunks_.empty() && tokens > budget) break;
    if (!AdmitNext(now)) continue;
    chunks_.push_back({next, tokens});
    budget -= tokens;
  }
  if (!chunks_.empty()) return StartPromptStep(now);
  MakeRoomForOneStep();
  StartRun(now);
}

void EngineReplica::StartChunkedPrefill(double now) {
  const bool has_preempted = MakeRoomForOneStep();
  int64_t budget = station_.limits.step_token_budget - decoding_ * station_.checked_tokens;
  const int64_t first_budget = budget;
  for (const int32_t index : reading_) {
    if (budget <= 0) break;
    const int64_t tokens = std::min(budget, pool_[static_cast<size_t>(index)].to_read);
    chunks_.push_back({index, tokens});
    budget -= tokens;
  }
  while (budget > 0 && !has_preempted && CanAdmitNext()) {
    const int32_t next = waiting_.front();
    if (!AdmitNext(now)) {
      budget -= station_.checked_tokens;
      continue;
    }
    reading_.push_back(next);
    const int64_t tokens = std::min(budget, pool_[static_cast<size_t>(next)].to_read);
    chunks_.push_back({next, tokens});
    budget -= tokens;
  }
  chunks_.empty() ? StartRun(now) : StartMixedSteps(now, first_budget);
}

StepShape EngineReplica::PromptShape() const {
  StepShape shape;
  double context = 0;
  for (const Chunk& chunk : chunks_) {
    const ReplayRequest& request = pool_[static_cast<size_t>(chunk.request)];
    shape.prefill_tokens += chunk.tokens;
    context += static_cast<double>(chunk.tokens) * static_cast<double>(request.context - request.to_read);
  }
  shape.prefill_sequences = static_cast<int64_t>(chunks_.size());
  shape.prefill_context_tokens = context / static_cast<double>(shape.prefill_tokens);
  return shape;
}

void EngineReplica::StartPromptStep(double now) {
  const StepShape shape = PromptShape();
  has_decodes_ = false;
  station_.totals.largest_prompt_step_tokens =
      std::max(station_.totals.largest_prompt_step_tokens, shape.prefill_tokens);
  const double seconds = station_.steps.Seconds(shape);
  Schedule(now, 1, seconds, seconds);
}

// One step; a run of steps while one prompt takes all that the decodes leave.
void EngineReplica::StartMixedSteps(double now, int64_t budget) {
  StepShape shape = PromptShape();
  has_decodes_ = decoding_ > 0;
  if (has_decodes_) {
    shape.decode_sequences = decoding_;
    shape.decode_context_tokens = FirstContext();
  }
  station_.totals.largest_prompt_step_tokens =
      std::max(station_.totals.largest_prompt_step_tokens, shape.prefill_tokens + decoding_ * station_.checked_tokens);
  const double first_seconds = station_.steps.Seconds(shape);
  int64_t steps = 1;
  const Chunk& head = chunks_.front();
  if (chunks_.size() == 1 && head.tokens == budget) {
    const double chunk = static_cast<double>(head.tokens);
    const int64_t smooth =
        std::max(kShortChunkRun, static_cast<int64_t>(kRunGrowth * shape.prefill_context_tokens / chunk));
    steps = std::min(smooth, pool_[static_cast<size_t>(head.request)].to_read / head.tokens);
    if (has_decodes_) steps = StepsWithinBlocks(std::min(steps, StepsUntilChange()));
    steps = std::max<int64_t>(1, steps);
    const double middle = static_cast<double>(steps - 1) / 2;
    shape.prefill_context_tokens += chunk * middle;
    if (has_decodes_) shape.decode_context_tokens += station_.tokens_per_step * middle;
  }
  Schedule(now, steps, first_seconds, steps > 1 ? station_.steps.Seconds(shape) : first_seconds);
}

int64_t EngineReplica::SequencesPerStep() const {
  return station_.limits.policy == BatchPolicy::kStatic ? static_batch_ : decoding_;
}

double EngineReplica::FirstContext() const {
  return static_cast<double>(context_tokens_) / static_cast<double>(SequencesPerStep()) + 1;
}

int64_t EngineReplica::StepsToFirstFinish() {
  while (pool_[static_cast<size_t>(finishes_.front().request)].epoch != finishes_.front().epoch) {
    std::pop_heap(finishes_.begin(), finishes_.end());
    finishes_.pop_back();
  }
  return finishes_.front().step - step_;
}

int64_t EngineReplica::StepsUntilChange() {
  const double smooth = kRunGrowth * FirstContext() / station_.tokens_per_step;
  return std::min(StepsToFirstFinish(), std::max(kShortRun, static_cast<int64_t>(smooth)));
}

void EngineReplica::StartRun(double now) {
  if (decoding_ == 0) return;
  has_decodes_ = true;
  const int64_t steps = std::max<int64_t>(1, StepsWithinBlocks(StepsUntilChange()));
  const int64_t sequences = SequencesPerStep();
  const double context = FirstContext();
  const double first_seconds = station_.steps.DecodeSeconds(sequences, context);
  const double middle = context + station_.tokens_per_step * static_cast<double>(steps - 1) / 2;
  Schedule(now, steps, first_seconds, steps > 1 ? station_.steps.DecodeSeconds(sequences, middle) : first_seconds);
}

void EngineReplica::Complete(Leavers& leavers) {
  if (run_steps_ == 0) return;
  StationTotals& totals = station_.totals;
  totals.busy_seconds += end_ - start_;
  totals.resident_seconds += static_cast<double>(resident_) * (end_ - start_);
  totals.steps += run_steps_;
  if (chunks_.empty()) ++totals.events;
  if (has_decodes_) AdvanceDecodes(leavers);
  FinishChunks(leavers);
  run_steps_ = 0;
  start_ = end_;
  end_ = kNever;
}

void EngineReplica::RecordGaps() {
  const double tokens = station_.tokens_per_step;
  const double first_end = run_steps_ == 1 ? end_ : start_ + first_seconds_;
  const auto add = [this, tokens](double seconds, int64_t steps) {
    station_.gaps->Add(seconds / tokens, static_cast<double>(steps) * tokens);
  };
  if (station_.gaps != nullptr) {
    int64_t others = decoding_;
    for (const Joined& joined : joined_) {
      add(first_end - joined.seconds, joined.count);
      others -= joined.count;
    }
    if (others > 0) add(first_end - last_decode_end_, others);
    if (run_steps_ > 1) {
      add((end_ - first_end) / static_cast<double>(run_steps_ - 1), decoding_ * (run_steps_ - 1));
    }
  }
  joined_.clear();
  last_decode_end_ = end_;
}

void EngineReplica::AdvanceDecodes(Leavers& leavers) {
  RecordGaps();
  step_ += run_steps_;
  const int64_t clock = ClockAt(step_);
  free_blocks_ -= GrowthBlocks(clock);
  context_tokens_ += SequencesPerStep() * (clock - clock_);
  clock_ = clock;
  station_.totals.peak_blocks = std::max(station_.totals.peak_blocks, station_.block_count - free_blocks_);
  while (decoding_ > 0 && StepsToFirstFinish() <= 0) Finish(finishes_.front().request, leavers);
  if (decoding_ == 0) finishes_.clear();
}

void EngineReplica::FinishChunks(Leavers& leavers) {
  for (const Chunk& chunk : chunks_) {
    ReplayRequest& request = pool_[static_cast<size_t>(chunk.request)];
    const int64_t tokens = chunk.tokens * run_steps_;
    request.to_read -= tokens;
    station_.totals.computed_prompt_tokens += tokens;
    ++station_.totals.events;
    if (request.to_read > 0) continue;
    if (!reading_.empty()) reading_.pop_front();
    EndRead(chunk.request, leavers);
  }
  chunks_.clear();
}

// The step that ends a prompt writes a token.
void EngineReplica::EndRead(int32_t index, Leavers& leavers) {
  ReplayRequest& request = pool_[static_cast<size_t>(index)];
  if (station_.hands_over) {
    Leave(index);
    leavers.read.push_back(index);
    return;
  }
  if (request.is_resumed) {
    if (station_.gaps != nullptr) station_.gaps->Add(end_ - request.last_token, 1);
    --request.steps_left;
  } else {
    request.first_token = end_;
  }
  request.last_token = end_;
  if (request.steps_left == 0) return Finish(index, leavers);
  Join(index);
}

}  // namespace sliceplan::planner
