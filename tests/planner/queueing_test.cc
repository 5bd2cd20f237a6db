#include "server/planner/serving/queueing.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace sliceplan::planner {
namespace {

constexpr double kForEver = std::numeric_limits<double>::infinity();

TEST(QueueingTest, ErlangsFormulas) {
  struct Case {
    double offered;
    int64_t servers;
    double lost;     // a^c / c! over the sum
    double waiting;  // B / (1 - rho (1 - B))
  };
  const Case cases[] = {
      {1, 1, 0.5, 1},
      {0.5, 1, 1.0 / 3, 0.5},
      {2, 3, 4.0 / 19, 4.0 / 9},
      {1, 2, 0.2, 1.0 / 3},
      // Erlang's table for 10 erlangs on 10 lines, and on 20.
      {10, 10, 0.2146, 1},
      {10, 20, 0.00187, 0.00373},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(test.offered);
    EXPECT_NEAR(ErlangB(test.offered, test.servers), test.lost, 5e-5);
    EXPECT_NEAR(ErlangC(test.offered, test.servers), test.waiting, 5e-5);
  }
}

TEST(QueueingTest, MM1IsTheTextbooks) {
  for (const double utilization : {0.1, 0.5, 0.9, 0.99}) {
    SCOPED_TRACE(utilization);
    const double service = 0.25;
    const double rate = utilization / service;
    const Waiting waiting = MM1Waiting(rate, service);
    EXPECT_NEAR(waiting.mean_seconds, utilization / (1 / service - rate), 1e-12);
    for (const double t : {0.0, 0.1, 2.0}) {
      EXPECT_NEAR(waiting.Tail(t), utilization * std::exp(-(1 / service - rate) * t), 1e-12);
    }
    EXPECT_EQ(waiting.Percentile((1 - utilization) / 2), 0);
    EXPECT_NEAR(waiting.Tail(waiting.Percentile(0.99)), 0.01, 1e-12);
    // Little: rho / (1 - rho) in the system.
    EXPECT_NEAR(InSystem(rate, waiting.mean_seconds + service), utilization / (1 - utilization), 1e-9);
    EXPECT_NEAR(MMcWaiting(rate, service, 1).mean_seconds, waiting.mean_seconds, 1e-12);
  }
}

TEST(QueueingTest, SteadyServiceHalvesTheWait) {
  EXPECT_NEAR(MG1Waiting(0.8, 1, 0).mean_seconds, MM1Waiting(0.8, 1).mean_seconds / 2, 1e-12);
  EXPECT_NEAR(GGcWaiting(0.8, 0, 1, 1, 1).mean_seconds, MM1Waiting(0.8, 1).mean_seconds / 2, 1e-12);
  EXPECT_EQ(GGcWaiting(0.8, 0, 1, 0, 1).mean_seconds, 0);
  EXPECT_EQ(GGcWaiting(0.8, 0, 1, 0, 1).Percentile(0.99), 0);
}

TEST(QueueingTest, MD1TailIsADistribution) {
  for (const double utilization : {0.2, 0.5, 0.8, 0.95}) {
    SCOPED_TRACE(utilization);
    const double service = 2;
    const double rate = utilization / service;
    EXPECT_NEAR(MD1WaitTail(rate, service, 0), utilization, 1e-12);
    // Within the first service time: 1 - (1 - rho) e^(rate t).
    EXPECT_NEAR(MD1WaitTail(rate, service, 1), 1 - (1 - utilization) * std::exp(rate), 1e-12);
    // The tail's integral is the mean (trapezoids); it never grows, also where the asymptote takes over.
    double mean = 0;
    double before = utilization;
    const double dt = 0.01;
    for (int i = 1; before > 1e-10; ++i) {
      const double tail = MD1WaitTail(rate, service, i * dt);
      EXPECT_LE(tail, before + 1e-6) << i * dt;
      mean += (tail + before) / 2 * dt;
      before = tail;
    }
    EXPECT_NEAR(mean / MG1Waiting(rate, service, 0).mean_seconds, 1, 1e-4);
    EXPECT_NEAR(MD1WaitTail(rate, service, MD1WaitPercentile(rate, service, 0.99)), 0.01, 1e-6);
  }
}

TEST(QueueingTest, TooMuchWaitsForEver) {
  EXPECT_EQ(MM1Waiting(1, 1).mean_seconds, kForEver);
  EXPECT_EQ(MMcWaiting(5, 1, 4).Percentile(0.5), kForEver);
  EXPECT_EQ(MMcWaiting(5, 1, 4).Tail(1e9), 1);
  EXPECT_EQ(MD1WaitPercentile(2, 1, 0.5), kForEver);
  EXPECT_EQ(ErlangC(5, 4), 1);
}

TEST(QueueingTest, VacationsOfSteadyLengthAddHalfOfOne) {
  EXPECT_EQ(VacationSeconds(3, 0), 1.5);
  EXPECT_EQ(VacationSeconds(3, 1), 3);
}

}  // namespace
}  // namespace sliceplan::planner
