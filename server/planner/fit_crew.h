// Threads that work ahead of a search: what fits of the plans that it is likely to open next. They change when an
// answer comes, never what it is: the search takes what is ready and works out the rest itself. docs/search.md
// section 3.
#ifndef SLICEPLAN_SERVER_PLANNER_FIT_CREW_H_
#define SLICEPLAN_SERVER_PLANNER_FIT_CREW_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "server/planner/mapping.h"
#include "server/planner/parallelism.h"
#include "server/planner/search_site.h"

namespace sliceplan::planner {

// The plan of a split, or of a shape with all its shards in FSDP: bounded as a shape, then.
struct FitQuestion {
  Parallelism plan;
  std::optional<Parallelism> shape;
};

struct Fit {
  std::optional<double> floor_seconds;  // of the choices of recompute and accumulation that fit; null: none does
  std::optional<MemoryUse> least;       // set when none does
};

// A pure function of the site's job: whatever else the site has worked out, the answer is the same.
Fit FitOf(SearchSite& site, const FitQuestion& question, std::vector<PlanLaws>& ways);

class FitCrew {
 public:
  // `question` and `mappings` outlive the crew. Starts no thread before there is something to do.
  FitCrew(const ShardingQuestion& question, MappingCache& mappings, int helper_count);
  ~FitCrew();
  FitCrew(const FitCrew&) = delete;
  FitCrew& operator=(const FitCrew&) = delete;

  bool empty() const { return helper_count_ == 0; }
  // Questions about another candidate follow; those about the one before are forgotten.
  void MoveTo(size_t candidate);
  bool IsKnown(int64_t id);
  // Asks for an answer, under a number of the caller's.
  void Suggest(int64_t id, FitQuestion question);
  // The answer, if it is ready. The question is forgotten: to wait for a helper may take longer than to answer.
  std::optional<Fit> Take(int64_t id);

 private:
  struct Task {
    FitQuestion question;
    bool waits = true;  // for a helper
    std::optional<Fit> fit;
  };
  void Work();

  const ShardingQuestion& question_;
  MappingCache& mappings_;
  const int helper_count_;
  std::mutex mutex_;
  std::condition_variable more_work_;
  size_t candidate_ = 0;
  int64_t generation_ = 0;  // grows with each candidate
  bool over_ = false;
  int idle_count_ = 0;
  std::map<int64_t, Task> tasks_;
  std::deque<int64_t> waiting_;
  std::vector<std::thread> helpers_;
};

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_FIT_CREW_H_
