#include "server/planner/fit_crew.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace sliceplan::planner {

Fit FitOf(SearchSite& site, const FitQuestion& question, std::vector<PlanLaws>& ways) {
  const Parallelism& bounded = question.shape ? *question.shape : question.plan;
  const absl::StatusOr<PlanLaws> ideal = question.shape ? site.ideal.OfShape(bounded) : site.ideal.Of(bounded);
  if (question.shape) {
    site.ideal.ShapeInSharedDomains(bounded, ways);
  } else {
    site.ideal.InSharedDomains(bounded, ways);
  }
  Fit fit;
  fit.floor_seconds = site.evaluator.FloorSeconds(question.plan, ideal.ok() ? *ideal : PlanLaws(), ways);
  if (!fit.floor_seconds) fit.least = site.evaluator.LeastMemory(question.plan);
  return fit;
}

FitCrew::FitCrew(const ShardingQuestion& question, MappingCache& mappings, int helper_count)
    : question_(question), mappings_(mappings), helper_count_(std::max(0, helper_count)) {}

FitCrew::~FitCrew() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    over_ = true;
  }
  more_work_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

void FitCrew::MoveTo(size_t candidate) {
  const std::lock_guard<std::mutex> lock(mutex_);
  candidate_ = candidate;
  ++generation_;
  tasks_.clear();
  waiting_.clear();
}

bool FitCrew::IsKnown(int64_t id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return tasks_.contains(id);
}

void FitCrew::Suggest(int64_t id, FitQuestion question) {
  bool somebody_sleeps = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!tasks_.emplace(id, Task{std::move(question), true, std::nullopt}).second) return;
    waiting_.push_back(id);
    somebody_sleeps = idle_count_ > 0;
  }
  if (helpers_.empty()) {
    for (int i = 0; i < helper_count_; ++i) helpers_.emplace_back([this] { Work(); });
  } else if (somebody_sleeps) {
    more_work_.notify_one();
  }
}

std::optional<Fit> FitCrew::Take(int64_t id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = tasks_.find(id);
  if (found == tasks_.end()) return std::nullopt;
  std::optional<Fit> fit = std::move(found->second.fit);
  if (found->second.waits) waiting_.erase(std::find(waiting_.begin(), waiting_.end(), id));
  tasks_.erase(found);
  return fit;
}

void FitCrew::Work() {
  std::unique_ptr<SearchSite> site;
  std::vector<PlanLaws> ways;
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    ++idle_count_;
    more_work_.wait(lock, [this] { return over_ || !waiting_.empty(); });
    --idle_count_;
    if (over_) return;
    const int64_t id = waiting_.front();
    waiting_.pop_front();
    Task& task = tasks_.find(id)->second;
    task.waits = false;
    const FitQuestion asked = task.question;
    const size_t candidate = candidate_;
    const int64_t generation = generation_;
    lock.unlock();
    if (site == nullptr || site->index != candidate) {
      site = std::make_unique<SearchSite>(question_, candidate, mappings_);
    }
    Fit fit = FitOf(*site, asked, ways);
    lock.lock();
    if (generation != generation_) continue;
    if (const auto found = tasks_.find(id); found != tasks_.end()) found->second.fit = std::move(fit);
  }
}

}  // namespace sliceplan::planner
