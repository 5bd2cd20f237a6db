// Who is resident, and which blocks of the cache they hold.
#include <algorithm>
#include <cmath>

#include "server/planner/serving/engine_replica.h"

namespace sliceplan::planner {
namespace {

// Stale entries that are not worth a sweep.
constexpr size_t kSweepFrom = 64;

int64_t CeilDiv(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

}  // namespace

StationState::StationState(const Station& station, const RequestMix& mix, bool hands_over)
    : limits(station.limits),
      tokens_per_step(mix.TokensPerStep()),
      checked_tokens(1 + mix.draft_tokens),
      block_count(limits.kv_capacity_tokens / limits.kv_block_tokens),
      reserved_blocks(
          static_cast<int64_t>(std::ceil(limits.admission_reserve_ratio * static_cast<double>(block_count)))),
      resident_limit(limits.max_batch_size),
      hands_over(hands_over),
      steps(*station.timer, checked_tokens) {
  // A static batch does not grow.
  if (limits.policy == BatchPolicy::kStatic) reserved_blocks = 0;
  if (limits.policy == BatchPolicy::kChunkedPrefill) {
    resident_limit = std::min(resident_limit, std::max<int64_t>(1, limits.step_token_budget / checked_tokens));
  }
}

// Drafted tokens have their place in the cache before it is known whether they stay.
bool EngineReplica::CanEverHold(const StationState& station, const ReplayRequest& request) {
  const int64_t tokens = (station.hands_over ? request.context : request.peak) + station.checked_tokens - 1;
  return CeilDiv(tokens, station.limits.kv_block_tokens) <= station.block_count;
}

int64_t EngineReplica::ClockAt(int64_t step) const {
  if (station_.checked_tokens == 1) return step;
  return static_cast<int64_t>(station_.tokens_per_step * static_cast<double>(step));
}

int64_t EngineReplica::BlocksFor(int64_t tokens) const {
  return CeilDiv(tokens + station_.checked_tokens - 1, station_.limits.kv_block_tokens);
}

// A static batch holds blocks for whole outputs from the start, others what the cache has grown to.
int64_t EngineReplica::BlocksHeld(const ReplayRequest& request) const {
  if (station_.limits.policy == BatchPolicy::kStatic) {
    return BlocksFor(station_.hands_over ? request.context : request.peak);
  }
  return BlocksFor(request.context + (request.is_decoding ? clock_ - request.joined_clock : 0));
}

// A sequence with T tokens needs another block when the clock leaves a value at which T is a multiple of the block.
int64_t EngineReplica::PhaseOf(const ReplayRequest& request) const {
  const int64_t block = station_.limits.kv_block_tokens;
  const int64_t phase = (request.joined_clock - request.context - (station_.checked_tokens - 1)) % block;
  return phase < 0 ? phase + block : phase;
}

// Blocks that the decoding sequences need from now until the clock shows `clock`.
int64_t EngineReplica::GrowthBlocks(int64_t clock) const {
  if (station_.limits.policy == BatchPolicy::kStatic) return 0;
  const int64_t block = station_.limits.kv_block_tokens;
  const int64_t ticks = clock - clock_;
  int64_t blocks = ticks / block * decoding_;
  int64_t phase = clock_ % block;
  for (int64_t i = ticks % block; i > 0; --i) {
    blocks += phases_[static_cast<size_t>(phase)];
    if (++phase == block) phase = 0;
  }
  return blocks;
}

// The most steps, at most `limit`, for which the free blocks last.
int64_t EngineReplica::StepsWithinBlocks(int64_t limit) const {
  if (station_.limits.policy == BatchPolicy::kStatic) return limit;
  const int64_t ticks = ClockAt(step_ + limit) - clock_;
  if ((ticks / station_.limits.kv_block_tokens + 1) * decoding_ <= free_blocks_) return limit;
  int64_t low = 0;
  int64_t high = limit + 1;
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (GrowthBlocks(ClockAt(step_ + middle)) <= free_blocks_ ? low : high) = middle;
  }
  return low;
}

bool EngineReplica::CanAdmitNext() const {
  if (waiting_.empty() || resident_ >= station_.resident_limit) return false;
  const int64_t needed = BlocksHeld(pool_[static_cast<size_t>(waiting_.front())]);
  return needed + (resident_ > 0 ? station_.reserved_blocks : 0) <= free_blocks_;
}

// True when the admitted sequence has a prompt to read; otherwise it decodes from now on.
bool EngineReplica::AdmitNext(double now) {
  const int32_t index = waiting_.front();
  waiting_.pop_front();
  ReplayRequest& request = pool_[static_cast<size_t>(index)];
  if (order_.size() > kSweepFrom + 2 * static_cast<size_t>(resident_)) {
    order_.erase(std::remove_if(order_.begin(), order_.end(),
                                [this](const Admitted& admitted) {
                                  return pool_[static_cast<size_t>(admitted.request)].epoch != admitted.epoch;
                                }),
                 order_.end());
  }
  order_.push_back({index, request.epoch});
  free_blocks_ -= BlocksHeld(request);
  ++resident_;
  ++station_.totals.events;
  station_.totals.max_resident = std::max(station_.totals.max_resident, resident_);
  station_.totals.peak_blocks = std::max(station_.totals.peak_blocks, station_.block_count - free_blocks_);
  if (request.to_read == 0) {
    if (request.last_token < 0) request.last_token = now;
    Join(index);
    return false;
  }
  if (request.first_start < 0) request.first_start = now;
  return true;
}

// Decodes from the next step on. Its last token was written at `last_token`.
void EngineReplica::Join(int32_t index) {
  ReplayRequest& request = pool_[static_cast<size_t>(index)];
  request.joined_step = step_;
  request.joined_clock = clock_;
  request.is_decoding = true;
  ++decoding_;
  context_tokens_ += request.context;
  if (station_.limits.policy == BatchPolicy::kStatic) {
    ++static_batch_;
  } else {
    ++phases_[static_cast<size_t>(PhaseOf(request))];
  }
  finishes_.push_back({step_ + request.steps_left, index, request.epoch});
  std::push_heap(finishes_.begin(), finishes_.end());
  if (!joined_.empty() && joined_.back().seconds == request.last_token) {
    ++joined_.back().count;
  } else {
    joined_.push_back({request.last_token, 1});
  }
}

void EngineReplica::StopDecoding(ReplayRequest& request) {
  --decoding_;
  if (station_.limits.policy == BatchPolicy::kStatic) return;
  context_tokens_ -= request.context + clock_ - request.joined_clock;
  --phases_[static_cast<size_t>(PhaseOf(request))];
}

void EngineReplica::Leave(int32_t index) {
  ReplayRequest& request = pool_[static_cast<size_t>(index)];
  const bool is_static = station_.limits.policy == BatchPolicy::kStatic;
  if (!is_static) free_blocks_ += BlocksHeld(request);
  if (request.is_decoding) StopDecoding(request);
  request.is_decoding = false;
  ++request.epoch;
  if (!is_static) --resident_;
}

void EngineReplica::Finish(int32_t index, Leavers& leavers) {
  Leave(index);
  ++station_.totals.events;
  leavers.finished.push_back(index);
}

// The last sequence of a static batch is finished.
void EngineReplica::ReleaseStaticBatch() {
  resident_ = 0;
  static_batch_ = 0;
  context_tokens_ = 0;
  free_blocks_ = station_.block_count;
  order_.clear();
}

int32_t EngineReplica::Youngest() {
  while (pool_[static_cast<size_t>(order_.back().request)].epoch != order_.back().epoch) order_.pop_back();
  return order_.back().request;
}

// Sends back the youngest until the others can take a step. Whether somebody had to go.
bool EngineReplica::MakeRoomForOneStep() {
  bool has_preempted = false;
  while (resident_ > 1 && StepsWithinBlocks(1) < 1) {
    Preempt(Youngest());
    has_preempted = true;
  }
  return has_preempted;
}

void EngineReplica::Preempt(int32_t index) {
  ReplayRequest& request = pool_[static_cast<size_t>(index)];
  if (request.is_decoding) {
    const int64_t steps = step_ - request.joined_step;
    const int64_t written = clock_ - request.joined_clock;
    if (steps > 0) {
      request.last_token = last_decode_end_;
    } else {
      const auto group = std::find_if(joined_.begin(), joined_.end(), [&request](const Joined& joined) {
        return joined.seconds == request.last_token;
      });
      if (--group->count == 0) joined_.erase(group);
    }
    Leave(index);
    // The token that was written last is computed again too, and that gives the next one.
    request.steps_left -= steps;
    const double to_write = station_.tokens_per_step * static_cast<double>(request.steps_left - 1);
    request.context = std::min(request.context + written + 1, request.peak - static_cast<int64_t>(std::ceil(to_write)));
    request.is_resumed = true;
  } else {
    Leave(index);
    reading_.erase(std::find(reading_.begin(), reading_.end(), index));
  }
  request.to_read = std::max<int64_t>(1, request.context - request.cached);
  waiting_.push_front(index);
  ++station_.totals.preemptions;
}

}  // namespace sliceplan::planner
