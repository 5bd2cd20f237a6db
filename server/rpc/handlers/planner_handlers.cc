#include "server/rpc/handlers/planner_handlers.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/planner/estimate_training.h"
#include "server/planner/serving/estimate_serving.h"
#include "server/planner/serving/serving_search.h"
#include "server/planner/sharding_search.h"
#include "server/rpc/convert/model.h"
#include "server/rpc/convert/serving_estimate.h"
#include "server/rpc/convert/serving_job.h"
#include "server/rpc/convert/serving_search.h"
#include "server/rpc/convert/sharding_reply.h"
#include "server/rpc/convert/sharding_request.h"
#include "server/rpc/convert/training_estimate.h"
#include "server/rpc/convert/training_job.h"
#include "server/rpc/errors.h"
#include "server/rpc/field_path.h"
#include "server/rpc/handlers/endings.h"
#include "server/rpc/version.h"
#include "server/rpc/violations.h"

namespace sliceplan::rpc {
namespace {

// Of the time until the deadline, what a reply takes to be written and sent: a share, but not more than a while.
constexpr int kReplyShare = 4;
constexpr absl::Duration kMaxReplyTime = absl::Milliseconds(250);

// When a search stops and answers with what it has.
absl::Time EndOfSearch(absl::Time start, std::optional<absl::Duration> limit, absl::Time deadline) {
  absl::Time end = absl::InfiniteFuture();
  if (deadline != absl::InfiniteFuture()) {
    end = deadline - std::min(std::max(deadline - start, absl::ZeroDuration()) / kReplyShare, kMaxReplyTime);
  }
  return limit.has_value() ? std::min(end, start + *limit) : end;
}

// Told to a search before each piece of work.
std::function<planner::SearchSignal()> SignalOf(const CallContext& call, absl::Time end) {
  return [&call, end] {
    if (call.Cancelled()) return planner::SearchSignal::kCancel;
    const bool late = end != absl::InfiniteFuture() && absl::Now() >= end;
    return late ? planner::SearchSignal::kAnswerNow : planner::SearchSignal::kGoOn;
  };
}

// A search that saw its end had time left when it proved its answer.
bool IsTruncated(bool exhaustive, absl::Time end) { return !exhaustive && absl::Now() >= end; }

void SetEnd(double elapsed_seconds, const catalog::Catalog& catalog, v1::ProposeShardingResponse* response) {
  response->mutable_search()->set_elapsed_seconds(elapsed_seconds);
  response->set_engine_version(EngineVersion());
  response->set_catalog_version(catalog.version());
}

}  // namespace

Result PlannerHandlers::EstimateTraining(const v1::EstimateTrainingRequest& request,
                                         v1::EstimateTrainingResponse* response, const CallContext& call) {
  const auto catalog = engine_.catalogs.Snapshot();
  const FieldPath path;
  Violations violations;
  TrainingQuestion question;
  v1::TrainingEstimate* const estimate = response->mutable_estimate();
  ToTrainingJob(request, *catalog, engine_.models, engine_.profiles, path, question,
                estimate->mutable_cost()->mutable_price(), violations);
  if (!violations.empty()) return violations.ToResult();

  planner::TrainingAnswer answer =
      planner::EstimateTraining(question.job, engine_.mappings, [&call] { return call.Stopped(); });
  if (answer.cancelled) return Stopped(call);
  AddEngineViolations(request, path, std::move(answer.violations), violations);
  if (!violations.empty()) return violations.ToResult();

  ToProto(question, answer.estimate, estimate);
  response->set_engine_version(EngineVersion());
  response->set_catalog_version(catalog->version());
  return Result();
}

Effort PlannerHandlers::EffortOf(const v1::EstimateTrainingRequest& request) const {
  const bool given = request.has_parallelism() && request.parallelism().has_ici();
  if (!given) return Effort::kSearch;
  return IsQuicklyRead(request.model(), engine_.models) ? Effort::kShort : Effort::kLong;
}

Result PlannerHandlers::EstimateServing(const v1::EstimateServingRequest& request,
                                        v1::EstimateServingResponse* response, const CallContext& call) {
  const auto catalog = engine_.catalogs.Snapshot();
  const FieldPath path;
  Violations violations;
  ServingQuestion question;
  v1::ServingEstimate* const estimate = response->mutable_estimate();
  ToServingJob(request, *catalog, engine_.models, engine_.profiles, path, question,
               estimate->mutable_cost()->mutable_prices(), violations);
  if (!violations.empty()) return violations.ToResult();

  // A fix may take half of the caller's time: the estimate is there before.
  const absl::Time start = absl::Now();
  const absl::Time enough = start + (call.deadline - start) / 2;
  planner::ServingAnswer answer = planner::EstimateServingWithFix(
      question.job, engine_.mappings, [&call] { return call.Stopped(); }, [enough] { return absl::Now() >= enough; });
  if (answer.cancelled) return Stopped(call);
  violations.AddMissing(path, answer.violations);
  if (!violations.empty()) return violations.ToResult();

  ToProto(question, answer.estimate, estimate);
  response->set_engine_version(EngineVersion());
  response->set_catalog_version(catalog->version());
  return Result();
}

Effort PlannerHandlers::EffortOf(const v1::EstimateServingRequest& request) const {
  const auto is_given = [](const auto& replica) {
    return replica.has_parallelism() && replica.parallelism().has_ici();
  };
  const bool given = request.pools().empty() ? is_given(request)
                                             : std::all_of(request.pools().begin(), request.pools().end(), is_given);
  if (!given) return Effort::kSearch;
  const v1::ServingWorkload& workload = request.workload();
  const bool quick = IsQuicklyRead(request.model(), engine_.models) &&
                     (!workload.speculative().has_draft_model() ||
                      IsQuicklyRead(workload.speculative().draft_model(), engine_.models));
  // A load is replayed, and once more for every fix that is tried; of a batch that is too late smaller ones are tried.
  if (workload.has_requests_per_second() || workload.has_concurrency()) return Effort::kSearch;
  return quick && workload.has_batch_size() && !request.has_slo() ? Effort::kShort : Effort::kLong;
}

Effort PlannerHandlers::EffortOf(const v1::ProposeShardingRequest& request) const {
  // Above it a search takes as long as one of the catalog.
  constexpr int kFewSlices = 8;
  const bool few = request.has_slices() && request.slices().slices_size() <= kFewSlices;
  return few ? Effort::kSearch : Effort::kWideSearch;
}

Result PlannerHandlers::ProposeSharding(const v1::ProposeShardingRequest& request,
                                        v1::ProposeShardingResponse* response, const CallContext& call) {
  const absl::Time start = absl::Now();
  if (request.has_serving()) return ProposeServing(request, response, call, start);
  const auto catalog = engine_.catalogs.Snapshot();
  const FieldPath path;
  Violations violations;
  SearchQuestion question;
  ToSearchQuestion(request, *catalog, engine_.models, engine_.profiles, path, question, violations);
  if (!violations.empty()) return violations.ToResult();

  planner::ShardingAnswer answer;
  const absl::Time end = EndOfSearch(start, question.limits.time_limit, call.deadline);
  if (!question.candidates.empty()) {
    answer = planner::ProposeSharding(question.search, engine_.mappings, SignalOf(call, end));
  }
  if (answer.cancelled) return Stopped(call);
  call.search_truncated = IsTruncated(answer.exhaustive, end);
  AddEngineViolations(request, path, std::move(answer.violations), violations);
  if (!violations.empty()) return violations.ToResult();

  const double elapsed_seconds = absl::ToDoubleSeconds(absl::Now() - start);
  ToProto(question, answer, response);
  SetEnd(elapsed_seconds, *catalog, response);
  return Result();
}

Result PlannerHandlers::ProposeServing(const v1::ProposeShardingRequest& request, v1::ProposeShardingResponse* response,
                                       const CallContext& call, absl::Time start) {
  const auto catalog = engine_.catalogs.Snapshot();
  Violations violations;
  ServingSearchQuestion question;
  ToServingSearch(request, *catalog, engine_.models, engine_.profiles, FieldPath(), question, violations);
  if (!violations.empty()) return violations.ToResult();

  planner::ServingSearchAnswer answer;
  const absl::Time end = EndOfSearch(start, question.limits.time_limit, call.deadline);
  if (!question.candidates.empty()) {
    answer = planner::ProposeServing(question.search, engine_.mappings, SignalOf(call, end));
  }
  if (answer.cancelled) return Stopped(call);
  call.search_truncated = IsTruncated(answer.exhaustive, end);

  const double elapsed_seconds = absl::ToDoubleSeconds(absl::Now() - start);
  ToProto(question, answer, response);
  SetEnd(elapsed_seconds, *catalog, response);
  return Result();
}

}  // namespace sliceplan::rpc
