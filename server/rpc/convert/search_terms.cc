#include "server/rpc/convert/search_terms.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/rpc/convert/enums.h"
#include "server/rpc/convert/pricing.h"
#include "server/rpc/convert/profile.h"

namespace sliceplan::rpc {

TermsFinder::TermsFinder(const v1::ProposeShardingRequest& request, const catalog::Catalog& catalog,
                         ProfileCache& profiles, const FieldPath& path, SearchBase& question, Violations& violations)
    : request_(request),
      catalog_(catalog),
      profiles_(profiles),
      path_(path),
      question_(question),
      violations_(violations) {
  // Says what is wrong with fields of the request; below it would be said again for each accelerator.
  v1::PriceUsed unused;
  ResolvePrice(request.pricing(), "", catalog, FieldPath(path, "pricing"), violations, &unused);
  profile_name_is_good_ =
      CheckProfileName(request.calibration_profile(), catalog, FieldPath(path, "calibration_profile"), violations);
}

const CandidateTerms* TermsFinder::TermsOf(const Candidate& candidate) {
  const hardware::Slice& slice = candidate.slice.slice;
  const auto key = std::make_tuple(slice.accelerator_id, slice.accelerator.fabric, candidate.pool);
  CandidateTerms*& terms = known_[key];
  if (terms == nullptr) {
    question_.all_terms.push_back(std::make_unique<CandidateTerms>());
    terms = question_.all_terms.back().get();
    SetPrice(candidate, *terms);
    SetProfile(candidate, *terms);
  }
  return terms;
}

void TermsFinder::SetPrice(const Candidate& candidate, CandidateTerms& terms) {
  v1::Pricing pricing = request_.pricing();
  if (candidate.pool != nullptr) {
    const v1::CapacityPool& pool = *candidate.pool;
    if (pool.price_model() != v1::PRICE_MODEL_UNSPECIFIED) pricing.set_price_model(pool.price_model());
    if (pool.has_usd_per_chip_hour()) pricing.set_usd_per_chip_hour(pool.usd_per_chip_hour());
  }
  const std::string& id = candidate.slice.slice.accelerator_id;
  Violations said;
  ResolvePrice(pricing, id, catalog_, FieldPath(path_, "pricing"), said, &terms.price);
  if (candidate.pool != nullptr && candidate.pool->has_usd_per_chip_hour()) {
    terms.price.set_sentence("The price of the pool.");
  }
  terms.price_model = pricing.price_model();
  if (terms.price.has_row()) terms.price_model = terms.price.row().price_model();
  if (!pricing.has_usd_per_chip_hour()) {
    terms.assumptions.Add(
        "pricing", terms.price.has_usd_per_chip_hour() ? absl::StrCat(terms.price.usd_per_chip_hour()) : std::string(),
        terms.price.sentence());
  }
  if (terms.price.has_usd_per_chip_hour()) return;
  const std::string& name = id.empty() ? candidate.slice.slice.accelerator.name : id;
  std::vector<std::string>& unpriced = question_.unpriced_accelerators;
  if (std::find(unpriced.begin(), unpriced.end(), name) == unpriced.end()) unpriced.push_back(name);
}

void TermsFinder::SetProfile(const Candidate& candidate, CandidateTerms& terms) {
  if (question_.limits.mode != planner::EstimationMode::kCalibrated || !profile_name_is_good_) return;
  Violations found;
  const FieldPath profile_path(path_, "calibration_profile");
  if (request_.has_serving()) {
    terms.serving_profile = ToServingProfile(request_.calibration_profile(), candidate.slice, catalog_, profiles_,
                                             profile_path, found, terms.assumptions);
  } else {
    terms.profile = ToTrainingProfile(request_.calibration_profile(), candidate.slice, catalog_, profiles_,
                                      profile_path, found, terms.assumptions);
  }
  if (found.empty() || profile_is_reported_) return;
  profile_is_reported_ = true;
  const FieldError& error = found.errors().front();
  violations_.Add(profile_path, error.description, error.reason);
}

bool HasExperts(const transformer::ModelOperations* model) {
  return model != nullptr &&
         std::any_of(model->layers.begin(), model->layers.end(),
                     [](const transformer::LayerOperations& layer) { return layer.expert_count > 0; });
}

planner::SliceNames NamesOf(const Candidate& candidate, const CandidateTerms& terms) {
  planner::SliceNames names;
  const hardware::Slice& slice = candidate.slice.slice;
  names.machine_type = slice.machine_type;
  names.host_count = slice.host_count;
  names.chips_per_host = slice.chips_per_host;
  if (const catalog::v1::SliceRecord* const record = candidate.slice.record(); record != nullptr) {
    names.accelerator_type = record->cloud_tpu_accelerator_type();
    names.topology = record->topology();
    names.gke_tpu_accelerator = record->gke_tpu_accelerator();
    names.xpk_device_type = record->xpk_device_type();
    names.gke_workload_policy_required = record->gke_workload_policy_required();
  }
  if (candidate.slice.gpu_machine != nullptr) names.gke_accelerator = candidate.slice.gpu_machine->gke_accelerator();
  if (candidate.pool != nullptr) {
    names.zone = candidate.pool->zone();
    names.capacity_pool = candidate.pool->name();
  }
  for (const auto& [proto, engine] : kPriceModels) {
    if (proto == terms.price_model) names.price_model = engine;
  }
  return names;
}

}  // namespace sliceplan::rpc
