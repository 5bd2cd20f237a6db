#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "server/planner/render/gke_serving.h"
#include "server/rpc/convert/model.h"
#include "server/rpc/convert/parallelism.h"
#include "server/rpc/convert/search_reply.h"
#include "server/rpc/convert/serving_enums.h"
#include "server/rpc/convert/serving_estimate.h"
#include "server/rpc/convert/serving_job.h"
#include "server/rpc/convert/serving_parts.h"
#include "server/rpc/convert/serving_search.h"
#include "server/rpc/convert/slice.h"
#include "server/rpc/convert/training_parts.h"

namespace sliceplan::rpc {
namespace {

// The job that a proposal is the estimate of, as EstimateServing would have it.
void SetJob(const ServingSearchQuestion& question, const planner::ServingProposal& proposal, ServingQuestion& job) {
  job.asked = question.asked;
  job.model = question.model;
  job.draft_model = question.draft_model;
  job.job.model = question.search.model;
  job.job.pools_given = true;
  job.job.workload = question.search.workload;
  job.job.slo = question.search.slo;
  job.job.mode = question.search.mode;
  job.job.cost_split = question.search.cost_split;
  for (size_t i = 0; i < proposal.candidates.size(); ++i) {
    const planner::ServingCandidate& candidate = question.search.candidates[proposal.candidates[i]];
    const CandidateTerms& terms = *question.terms[proposal.candidates[i]];
    const planner::PoolEstimate& estimate = proposal.estimate.pools[i];
    planner::ServingPool& pool = job.job.pools.emplace_back();
    pool.role = proposal.roles[i];
    pool.slice = candidate.slice;
    pool.parallelism = estimate.parallelism;
    pool.allow_idle_chips = question.search.constraints.allow_idle_chips;
    pool.allow_padding = question.search.constraints.allow_padding;
    pool.replica_count = estimate.replica_count;
    pool.efficiency = candidate.efficiency;
    pool.usd_per_chip_hour = candidate.usd_per_chip_hour;
    job.slices.emplace_back(question.candidates[proposal.candidates[i]].slice);
    job.profiles.push_back(terms.serving_profile);
    Assumptions notes;
    for (const std::string& note : job.slices.back()->notes) notes.Add(note);
    job.assumptions.AddNew(notes);
    job.assumptions.AddNew(terms.assumptions);
  }
}

void AddRenderings(const ServingSearchQuestion& question, const planner::ServingProposal& proposal,
                   const ServingQuestion& job, int rank, v1::Proposal* proto, Unwritten& unwritten) {
  std::vector<planner::RenderTarget> targets = question.limits.render;
  if (targets.empty() && rank == 1) {
    targets = {planner::RenderTarget::kVllm, planner::RenderTarget::kGkeJobSet, planner::RenderTarget::kKueue};
  }
  for (const planner::RenderTarget target : targets) {
    planner::ServingRenderInput input;
    input.model_name = question.model_name;
    input.job = &job.job;
    input.estimate = &proposal.estimate;
    for (const size_t candidate : proposal.candidates) {
      input.names.push_back(NamesOf(question.candidates[candidate], *question.terms[candidate]));
    }
    const absl::StatusOr<planner::Rendering> rendering = planner::RenderServing(target, input);
    if (!rendering.ok()) {
      unwritten[std::string(rendering.status().message())].push_back(rank);
      continue;
    }
    v1::Rendering* const written = proto->add_renderings();
    written->set_target(ToProto(kRenderTargets, rendering->target));
    written->set_format(rendering->format);
    written->set_text(rendering->text);
  }
}

// Fields as the request for proposals names them.
void RenameFields(v1::ServingEstimate* estimate) {
  for (v1::Assumption& line : *estimate->mutable_assumptions()) line.set_field(FieldOfServingSearch(line.field()));
  const auto rename = [](auto& changes) {
    for (v1::FieldChange& change : changes) change.set_field(FieldOfServingSearch(change.field()));
  };
  for (v1::Advice& advice : *estimate->mutable_advice()) rename(*advice.mutable_changes());
  if (!estimate->has_smallest_fix()) return;
  rename(*estimate->mutable_smallest_fix()->mutable_changes());
  KeepFieldsOfSearch(estimate->mutable_smallest_fix());
}

void AddProposal(const ServingSearchQuestion& question, const planner::ServingProposal& proposal, int rank,
                 v1::ProposeShardingResponse* response, Unwritten& unwritten) {
  v1::Proposal* const proto = response->add_proposals();
  ServingQuestion job;
  SetJob(question, proposal, job);
  v1::ServingEstimate* const estimate = proto->mutable_serving();
  for (const size_t candidate : proposal.candidates) {
    *estimate->mutable_cost()->add_prices() = question.terms[candidate]->price;
  }
  ToProto(job, proposal.estimate, estimate);
  RenameFields(estimate);
  for (size_t i = 0; i < proposal.candidates.size(); ++i) {
    const Candidate& candidate = question.candidates[proposal.candidates[i]];
    const v1::PoolEstimate& ours = estimate->pools(static_cast<int>(i));
    v1::ProposedPool* const pool = proto->add_pools();
    pool->set_role(ours.role());
    *pool->mutable_slice() = ours.slice();
    *pool->mutable_parallelism() = ours.parallelism();
    pool->set_replica_count(ours.replica_count());
    if (candidate.pool != nullptr) {
      pool->set_capacity_pool(candidate.pool->name());
      pool->set_zone(candidate.pool->zone());
    }
    pool->set_price_model(question.terms[proposal.candidates[i]]->price_model);
  }
  proto->set_beats_next_because(proposal.beats_next_because);
  AddRenderings(question, proposal, job, rank, proto, unwritten);
}

void SetSummary(const ServingSearchQuestion& question, const planner::ServingSummary& summary, v1::PlanSummary* proto) {
  ToProto(question.candidates[summary.candidate].slice, proto->mutable_slice());
  ToProto(summary.parallelism, proto->mutable_parallelism());
  proto->mutable_parallelism()->set_allow_idle_chips(question.search.constraints.allow_idle_chips);
  proto->mutable_parallelism()->set_allow_padding(question.search.constraints.allow_padding);
  proto->set_replica_count(static_cast<int32_t>(summary.replica_count));
  proto->set_outcome(ToProto(kServingOutcomes, summary.outcome));
  proto->set_expected_seconds(summary.tpot_seconds);
  proto->set_tokens_per_second_per_chip(summary.output_tokens_per_second_per_chip);
  if (summary.usd_per_million_output_tokens.has_value()) {
    proto->set_usd_per_million_tokens(*summary.usd_per_million_output_tokens);
  }
  proto->set_chip_count(static_cast<int32_t>(summary.chip_count));
}

void SetNearMiss(const ServingSearchQuestion& question, const planner::ServingMiss& miss, v1::NearMiss* proto) {
  SetSummary(question, miss.plan, proto->mutable_plan());
  ToProto(miss.shortfall, proto->mutable_lacks());
  if (!miss.smallest_fix.has_value()) return;
  ToProto(*miss.smallest_fix, proto->mutable_smallest_fix());
  for (v1::FieldChange& change : *proto->mutable_smallest_fix()->mutable_changes()) {
    change.set_field(FieldOfServingSearch(change.field()));
  }
  KeepFieldsOfSearch(proto->mutable_smallest_fix());
}

}  // namespace

void ToProto(const ServingSearchQuestion& question, const planner::ServingSearchAnswer& answer,
             v1::ProposeShardingResponse* response) {
  Unwritten unwritten;
  int rank = 0;
  for (const planner::ServingProposal& proposal : answer.proposals) {
    AddProposal(question, proposal, ++rank, response, unwritten);
  }
  v1::SearchReport* const report = response->mutable_search();
  report->set_considered_count(answer.considered_count);
  report->set_evaluated_count(answer.evaluated_count);
  AddPruned(answer.pruned, report);
  report->set_exhaustive(answer.exhaustive);
  if (answer.exhaustive) {
    report->set_optimality_gap_ratio(0);
  } else if (answer.optimality_gap_ratio) {
    report->set_optimality_gap_ratio(*answer.optimality_gap_ratio);
  }
  report->set_candidate_slice_count(static_cast<int32_t>(question.candidates.size()));
  for (const planner::ServingSummary& summary : answer.frontier) {
    SetSummary(question, summary, response->add_frontier());
  }
  for (const planner::ServingMiss& miss : answer.near_misses) {
    SetNearMiss(question, miss, response->add_near_misses());
  }
  question.assumptions.ToProto(response->mutable_assumptions());
  for (const std::string& line : answer.assumptions) ToProto(line, response->add_assumptions());
  for (v1::Assumption& line : *response->mutable_assumptions()) line.set_field(FieldOfServingSearch(line.field()));
  AddSearchWarnings(question,
                    question.search.objective == planner::Objective::kMinCost && question.search.requires_price,
                    unwritten, response);
  AddImportWarnings(*question.model, response->mutable_warnings());
}

}  // namespace sliceplan::rpc
