// Closed forms of queues. Rates are per second, times in seconds; c2 is a squared coefficient of variation. A queue
// that is offered more than it can serve waits for ever: mean and percentiles are infinite.
//   Kleinrock, "Queueing Systems", volume 1, 1975: M/M/1, M/M/c, M/G/1.
//   Allen, "Probability, Statistics, and Queueing Theory", 2nd edition, 1990: G/G/c (Allen-Cunneen).
//   Tijms, "A First Course in Stochastic Models", 2003: M/D/1, exponential tails.
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_QUEUEING_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_QUEUEING_H_

#include <cstdint>

namespace sliceplan::planner {

// Time in the queue, first come first served: 0 with probability 1 - wait_probability, else exponential with the mean
// that gives `mean_seconds` over all.
struct Waiting {
  double mean_seconds = 0;
  double wait_probability = 0;

  // P(wait > seconds), seconds >= 0.
  double Tail(double seconds) const;
  // The wait that a share p of all do not exceed, 0 <= p < 1.
  double Percentile(double p) const;
};

// Exact, tail included.
Waiting MM1Waiting(double rate, double service_seconds);
Waiting MMcWaiting(double rate, double service_seconds, int64_t servers);  // time grows with `servers`

// The mean is exact (Pollaczek-Khinchine); the tail is exponential by approximation, exact for service_c2 = 1.
Waiting MG1Waiting(double rate, double service_seconds, double service_c2);

// Two-moment approximation: M/M/c scaled by (arrival_c2 + service_c2) / 2 (Allen-Cunneen; Kingman's bound for one
// server). Exact for M/M/c, and in the mean for M/G/1.
Waiting GGcWaiting(double rate, double arrival_c2, double service_seconds, double service_c2, int64_t servers);

// M/D/1: P(wait > seconds), exact for waits up to a few service times (Crommelin's series), then its exponential
// asymptote, which agrees to six digits.
double MD1WaitTail(double rate, double service_seconds, double seconds);
double MD1WaitPercentile(double rate, double service_seconds, double p);

// Chance that an arrival finds all servers busy: lost (Erlang B), or waiting (Erlang C). `offered` = rate x service
// seconds; C is 1 from offered = servers on.
double ErlangB(double offered, int64_t servers);
double ErlangC(double offered, int64_t servers);

// Mean wait that vacations add to an M/G/1 queue whose server leaves whenever it is empty (Fuhrmann, Cooper,
// "Stochastic decompositions in the M/G/1 queue", Operations Research 33(5), 1985).
constexpr double VacationSeconds(double mean_seconds, double c2) { return mean_seconds * (1 + c2) / 2; }

// Little's law: how many are in a system through which `rate` passes in `seconds` each.
constexpr double InSystem(double rate, double seconds) { return rate * seconds; }

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SERVING_QUEUEING_H_
