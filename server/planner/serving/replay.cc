#include "server/planner/serving/replay.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <queue>
#include <vector>

#include "server/planner/serving/engine_replica.h"
#include "server/planner/serving/random.h"
#include "server/planner/serving/replay_tally.h"
#include "server/planner/serving/replica_pool.h"

namespace sliceplan::planner {
namespace {

// Share of the requests that must have finished before others are measured.
constexpr double kWarmupShare = 0.1;
// Arrivals after the measured ones: how many times as many at most.
constexpr int64_t kMostLoadAfter = 2;
// Growth of the queue, in standard deviations of the number of arrivals, that is not taken for chance.
constexpr double kUnlikely = 3;
// Times round the loop between two questions whether the caller has gone.
constexpr int64_t kPollInterval = 4096;

struct Transfer {
  double seconds;
  int32_t request;
  bool operator<(const Transfer& other) const {  // std::priority_queue has the largest on top
    return seconds != other.seconds ? seconds > other.seconds : request > other.request;
  }
};

class ReplayRun {
 public:
  ReplayRun(const ServingSystem& system, const RequestMix& mix, const Load& load, const ReplayOptions& options)
      : system_(system),
        mix_(mix),
        load_(load),
        options_(options),
        includes_startup_(options.include_startup && load.kind != LoadKind::kResidentBatch),
        main_(system.main, mix, /*hands_over=*/false, system.router, requests_),
        tally_(options.limits, options.bars, options.request_count) {
    if (system.prefill) prefill_.emplace(*system.prefill, mix, /*hands_over=*/true, system.router, requests_);
    const int64_t count = options.request_count;
    warmup_requests_ = static_cast<int64_t>(std::ceil(kWarmupShare * static_cast<double>(count)));
    if (load.kind != LoadKind::kOpenLoop) warmup_requests_ = std::max(warmup_requests_, load.users);
    warmup_requests_ = std::min(warmup_requests_, count);
    most_arrivals_ = includes_startup_ ? count : (2 + kMostLoadAfter) * count;
    if (load.kind != LoadKind::kOpenLoop && !includes_startup_) most_arrivals_ += load.users;
  }

  void Run(const std::function<bool()>& cancelled);
  ReplayResult Result();

 private:
  bool IsDone() const { return measured_done_ >= options_.request_count || tally_.IsHopeless(); }
  void StartUsers();
  void Arrive();
  double Gap(int64_t index) const;
  int32_t Create(double now);
  void Place(ReplayRequest& request, int64_t user) const;
  void Submit(int32_t index, double now);
  void EndStep(ReplicaPool& pool, double now);
  void EndTransfer();
  void Finish(int32_t index, double now);
  void Drop(int32_t index);
  void Count(double now, int64_t change);
  void StartMeasuring(double now);
  void StopMeasuring(double now);
  Output OutputAt(double now) const;
  int64_t Waiting() const { return main_.Waiting() + (prefill_ ? prefill_->Waiting() : 0); }
  int64_t Events() const {
    return events_ + main_.state().totals.events + (prefill_ ? prefill_->state().totals.events : 0);
  }

  const ServingSystem& system_;
  const RequestMix& mix_;
  const Load& load_;
  const ReplayOptions& options_;
  const bool includes_startup_;
  int64_t warmup_requests_ = 0;
  int64_t most_arrivals_ = 0;

  std::vector<ReplayRequest> requests_;
  std::vector<int32_t> unused_;
  ReplicaPool main_;
  std::optional<ReplicaPool> prefill_;
  std::priority_queue<Transfer> transfers_;
  EngineReplica::Leavers leavers_;
  double next_arrival_ = kNever;
  // The clock starts anew when a request finds the system empty: times stay small, so that their differences are exact.
  double past_seconds_ = 0;
  double now_ = 0;

