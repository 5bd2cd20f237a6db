#include "client/calibrate/predictor.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/rpc/call_context.h"
#include "server/rpc/handlers/register.h"

namespace sliceplan::calibrate {
namespace {

// A figure of a reply; `expected` 0 when the reply lacks it.
Prediction OfTime(const v1::StepTime& time) {
  Prediction said;
  said.expected = time.expected_seconds();
  said.low = time.p05_seconds();
  said.high = time.p95_seconds();
  return said;
}

Prediction OfMean(const v1::LatencyEstimate& latency) {
  Prediction said;
  said.expected = latency.mean_seconds();
  said.low = latency.mean_p05_seconds();
  said.high = latency.mean_p95_seconds();
  return said;
}

Prediction OfOutput(const v1::ServingThroughput& throughput) {
  Prediction said;
  said.expected = throughput.output_tokens_per_second();
  said.low = throughput.output_tokens_per_second_p05();
  said.high = throughput.output_tokens_per_second_p95();
  return said;
}

Prediction OfValue(double expected) {
  Prediction said;
  said.expected = expected;
  return said;
}

Prediction Said(const v1::TrainingEstimate& estimate, Metric metric) {
  switch (metric) {
    case Metric::kStepSeconds: return OfTime(estimate.step_time());
    case Metric::kPeakMemoryBytes: return OfValue(static_cast<double>(estimate.memory().used_bytes()));
    case Metric::kAllocatedMemoryBytes:
      return OfValue(static_cast<double>(estimate.memory().used_bytes() - estimate.memory().reserve_bytes()));
    default: return Prediction();
  }
}

Prediction Said(const v1::ServingEstimate& estimate, Metric metric) {
  switch (metric) {
    case Metric::kPeakMemoryBytes: return OfValue(static_cast<double>(estimate.memory().used_bytes()));
    case Metric::kPrefillSeconds: return OfTime(estimate.prefill().time());
    case Metric::kDecodeStepSeconds: return OfTime(estimate.decode().step_time());
    case Metric::kBatchLatencySeconds: return OfMean(estimate.end_to_end());
    case Metric::kTimeToFirstToken: return OfMean(estimate.ttft());
    case Metric::kTimePerOutputToken: return OfMean(estimate.tpot());
    case Metric::kOutputTokensPerSecond: return OfOutput(estimate.throughput());
    case Metric::kStepSeconds:
    case Metric::kAllocatedMemoryBytes: break;
  }
  return Prediction();
}

template <typename Estimate>
void Fill(const Case& asked, const Estimate& estimate, Answer& answer) {
  answer.profile = estimate.calibration_profile();
  if (estimate.outcome() != v1::OUTCOME_FEASIBLE) answer.outcome = v1::Outcome_Name(estimate.outcome());
  for (const Measured& measured : asked.measured) {
    Prediction said = Said(estimate, measured.metric);
    said.metric = measured.metric;
    said.measured = measured.value;
    answer.predictions.push_back(said);
    if (!(said.expected > 0)) {
      answer.failure = absl::StrCat("the reply has no ", NameOf(measured.metric), answer.outcome.empty() ? "" : ": ",
                                    answer.outcome);
    }
  }
  if (!answer.failure.empty()) answer.predictions.clear();
}

}  // namespace

Predictor::Predictor(std::unique_ptr<catalog::CatalogStore> store)
    : store_(std::move(store)),
      catalog_(store_->Snapshot()),
      engine_(store_.get()),
      methods_(rpc::MakeMethodTable(&engine_)) {}

absl::StatusOr<std::unique_ptr<Predictor>> Predictor::Create(const std::string& catalog_dir) {
  absl::StatusOr<std::unique_ptr<catalog::CatalogStore>> store = catalog::CatalogStore::Create(catalog_dir);
  if (!store.ok()) return store.status();
  return std::unique_ptr<Predictor>(new Predictor(*std::move(store)));
}

std::vector<Answer> Predictor::PredictAll(const std::vector<const Case*>& cases) const {
  std::vector<Answer> answers(cases.size());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < cases.size(); i = next++) answers[i] = Predict(*cases[i]);
  };
  std::vector<std::thread> helpers;
  for (size_t i = 1; i < std::min<size_t>(std::thread::hardware_concurrency(), cases.size()); ++i)
    helpers.emplace_back(work);
  work();
  for (std::thread& helper : helpers) helper.join();
  return answers;
}

void Predictor::Try(const catalog::v1::CalibrationProfile& record) {
  tried_[record.name()] = record;
  engine_.profiles.Try(record);
}

const catalog::v1::CalibrationProfile& Predictor::Profile(const std::string& name) const {
  const auto tried = tried_.find(name);
  if (tried != tried_.end()) return tried->second;
  const auto& known = catalog_->calibration_profiles();
  return *std::find_if(known.begin(), known.end(), [&name](const auto& record) { return record.name() == name; });
}

Answer Predictor::Predict(const Case& asked) const {
  Answer answer;
  const auto ask = [this, &answer](absl::string_view method, const auto& request, auto& response) {
    const rpc::Result result = methods_.Find(method)->handle(request, &response, rpc::CallContext());
    if (!result.ok()) answer.failure = result.status().message();
    return result.ok();
  };
  if (const auto* training = std::get_if<v1::EstimateTrainingRequest>(&asked.question)) {
    v1::EstimateTrainingResponse response;
    if (ask("PlannerService/EstimateTraining", *training, response)) Fill(asked, response.estimate(), answer);
  } else {
    v1::EstimateServingResponse response;
    if (ask("PlannerService/EstimateServing", std::get<v1::EstimateServingRequest>(asked.question), response)) {
      Fill(asked, response.estimate(), answer);
    }
  }
  return answer;
}

}  // namespace sliceplan::calibrate
