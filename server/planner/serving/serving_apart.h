// Prompts read on one kind of slice, output written on another.
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_SERVING_APART_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_SERVING_APART_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "server/planner/mapping.h"
#include "server/planner/serving/serving_judge.h"
#include "server/planner/serving/serving_search.h"

namespace sliceplan::planner {

// The pools of one pair with the fewest replicas that could carry the rate: without targets, that do.
struct ApartPair {
  ServingJob job;                  // kPrefill, then kDecode, plans given
  std::vector<size_t> candidates;  // of each pool
  double least_chips = 0;
  std::optional<double> least_usd;  // an hour; unset when a slice has no price
};

// Pairs of the cheapest readers and writers among the judged plans, cheapest first; no other pair costs less than the
// first. Empty: one role finds no plan, or `go_on` said no.
std::vector<ApartPair> CheapestPairs(const ServingQuestion& question, const ServingJudge& judge,
                                     const std::vector<JudgedPlan>& judged, MappingCache& mappings,
                                     const std::function<bool()>& go_on);

// With targets: sets replicas of the pair that meet them, none to spare in one pool while the other stays. False: none
// were found, or cancelled.
bool SetReplicas(ApartPair& pair, MappingCache& mappings, const std::function<bool()>& cancelled);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SERVING_SERVING_APART_H_