  int64_t events_ = 0;
  int64_t arrivals_ = 0;
  int64_t to_measure_ = 0;  // requests that are or were measured
  int64_t measured_done_ = 0;
  int64_t unservable_ = 0;
  int64_t turned_away_ = 0;  // users whose request was, who send their next one now
  int64_t in_system_ = 0;
  double in_system_seconds_ = 0;
  double counted_until_ = 0;
  bool is_measuring_ = false;
  bool has_stopped_measuring_ = false;
  bool is_complete_ = true;
  int64_t waiting_at_start_ = 0;
  int64_t waiting_at_end_ = 0;
  Output so_far_;
  Output start_;
  Output stop_;
  ReplayTally tally_;
};

void ReplayRun::Run(const std::function<bool()>& cancelled) {
  if (includes_startup_) StartMeasuring(0);
  if (load_.kind == LoadKind::kOpenLoop) {
    next_arrival_ = Gap(0);
  } else {
    StartUsers();
  }
  for (int64_t rounds = 0; !IsDone(); ++rounds) {
    if (rounds % kPollInterval == 0 && (Events() > options_.max_events || (cancelled && cancelled()))) {
      is_complete_ = false;
      break;
    }
    if (turned_away_ > 0) {
      --turned_away_;
      if (arrivals_ < most_arrivals_) Submit(Create(now_), now_);
      continue;
    }
    const double transferred = transfers_.empty() ? kNever : transfers_.top().seconds;
    const double read = prefill_ ? prefill_->NextEnd() : kNever;
    const double stepped = main_.NextEnd();
    const double next = std::min(std::min(next_arrival_, transferred), std::min(read, stepped));
    if (next == kNever) break;
    now_ = next;
    if (next == next_arrival_) {
      Arrive();
    } else if (next == transferred) {
      EndTransfer();
    } else if (next == read) {
      EndStep(*prefill_, next);
    } else {
      EndStep(main_, next);
    }
  }
  StopMeasuring(now_);
}

double ReplayRun::Gap(int64_t index) const {
  const double mean = 1 / load_.requests_per_second;
  if (load_.arrival_burstiness <= 0) return mean;
  Random random(options_.seed, 2 * static_cast<uint64_t>(index) + 1);
  if (load_.arrival_burstiness == 1) return mean * random.Exponential();
  return mean * random.Gamma(load_.arrival_burstiness);
}

void ReplayRun::Arrive() {
  double now = next_arrival_;
  if (in_system_ == 0) {
    past_seconds_ += now;
    now = now_ = counted_until_ = 0;
  }
  if (!is_measuring_ && arrivals_ >= options_.request_count) StartMeasuring(now);
  Submit(Create(now), now);
  next_arrival_ = arrivals_ < most_arrivals_ ? now + Gap(arrivals_) : kNever;
}

void ReplayRun::StartUsers() {
  const int64_t users = includes_startup_ ? std::min(load_.users, most_arrivals_) : load_.users;
  for (int64_t user = 0; user < users; ++user) {
    const int32_t index = Create(0);
    if (load_.kind == LoadKind::kResidentBatch) Place(requests_[static_cast<size_t>(index)], user);
    Submit(index, 0);
  }
}

int32_t ReplayRun::Create(double now) {
  if (unused_.empty()) {
    unused_.push_back(static_cast<int32_t>(requests_.size()));
    requests_.emplace_back();
  }
  const int32_t index = unused_.back();
  unused_.pop_back();
  ReplayRequest& request = requests_[static_cast<size_t>(index)];
  const int32_t epoch = request.epoch;
  request = ReplayRequest();
  request.epoch = epoch;
  Random random(options_.seed, 2 * static_cast<uint64_t>(arrivals_));
  request.arrival = now;
  request.prompt = mix_.prompt.Quantile(random.Uniform());
  request.output = mix_.output.Quantile(random.Uniform());
  request.steps_left = mix_.DecodeSteps(request.output - 1, random);
  const double cached = std::floor(mix_.prefix_cache_hit_ratio * static_cast<double>(request.prompt));
  request.cached = std::min(request.prompt - 1, static_cast<int64_t>(cached));
  request.context = request.prompt;
  request.to_read = request.prompt - request.cached;
  const double written = main_.state().tokens_per_step * static_cast<double>(request.steps_left);
  request.peak = request.prompt + static_cast<int64_t>(std::ceil(written));
  ++arrivals_;
  ++events_;
  Count(now, 1);
  if (is_measuring_ && to_measure_ < options_.request_count) {
    request.is_measured = true;
    if (++to_measure_ == options_.request_count) waiting_at_end_ = Waiting();
  }
  return index;
}

// Puts a user's first request somewhere in its life.
void ReplayRun::Place(ReplayRequest& request, int64_t user) const {
  if (request.steps_left == 0) return;
  const double share = (static_cast<double>(user) + 0.5) / static_cast<double>(load_.users);
  const int64_t done = static_cast<int64_t>(share * static_cast<double>(request.steps_left));
  request.steps_left -= done;
  const double left = main_.state().tokens_per_step * static_cast<double>(request.steps_left);
  request.context = request.peak - static_cast<int64_t>(std::ceil(left));
  request.to_read = 0;
  request.first_start = request.first_token = 0;
  request.last_token = -1;
}

void ReplayRun::Submit(int32_t index, double now) {
  const ReplayRequest& request = requests_[static_cast<size_t>(index)];
  const bool goes_to_main = !prefill_ || request.to_read == 0;
  const bool fits = (!prefill_ || EngineReplica::CanEverHold(prefill_->state(), request)) &&
                    ((prefill_ && request.steps_left == 0) || EngineReplica::CanEverHold(main_.state(), request));
  if (!fits) return Drop(index);
  (goes_to_main ? main_ : *prefill_).Enqueue(index, now);
}

void ReplayRun::Drop(int32_t index) {
  const ReplayRequest& request = requests_[static_cast<size_t>(index)];
  ++unservable_;
  if (request.is_measured) ++measured_done_;
  Count(now_, -1);
  unused_.push_back(index);
  if (load_.kind != LoadKind::kOpenLoop) ++turned_away_;
}

void ReplayRun::EndStep(ReplicaPool& pool, double now) {
  leavers_.finished.clear();
  leavers_.read.clear();
  pool.Complete(leavers_);
  for (const int32_t index : leavers_.read) {
    const double tokens = static_cast<double>(requests_[static_cast<size_t>(index)].prompt);
    transfers_.push({now + system_.transfer_seconds_per_prompt + system_.transfer_seconds_per_token * tokens, index});
  }
  for (const int32_t index : leavers_.finished) Finish(index, now);
  pool.Restart(now);
}

void ReplayRun::EndTransfer() {
  const Transfer transfer = transfers_.top();
  transfers_.pop();
  ReplayRequest& request = requests_[static_cast<size_t>(transfer.request)];
  request.first_token = request.last_token = transfer.seconds;
  if (request.steps_left == 0) {
    ++events_;
    return Finish(transfer.request, transfer.seconds);
  }
  main_.Enqueue(transfer.request, transfer.seconds);
}

void ReplayRun::Finish(int32_t index, double now) {
  const ReplayRequest& request = requests_[static_cast<size_t>(index)];
  ++so_far_.requests;
  so_far_.output_tokens += static_cast<double>(request.output);
  so_far_.input_tokens += static_cast<double>(request.prompt);
  Count(now, -1);
  if (request.is_measured) {
    ++measured_done_;
    tally_.Record(request, now);
  }
  unused_.push_back(index);
  if (!is_measuring_ && so_far_.requests >= warmup_requests_) StartMeasuring(now);
  if (is_measuring_ && so_far_.requests - start_.requests >= options_.request_count) StopMeasuring(now);
  if (load_.kind != LoadKind::kOpenLoop && arrivals_ < most_arrivals_) Submit(Create(now), now);
}

void ReplayRun::Count(double now, int64_t change) {
  in_system_seconds_ += static_cast<double>(in_system_) * (now - counted_until_);
  counted_until_ = now;
  in_system_ += change;
}

Output ReplayRun::OutputAt(double now) const {
  Output output = so_far_;
  output.seconds = past_seconds_ + now;
  output.main = main_.state().totals;
  if (prefill_) output.prefill_busy_seconds = prefill_->state().totals.busy_seconds;
  return output;
}

void ReplayRun::StartMeasuring(double now) {
  is_measuring_ = true;
  start_ = OutputAt(now);
  waiting_at_start_ = Waiting();
  main_.state().gaps = &tally_.gaps();
}

void ReplayRun::StopMeasuring(double now) {
  if (has_stopped_measuring_ || !is_measuring_) return;
  has_stopped_measuring_ = true;
  stop_ = OutputAt(now);
  main_.state().gaps = nullptr;
}

ReplayResult ReplayRun::Result() {
  ReplayResult result;
  tally_.FillLatencies(result);
  FillRates(start_, stop_, main_.replica_count(), prefill_ ? prefill_->replica_count() : 0, result);
  result.goodput_requests_per_second = result.requests_per_second * tally_.ShareWithinLimits();
  if (options_.keep_samples) result.samples = tally_.TakeSamples();
  const double count = static_cast<double>(options_.request_count);
  result.is_unstable =
      load_.kind == LoadKind::kOpenLoop && static_cast<double>(waiting_at_end_ - waiting_at_start_) >
                                               kUnlikely * std::sqrt(count * std::max(1.0, load_.arrival_burstiness));
  result.is_complete = is_complete_;
  result.is_hopeless = tally_.IsHopeless();

  const StationTotals& main = main_.state().totals;
  const StationTotals prefill = prefill_ ? prefill_->state().totals : StationTotals();
  result.max_batch_size = main.max_resident;
  result.finished_requests = so_far_.requests;
  result.unservable_requests = unservable_;
  result.preemptions = main.preemptions;
  result.engine_steps = main.steps + prefill.steps;
  result.events = Events();
  result.written_tokens = static_cast<int64_t>(so_far_.output_tokens);
  result.computed_prompt_tokens = main.computed_prompt_tokens + prefill.computed_prompt_tokens;
  result.largest_prompt_step_tokens = std::max(main.largest_prompt_step_tokens, prefill.largest_prompt_step_tokens);
  result.peak_kv_blocks = std::max(main.peak_blocks, prefill.peak_blocks);
  result.simulated_seconds = past_seconds_ + now_;
  if (result.simulated_seconds > 0) result.mean_requests_in_system = in_system_seconds_ / result.simulated_seconds;
  return result;
}

}  // namespace

ReplayResult Replay(const ServingSystem& system, const RequestMix& mix, const Load& load, const ReplayOptions& options,
                    const std::function<bool()>& cancelled) {
  ReplayRun run(system, mix, load, options);
  run.Run(cancelled);
  return run.Result();
}

}  // namespace sliceplan::planner
