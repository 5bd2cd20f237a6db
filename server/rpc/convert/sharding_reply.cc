#include "server/rpc/convert/sharding_reply.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/planner/render/rendering.h"
#include "server/rpc/convert/enums.h"
#include "server/rpc/convert/model.h"
#include "server/rpc/convert/parallelism.h"
#include "server/rpc/convert/search_reply.h"
#include "server/rpc/convert/slice.h"
#include "server/rpc/convert/training_estimate.h"
#include "server/rpc/convert/training_job.h"
#include "server/rpc/convert/training_parts.h"

namespace sliceplan::rpc {
namespace {

// A candidate of the engine may be a variant of one of the request.
const Candidate& CandidateOf(const SearchQuestion& question, size_t candidate) {
  return question.candidates[planner::PlaceOf(question.search, candidate)];
}

const CandidateTerms& TermsOf(const SearchQuestion& question, size_t candidate) {
  return *question.terms[planner::PlaceOf(question.search, candidate)];
}

// What a variant keeps in host memory beside what the request asked for.
void AddOffloadAssumption(const SearchQuestion& question, size_t candidate, Assumptions& assumptions) {
  const size_t place = planner::PlaceOf(question.search, candidate);
  if (place == candidate) return;
  const planner::TrainingWorkload& asked = question.search.candidates[place].workload;
  const planner::TrainingWorkload& used = question.search.candidates[candidate].workload;
  if (used.optimizer_offload && !asked.optimizer_offload) {
    assumptions.Add("workload.optimizer_offload", "true", "The search keeps the optimizer state in host memory.");
  }
  if (used.activation_offload && !asked.activation_offload) {
    assumptions.Add("workload.activation_offload", "true", "The search keeps saved activations in host memory.");
  }
}

// The job that a proposal is the estimate of, as EstimateTraining would have it.
void SetJob(const SearchQuestion& question, size_t candidate, TrainingQuestion& job_question) {
  job_question.model = question.model;
  job_question.slice = CandidateOf(question, candidate).slice;
  job_question.profile = TermsOf(question, candidate).profile;
  for (const std::string& note : job_question.slice->notes) job_question.assumptions.Add(note);
  job_question.assumptions.AddNew(TermsOf(question, candidate).assumptions);
  AddOffloadAssumption(question, candidate, job_question.assumptions);
  job_question.job = planner::JobOf(question.search, candidate);
}

void AddRenderings(const SearchQuestion& question, const planner::Proposal& proposal, int rank, v1::Proposal* proto,
                   Unwritten& unwritten) {
  const Candidate& candidate = CandidateOf(question, proposal.candidate);
  const planner::SearchCandidate& chosen = question.search.candidates[proposal.candidate];
  std::vector<planner::RenderTarget> targets = question.limits.render;
  if (targets.empty() && rank == 1) targets = planner::DefaultTargets(chosen.slice);
  if (targets.empty()) return;
  planner::RenderInput input;
  input.model_name = question.model_name;
  input.model = question.search.model;
  input.slice = &chosen.slice;
  input.workload = &chosen.workload;
  input.estimate = &proposal.estimate;
  input.names = NamesOf(candidate, TermsOf(question, proposal.candidate));
  for (const planner::RenderTarget target : targets) {
    absl::StatusOr<planner::Rendering> rendering = planner::Render(target, input);
    if (!rendering.ok()) {
      const std::string message(rendering.status().message());
      const absl::string_view name = planner::RenderTargetName(target);
      const std::string reason = absl::StrContains(message, name) ? message : absl::StrCat(name, ": ", message);
      unwritten[reason].push_back(rank);
      continue;
    }
    v1::Rendering* const written = proto->add_renderings();
    written->set_target(ToProto(kRenderTargets, rendering->target));
    written->set_format(rendering->format);
    written->set_text(rendering->text);
  }
}

void AddProposal(const SearchQuestion& question, const planner::Proposal& proposal, int rank,
                 v1::ProposeShardingResponse* response, Unwritten& unwritten) {
  const Candidate& candidate = CandidateOf(question, proposal.candidate);
  const CandidateTerms& terms = TermsOf(question, proposal.candidate);
  v1::Proposal* const proto = response->add_proposals();
  TrainingQuestion job;
  SetJob(question, proposal.candidate, job);
  v1::TrainingEstimate* const estimate = proto->mutable_training();
  *estimate->mutable_cost()->mutable_price() = terms.price;
  ToProto(job, proposal.estimate, estimate);
  v1::ProposedPool* const pool = proto->add_pools();
  pool->set_role(v1::POOL_ROLE_BOTH);
  *pool->mutable_slice() = estimate->slice();
  *pool->mutable_parallelism() = estimate->parallelism();
  pool->set_replica_count(1);
  if (candidate.pool != nullptr) {
    pool->set_capacity_pool(candidate.pool->name());
    pool->set_zone(candidate.pool->zone());
  }
  pool->set_price_model(terms.price_model);
  proto->set_beats_next_because(proposal.beats_next_because);
  AddRenderings(question, proposal, rank, proto, unwritten);
}

void SetSummary(const SearchQuestion& question, const planner::PlanSummary& summary, v1::PlanSummary* proto) {
  ToProto(CandidateOf(question, summary.candidate).slice, proto->mutable_slice());
  ToProto(summary.parallelism, proto->mutable_parallelism());
  proto->mutable_parallelism()->set_allow_idle_chips(question.search.constraints.allow_idle_chips);
  proto->mutable_parallelism()->set_allow_padding(question.search.constraints.allow_padding);
  proto->set_replica_count(1);
  proto->set_outcome(ToProto(kOutcomes, summary.outcome));
  proto->set_expected_seconds(summary.expected_seconds);
  proto->set_tokens_per_second_per_chip(summary.tokens_per_second_per_chip);
  if (summary.usd_per_million_tokens.has_value()) proto->set_usd_per_million_tokens(*summary.usd_per_million_tokens);
  if (summary.total_usd.has_value()) proto->set_total_usd(*summary.total_usd);
  if (summary.end_seconds.has_value()) proto->set_time_to_train_seconds(*summary.end_seconds);
  proto->set_chip_count(static_cast<int32_t>(summary.chip_count));
  const planner::TrainingWorkload& workload = question.search.candidates[summary.candidate].workload;
  proto->set_optimizer_offload(workload.optimizer_offload);
  proto->set_activation_offload(workload.activation_offload);
}

void SetNearMiss(const SearchQuestion& question, const planner::NearMiss& miss, v1::NearMiss* proto) {
  SetSummary(question, miss.plan, proto->mutable_plan());
  v1::Shortfall* const lacks = proto->mutable_lacks();
  lacks->set_sentence(AsSentence(miss.shortfall));
  lacks->set_missing(miss.shortfall_amount);
  const auto set = [&](absl::string_view limit, double available) {
    lacks->set_limit(limit.data(), limit.size());
    lacks->set_available(available);
    lacks->set_needed(available + miss.shortfall_amount);
  };
  const planner::SearchConstraints& constraints = question.search.constraints;
  const hardware::Slice& slice = question.search.candidates[miss.plan.candidate].slice;
  const hardware::AcceleratorSpec& chip = slice.accelerator;
  switch (miss.plan.outcome) {
    case planner::Outcome::kOutOfMemory:
      if (miss.on_host) {
        set("host_memory_bytes",
            static_cast<double>(slice.host_memory_bytes.value_or(0) / std::max(1, slice.chips_per_host)));
        break;
      }
      set("hbm_bytes", static_cast<double>(chip.AllocatableBytes().value_or(0)) * (1 - constraints.hbm_headroom_ratio));
      break;
    case planner::Outcome::kMissesDeadline:
      set("job_deadline_seconds", constraints.deadline_seconds.value_or(0));
      break;
    case planner::Outcome::kOverBudget: set("budget_usd", constraints.budget_usd.value_or(0)); break;
    case planner::Outcome::kNoLegalPlan: set("legal_plan", 0); break;
    case planner::Outcome::kFeasible: break;
  }
  if (!miss.smallest_fix.has_value()) return;
  ToProto(*miss.smallest_fix, proto->mutable_smallest_fix());
  for (v1::FieldChange& change : *proto->mutable_smallest_fix()->mutable_changes()) {
    change.set_field(FieldOfSearch(change.field()));
  }
  KeepFieldsOfSearch(proto->mutable_smallest_fix());
}

void SetReport(const SearchQuestion& question, const planner::ShardingAnswer& answer, v1::SearchReport* report) {
  report->set_considered_count(answer.considered_count);
  report->set_evaluated_count(answer.evaluated_count);
  AddPruned(answer.pruned, report);
  report->set_exhaustive(answer.exhaustive);
  if (std::isfinite(answer.optimality_gap_ratio)) report->set_optimality_gap_ratio(answer.optimality_gap_ratio);
  report->set_candidate_slice_count(static_cast<int32_t>(question.candidates.size()));
}

}  // namespace

void ToProto(const SearchQuestion& question, const planner::ShardingAnswer& answer,
             v1::ProposeShardingResponse* response) {
  Unwritten unwritten;
  int rank = 0;
  for (const planner::Proposal& proposal : answer.proposals) {
    AddProposal(question, proposal, ++rank, response, unwritten);
  }
  SetReport(question, answer, response->mutable_search());
  for (const planner::PlanSummary& summary : answer.frontier) SetSummary(question, summary, response->add_frontier());
  for (const planner::NearMiss& miss : answer.near_misses) SetNearMiss(question, miss, response->add_near_misses());
  for (const planner::ClosedFormOptimum& optimum : answer.closed_forms) AddClosedForm(optimum, response);
  question.assumptions.ToProto(response->mutable_assumptions());
  for (v1::Assumption& assumption : *response->mutable_assumptions()) {
    assumption.set_field(FieldOfSearch(assumption.field()));
  }
  for (const std::string& sentence : answer.assumptions) {
    response->add_assumptions()->set_sentence(AsSentence(sentence));
  }
  const bool needs_price =
      question.search.objective == planner::Objective::kMinCost || question.search.constraints.budget_usd.has_value();
  AddSearchWarnings(question, needs_price, unwritten, response);
  for (const std::string& sentence : answer.warnings) AddSearchWarning("ENGINE_NOTE", sentence, "", response);
  AddImportWarnings(*question.model, response->mutable_warnings());
}

}  // namespace sliceplan::rpc
