// Closed forms of pipeline schedules against schedules played out operation by operation.
#include "server/planner/pipeline_schedule.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

namespace sliceplan::planner {
namespace {

struct Operation {
  bool backward = false;
  int64_t microbatch = 0;
  int64_t chunk = 0;
};

// What stage `rank` runs, in order: as GPipe, or as Megatron's (interleaved) 1F1B.
std::vector<Operation> OrderOf(const PipelineShape& shape, int64_t rank) {
  const int64_t p = shape.stage_count;
  const int64_t m = shape.microbatch_count;
  const int64_t v = shape.schedule == PipelineSchedule::kInterleaved1F1B ? shape.virtual_stage_count : 1;
  const int64_t total = m * v;
  int64_t warm_up = std::min(p - rank - 1, total);
  if (v > 1) warm_up = m == p ? total : std::min(2 * (p - rank - 1) + (v - 1) * p, total);
  if (shape.schedule == PipelineSchedule::kGpipe) warm_up = total;
  const auto operation = [&](bool backward, int64_t k) {
    const int64_t chunk = v == 1 ? 0 : k / p % v;
    const int64_t microbatch = v == 1 ? k : k / (p * v) * p + k % p;
    return Operation{backward, microbatch, backward ? v - 1 - chunk : chunk};
  };
  std::vector<Operation> order;
  for (int64_t k = 0; k < warm_up; ++k) order.push_back(operation(false, k));
  for (int64_t k = warm_up; k < total; ++k) {
    order.push_back(operation(false, k));
    order.push_back(operation(true, k - warm_up));
  }
  for (int64_t k = total - warm_up; k < total; ++k) order.push_back(operation(true, k));
  return order;
}

struct Played {
  double makespan = 0;
  std::vector<double> most_in_flight;  // by stage, in activations of a whole stage
};

Played Play(const PipelineShape& shape, const StageWork& work) {
  const int64_t p = shape.stage_count;
  const int64_t v = shape.schedule == PipelineSchedule::kInterleaved1F1B ? shape.virtual_stage_count : 1;
  const double parts = static_cast<double>(v);
  std::vector<std::vector<Operation>> orders;
  for (int64_t rank = 0; rank < p; ++rank) orders.push_back(OrderOf(shape, rank));
  std::map<std::tuple<bool, int64_t, int64_t>, double> done;  // direction, microbatch, model chunk
  std::vector<size_t> at(static_cast<size_t>(p), 0);
  std::vector<double> free_at(static_cast<size_t>(p), 0);
  Played played;
  played.most_in_flight.assign(static_cast<size_t>(p), 0);
  std::vector<double> in_flight(static_cast<size_t>(p), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t rank = 0; rank < orders.size(); ++rank) {
      while (at[rank] < orders[rank].size()) {
        const Operation& op = orders[rank][at[rank]];
        const int64_t chunk = op.chunk * p + static_cast<int64_t>(rank);
        const int64_t last = p * v - 1;
        double ready = 0;
        const auto needs = [&](bool backward, int64_t other) {
          const auto found = done.find({backward, op.microbatch, other});
          if (found == done.end()) return false;
          ready = std::max(ready, found->second);
          return true;
        };
        if (!op.backward && chunk > 0 && !needs(false, chunk - 1)) break;
        if (op.backward && !needs(chunk == last ? false : true, chunk == last ? chunk : chunk + 1)) break;
        const double seconds = (op.backward ? work.Total() - work.forward : work.forward) / parts;
        free_at[rank] = std::max(free_at[rank], ready) + seconds;
        done[{op.backward, op.microbatch, chunk}] = free_at[rank];
        in_flight[rank] += (op.backward ? -1 : 1) / parts;
        played.most_in_flight[rank] = std::max(played.most_in_flight[rank], in_flight[rank]);
        ++at[rank];
        moved = true;
      }
    }
  }
  for (size_t rank = 0; rank < orders.size(); ++rank) {
    EXPECT_EQ(at[rank], orders[rank].size()) << "the schedule waits for itself";
    played.makespan = std::max(played.makespan, free_at[rank]);
  }
  return played;
}

TEST(PipelineScheduleTest, ClosedFormsMatchTheSchedulesPlayedOut) {
  const StageWork work{1, 1.25, 0.75};
  for (const PipelineSchedule schedule :
       {PipelineSchedule::kGpipe, PipelineSchedule::kOneFOneB, PipelineSchedule::kInterleaved1F1B}) {
    for (const int64_t stages : {1, 2, 3, 4, 8}) {
      for (const int64_t groups : {1, 2, 5}) {
        for (const int64_t chunks : {1, 2, 3}) {
          if (chunks > 1 && schedule != PipelineSchedule::kInterleaved1F1B) continue;
          const PipelineShape shape{schedule, stages, stages * groups, chunks};
          const Played played = Play(shape, work);
          SCOPED_TRACE(testing::Message()
                       << static_cast<int>(schedule) << " p " << stages << " m " << stages * groups << " v " << chunks);
          EXPECT_NEAR(ScheduleTime(shape, work), played.makespan, 1e-9);
          for (int64_t stage = 0; stage < stages; ++stage) {
            EXPECT_NEAR(MicrobatchesInFlight(shape, stage), played.most_in_flight[static_cast<size_t>(stage)], 1e-9);
          }
        }
      }
    }
  }
}

TEST(PipelineScheduleTest, FewerMicrobatchesThanStages) {
  const PipelineShape shape{PipelineSchedule::kOneFOneB, 8, 3, 1};
  EXPECT_NEAR(ScheduleTime(shape, {}), Play(shape, {}).makespan, 1e-9);
  EXPECT_EQ(MicrobatchesInFlight(shape, 0), 3);
}

TEST(PipelineScheduleTest, BubbleRatios) {
  // (p - 1) / (m + p - 1), and 1 / v of the bubble when interleaved.
  EXPECT_DOUBLE_EQ(BubbleRatio({PipelineSchedule::kOneFOneB, 4, 8, 1}), 3.0 / 11);
  EXPECT_DOUBLE_EQ(BubbleRatio({PipelineSchedule::kInterleaved1F1B, 4, 8, 2}), 1.5 / 9.5);
  // Equal parts: a third of the bubble of 1F1B (Qi et al. 2023, table 1).
  EXPECT_DOUBLE_EQ(BubbleTime({PipelineSchedule::kZeroBubble, 4, 8, 1}, {1, 1, 1}),
                   BubbleTime({PipelineSchedule::kOneFOneB, 4, 8, 1}, {1, 1, 1}) / 3);
  EXPECT_EQ(BubbleTime({PipelineSchedule::kZeroBubble, 4, 8, 1}, {1, 1, 3}), 0);
  EXPECT_EQ(BubbleRatio({PipelineSchedule::kOneFOneB, 1, 8, 1}), 0);
  EXPECT_EQ(BubbleRatio({PipelineSchedule::kOneFOneB, 4, 8, 1}, {0, 0, 0}), 0);
}

TEST(PipelineScheduleTest, MoreMicrobatchesNeverIdleMore) {
  for (const PipelineSchedule schedule : {PipelineSchedule::kGpipe, PipelineSchedule::kOneFOneB,
                                          PipelineSchedule::kInterleaved1F1B, PipelineSchedule::kZeroBubble}) {
    double previous = 1;
    for (int64_t m = 1; m <= 64; m *= 2) {
      const double ratio = BubbleRatio({schedule, 8, m, 2});
      EXPECT_LT(ratio, previous);
      previous = ratio;
    }
  }
}

TEST(PipelineScheduleTest, Traffic) {
  const PipelineTraffic traffic = PipelineTrafficOf({PipelineSchedule::kOneFOneB, 4, 8, 1}, 1e6, 4096, 2, 1e9);
  EXPECT_DOUBLE_EQ(traffic.seconds_per_hop, 1e6 * 4096 * 2 / 8 / 1e9);
  EXPECT_EQ(traffic.hop_count, 10);
  EXPECT_DOUBLE_EQ(traffic.total_seconds, 10 * traffic.seconds_per_hop);
  EXPECT_EQ(PipelineTrafficOf({PipelineSchedule::kOneFOneB, 1, 8, 1}, 1e6, 4096, 2, 1e9).total_seconds, 0);
}

}  // namespace
}  // namespace sliceplan::planner
