// The replay, told as simply as it goes: one step after the other, one sequence after the other. One replica, no
// drafted tokens, open loop with steady arrivals, from empty to empty.
#ifndef SLICEPLAN_TESTS_PLANNER_REPLAY_REFERENCE_H_
#define SLICEPLAN_TESTS_PLANNER_REPLAY_REFERENCE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <vector>

#include "server/planner/serving/random.h"
#include "server/planner/serving/replay.h"

namespace sliceplan::planner {

class ReferenceReplay {
 public:
  struct Sequence {
    double arrival = 0;
    int64_t prompt = 0;
    int64_t output = 0;
    int64_t cached = 0;
    int64_t written = 0;
    int64_t context = 0;  // in the cache, or to be there when it is read
    int64_t to_read = 0;
    double first_token = 0;
    double last_token = 0;
  };

  ReferenceReplay(const Station& station, const RequestMix& mix, double rate, int64_t count, uint64_t seed)
      : station_(station), limits_(station.limits) {
    for (int64_t i = 0; i < count; ++i) {
      Random random(seed, 2 * static_cast<uint64_t>(i));
      Sequence sequence;
      sequence.arrival = static_cast<double>(i + 1) / rate;
      sequence.prompt = mix.prompt.Quantile(random.Uniform());
      sequence.output = mix.output.Quantile(random.Uniform());
      const double cached = std::floor(mix.prefix_cache_hit_ratio * static_cast<double>(sequence.prompt));
      sequence.cached = std::min(sequence.prompt - 1, static_cast<int64_t>(cached));
      sequence.context = sequence.prompt;
      sequences_.push_back(sequence);
    }
  }

  void Run() {
    size_t next = 0;
    size_t left = sequences_.size();
    while (left > 0) {
      if (waiting_.empty() && resident_.empty()) now_ = std::max(now_, sequences_[next].arrival);
      while (next < sequences_.size() && sequences_[next].arrival <= now_ + 1e-9) waiting_.push_back(next++);
      left -= limits_.policy == BatchPolicy::kWholePrefill ? StepWhole() : StepChunked();
    }
  }

  double MeanTtft() const {
    double sum = 0;
    for (const Sequence& sequence : sequences_) sum += sequence.first_token - sequence.arrival;
    return sum / static_cast<double>(sequences_.size());
  }
  double MeanEndToEnd() const {
    double sum = 0;
    for (const Sequence& sequence : sequences_) sum += sequence.last_token - sequence.arrival;
    return sum / static_cast<double>(sequences_.size());
  }
  int64_t steps = 0;
  int64_t preemptions = 0;

 private:
  int64_t Blocks(int64_t tokens) const { return (tokens + limits_.kv_block_tokens - 1) / limits_.kv_block_tokens; }
  int64_t Total() const { return limits_.kv_capacity_tokens / limits_.kv_block_tokens; }
  int64_t Used(int64_t growth) const {
    int64_t used = 0;
    for (const size_t i : resident_) {
      used += Blocks(sequences_[i].context + (sequences_[i].to_read == 0 ? growth : 0));
    }
    return used;
  }
  bool Admit() {
    if (waiting_.empty() || static_cast<int64_t>(resident_.size()) >= limits_.max_batch_size) return false;
    Sequence& sequence = sequences_[waiting_.front()];
    const int64_t reserve = static_cast<int64_t>(std::ceil(limits_.admission_reserve_ratio * double(Total())));
    if (Used(0) + Blocks(sequence.context) + (resident_.empty() ? 0 : reserve) > Total()) return false;
    sequence.to_read = sequence.context - sequence.cached;
    resident_.push_back(waiting_.front());
    waiting_.pop_front();
    return true;
  }
  bool MakeRoom() {
    bool preempted = false;
    while (resident_.size() > 1 && Used(1) > Total()) {
      const size_t youngest = resident_.back();
      resident_.pop_back();
      if (sequences_[youngest].to_read == 0) ++sequences_[youngest].context;
      waiting_.push_front(youngest);
      ++preemptions;
      preempted = true;
    }
    return preempted;
  }
  // One token for all in `decoding`, one for those whose reading ends; returns how many are finished.
  size_t Step(const std::vector<size_t>& decoding, const std::vector<std::pair<size_t, int64_t>>& chunks) {
    StepShape shape;
    double context = 0;
    for (const size_t i : decoding) context += static_cast<double>(sequences_[i].context + 1);
    shape.decode_sequences = static_cast<int64_t>(decoding.size());
    if (!decoding.empty()) shape.decode_context_tokens = context / static_cast<double>(decoding.size());
    double before = 0;
    for (const auto& [i, tokens] : chunks) {
      shape.prefill_tokens += tokens;
      before += static_cast<double>(tokens) * static_cast<double>(sequences_[i].context - sequences_[i].to_read);
    }
    shape.prefill_sequences = static_cast<int64_t>(chunks.size());
    if (!chunks.empty()) shape.prefill_context_tokens = before / static_cast<double>(shape.prefill_tokens);
    now_ += station_.timer->Seconds(shape);
    ++steps;
    for (const size_t i : decoding) {
      ++sequences_[i].context;
      Write(i);
    }
    for (const auto& [i, tokens] : chunks) {
      sequences_[i].to_read -= tokens;
      if (sequences_[i].to_read == 0) Write(i);
    }
    const size_t resident = resident_.size();
    resident_.erase(std::remove_if(resident_.begin(), resident_.end(),
                                   [this](size_t i) { return sequences_[i].written == sequences_[i].output; }),
                    resident_.end());
    return resident - resident_.size();
  }
  void Write(size_t i) {
    Sequence& sequence = sequences_[i];
    if (sequence.written++ == 0) sequence.first_token = now_;
    sequence.last_token = now_;
  }
  std::vector<size_t> Decoding() const {
    std::vector<size_t> decoding;
    for (const size_t i : resident_) {
      if (sequences_[i].to_read == 0) decoding.push_back(i);
    }
    return decoding;
  }
  size_t StepWhole() {
    std::vector<std::pair<size_t, int64_t>> chunks;
    int64_t budget = limits_.step_token_budget;
    while (!waiting_.empty()) {
      const Sequence& next = sequences_[waiting_.front()];
      if (!chunks.empty() && next.context - next.cached > budget) break;
      if (!Admit()) break;
      chunks.emplace_back(resident_.back(), sequences_[resident_.back()].to_read);
      budget -= chunks.back().second;
    }
    if (!chunks.empty()) return Step({}, chunks);
    MakeRoom();
    return Step(Decoding(), {});
  }
  size_t StepChunked() {
    const bool preempted = MakeRoom();
    const std::vector<size_t> decoding = Decoding();
    int64_t budget = limits_.step_token_budget - static_cast<int64_t>(decoding.size());
    std::vector<std::pair<size_t, int64_t>> chunks;
    const auto read = [&](size_t i) {
      chunks.emplace_back(i, std::min(budget, sequences_[i].to_read));
      budget -= chunks.back().second;
    };
    for (const size_t i : resident_) {
      if (budget > 0 && sequences_[i].to_read > 0) read(i);
    }
    while (budget > 0 && !preempted && Admit()) read(resident_.back());
    return Step(decoding, chunks);
  }

  const Station& station_;
  const EngineLimits& limits_;
  std::vector<Sequence> sequences_;
  std::deque<size_t> waiting_;
  std::vector<size_t> resident_;  // by admission
  double now_ = 0;
};

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_TESTS_PLANNER_REPLAY_REFERENCE_H_
