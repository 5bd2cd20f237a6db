// A scheduler's question: on which of these slices does the job end within its deadline for the least money?
//
//   pick_slice SERVER          e.g. pick_slice dns:///localhost:8080
//
// Asks about all candidates at once and prints one line for each, cheapest feasible one first.
#include <algorithm>
#include <cstdio>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include "sliceplan/client.h"

namespace {

using Estimate = sliceplan::v1::EstimateTrainingResponse;

constexpr double kDeadlineSeconds = 14 * 86400.0;

struct Candidate {
  std::string slice;
  std::promise<absl::StatusOr<Estimate>> answer;
};

// Llama 3 8B on 100 billion tokens: the job is the scheduler's, only the slice differs.
sliceplan::v1::EstimateTrainingRequest Question(const std::string& slice) {
  sliceplan::v1::EstimateTrainingRequest request;
  request.mutable_model()->set_preset("llama-3-8b");
  request.mutable_slice()->set_accelerator_type(slice);
  request.mutable_workload()->set_total_tokens(100'000'000'000);
  request.set_job_deadline_seconds(kDeadlineSeconds);
  return request;
}

void PrintError(const std::string& slice, const absl::Status& status) {
  std::printf("%-14s %s\n", slice.c_str(), status.ToString(absl::StatusToStringMode::kWithNoExtraData).c_str());
  for (const sliceplan::FieldViolation& violation : sliceplan::FieldViolations(status)) {
    std::printf("  %s: %s\n", violation.field.c_str(), violation.description.c_str());
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s SERVER\n", argv[0]);
    return 1;
  }
  sliceplan::ClientOptions options;
  options.target = argv[1];
  options.security = sliceplan::TransportSecurity::kPlaintext;
  options.user_agent = "client-quickstart/1.0";
  const absl::StatusOr<sliceplan::Client> client = sliceplan::Client::Create(options);
  if (!client.ok()) {
    std::fprintf(stderr, "%s\n", client.status().ToString().c_str());
    return 1;
  }

  std::vector<Candidate> candidates;
  for (const char* slice : {"v5p-128", "v5p-512", "v6e-64", "v6e-256", "v5litepod-256"})
    candidates.push_back({slice, {}});
  for (Candidate& candidate : candidates) {
    client->EstimateTrainingAsync(Question(candidate.slice), [&candidate](absl::StatusOr<Estimate> answer) {
      candidate.answer.set_value(std::move(answer));
    });
  }

  std::vector<std::pair<std::string, Estimate>> answers;
  bool failed = false;
  for (Candidate& candidate : candidates) {
    absl::StatusOr<Estimate> answer = candidate.answer.get_future().get();
    if (answer.ok()) {
      answers.emplace_back(candidate.slice, *std::move(answer));
    } else {
      PrintError(candidate.slice, answer.status());
      failed = true;
    }
  }

  const auto feasible = [](const Estimate& answer) {
    return answer.estimate().outcome() == sliceplan::v1::OUTCOME_FEASIBLE;
  };
  std::stable_sort(answers.begin(), answers.end(), [&](const auto& a, const auto& b) {
    if (feasible(a.second) != feasible(b.second)) return feasible(a.second);
    return a.second.estimate().cost().total_usd() < b.second.estimate().cost().total_usd();
  });
  for (const auto& [slice, answer] : answers) {
    const auto& estimate = answer.estimate();
    std::printf("%-14s %-26s %6.1f days  $%.0f\n", slice.c_str(),
                sliceplan::v1::Outcome_Name(estimate.outcome()).c_str(), estimate.time_to_train_seconds() / 86400,
                estimate.cost().total_usd());
  }
  return failed ? 1 : 0;
}
