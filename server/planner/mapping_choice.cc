#include "server/planner/mapping_choice.h"

#include <algorithm>
#include <utility>

namespace sliceplan::planner {
namespace {

constexpr float kHeavyWeight = 10;
// Gradients move once a step and stage boundaries are narrow: ten times less than the rest.
constexpr float kLightWeight = 0.1F;
constexpr size_t kJointWeights = kLogicalAxisCount;        // index of FSDP and context together
constexpr size_t kJointGradients = kLogicalAxisCount + 1;  // of data and expert together

constexpr size_t Index(LogicalAxis axis) { return static_cast<size_t>(axis); }

constexpr bool IsLight(size_t traffic) {
  return traffic == Index(LogicalAxis::kData) || traffic == Index(LogicalAxis::kPipeline) || traffic == kJointGradients;
}

// Weights of one mix, zero for traffic that the plan does not have.
using Mix = std::array<float, kTrafficCount>;

std::vector<Mix> MixesOf(const AxisDegrees& degrees) {
  std::vector<size_t> present;
  for (LogicalAxis axis : kLogicalAxes) {
    if (degrees[axis] > 1) present.push_back(Index(axis));
  }
  if (degrees[LogicalAxis::kFsdp] > 1 && degrees[LogicalAxis::kContext] > 1) present.push_back(kJointWeights);
  if (degrees[LogicalAxis::kData] > 1 && degrees[LogicalAxis::kExpert] > 1) present.push_back(kJointGradients);
  Mix even = {};
  for (size_t i : present) even[i] = IsLight(i) ? kLightWeight : 1;
  std::vector<Mix> mixes = {even};
  for (size_t a = 0; a < present.size(); ++a) {
    for (size_t b = a; b < present.size(); ++b) {
      if (a != b && (IsLight(present[a]) || IsLight(present[b]))) continue;
      Mix mix = even;
      mix[present[a]] *= kHeavyWeight;
      if (b != a) mix[present[b]] *= kHeavyWeight;
      mixes.push_back(mix);
    }
  }
  return mixes;
}

float SecondsOf(const TrafficTimes& times, const Mix& mix) {
  float seconds = 0;
  for (size_t i = 0; i < kTrafficCount; ++i) seconds += mix[i] * times[i];
  return seconds;
}

// Seconds, then index: ties go to the earlier placement.
using Ranked = std::pair<float, size_t>;

// The `count` fastest placements in order; at most times.size().
std::vector<Ranked> FastestUnder(const Mix& mix, absl::Span<const TrafficTimes> times, size_t count) {
  std::vector<Ranked> heap;  // the slowest on top
  for (size_t i = 0; i < times.size(); ++i) {
    const float seconds = SecondsOf(times[i], mix);
    if (heap.size() == count) {
      if (seconds >= heap.front().first) continue;
      std::pop_heap(heap.begin(), heap.end());
      heap.pop_back();
    }
    heap.emplace_back(seconds, i);
    std::push_heap(heap.begin(), heap.end());
  }
  std::sort_heap(heap.begin(), heap.end());
  return heap;
}

// The shortest time of each kind of traffic; 1 where there is none.
TrafficTimes ShortestOf(absl::Span<const TrafficTimes> times) {
  TrafficTimes shortest = {};
  for (size_t i = 0; i < kTrafficCount; ++i) {
    for (const TrafficTimes& of_placement : times) {
      if (of_placement[i] > 0 && (shortest[i] == 0 || of_placement[i] < shortest[i])) shortest[i] = of_placement[i];
    }
    if (shortest[i] == 0) shortest[i] = 1;
  }
  return shortest;
}

}  // namespace

TrafficTimes EstimateTraffic(absl::Span<const OrderedAxis> axes, const AxisDegrees& degrees) {
  std::array<float, kTrafficCount> half_axes = {};
  TrafficTimes times = {};
  for (const OrderedAxis& physical : axes) {
    const bool ring = physical.axis.wraps && physical.axis.size > 2;
    int32_t stride = 1;
    for (LogicalAxis axis : *physical.order) {
      const int32_t factor = (*physical.factors)[Index(axis)];
      const int32_t cell = factor * stride;
      const float links = ring && cell == physical.axis.size ? 2 : 1;
      half_axes[Index(axis)] += links / static_cast<float>(stride);
      if (axis == LogicalAxis::kExpert) {
        const float exchange = static_cast<float>(cell) / 4 / links / static_cast<float>(degrees[axis]);
        times[Index(axis)] = std::max(times[Index(axis)], exchange);
      } else if (axis == LogicalAxis::kPipeline) {
        times[Index(axis)] = std::max(times[Index(axis)], static_cast<float>(stride));
      }
      stride = cell;
    }
  }
  const auto gather = [](float members, float links) { return links > 0 ? (members - 1) / members / links : 0; };
  for (LogicalAxis axis : {LogicalAxis::kData, LogicalAxis::kFsdp, LogicalAxis::kTensor, LogicalAxis::kContext}) {
    times[Index(axis)] = gather(static_cast<float>(degrees[axis]), half_axes[Index(axis)]);
  }
  times[kJointWeights] =
      gather(static_cast<float>(degrees[LogicalAxis::kFsdp]) * static_cast<float>(degrees[LogicalAxis::kContext]),
             half_axes[Index(LogicalAxis::kFsdp)] + half_axes[Index(LogicalAxis::kContext)]);
  times[kJointGradients] =
      gather(static_cast<float>(degrees[LogicalAxis::kData]) * static_cast<float>(degrees[LogicalAxis::kExpert]),
             half_axes[Index(LogicalAxis::kData)] + half_axes[Index(LogicalAxis::kExpert)]);
  return times;
}

std::vector<size_t> ChooseByTraffic(absl::Span<const TrafficTimes> times, const AxisDegrees& degrees, size_t count) {
  std::vector<size_t> chosen;
  if (times.size() <= count) {
    for (size_t i = 0; i < times.size(); ++i) chosen.push_back(i);
    return chosen;
  }
  std::vector<bool> taken(times.size(), false);
  std::vector<Mix> mixes = MixesOf(degrees);
  const TrafficTimes shortest = ShortestOf(times);
  for (Mix& mix : mixes) {
    for (size_t i = 0; i < kTrafficCount; ++i) mix[i] /= shortest[i];
  }
  // Some under one mix are taken under another before, so each ranks twice its share.
  const size_t rank_count = std::min(times.size(), count / mixes.size() * 2 + 2);
  std::vector<std::vector<Ranked>> ranked;
  for (const Mix& mix : mixes) ranked.push_back(FastestUnder(mix, times, rank_count));
  for (size_t rank = 0; rank < rank_count && chosen.size() < count; ++rank) {
    for (const std::vector<Ranked>& order : ranked) {
      if (chosen.size() == count) break;
      const size_t index = order[rank].second;
      if (taken[index]) continue;
      taken[index] = true;
      chosen.push_back(index);
    }
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

}  // namespace sliceplan::planner
