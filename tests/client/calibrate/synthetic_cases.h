// Training runs that nobody measured: questions whose answers under other constants stand in for measurements.
#ifndef SLICEPLAN_TESTS_CLIENT_CALIBRATE_SYNTHETIC_CASES_H_
#define SLICEPLAN_TESTS_CLIENT_CALIBRATE_SYNTHETIC_CASES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/calibrate/accuracy.h"
#include "client/calibrate/case.h"
#include "client/calibrate/predictor.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace sliceplan::calibrate {

inline constexpr char kSyntheticProfile[] = "maxtext-tpu";

// 20 runs of two sources: models with and without experts, short and long sequences, everything that the service would
// choose given. Nothing is measured yet.
inline std::vector<Case> SyntheticCases() {
  struct Run {
    const char* model;
    int sequence;
    int sequences_per_chip;
  };
  constexpr Run kRuns[] = {{"llama-3-8b", 2048, 4},    {"llama-3-8b", 8192, 1},   {"llama-3-8b", 32768, 1},
                           {"llama-3-70b", 4096, 1},   {"llama-3-70b", 8192, 2},  {"llama-3.2-1b", 2048, 8},
                           {"llama-3.2-3b", 16384, 1}, {"mixtral-8x7b", 2048, 4}, {"mixtral-8x7b", 4096, 2},
                           {"mixtral-8x7b", 32768, 1}};
  std::vector<Case> cases;
  for (const char* accelerator : {"tpu-v5p", "tpu-v6e"}) {
    const bool torus_3d = std::string(accelerator) == "tpu-v5p";
    for (const Run& run : kRuns) {
      Case made;
      made.id = absl::StrCat("SYN-", cases.size());
      made.source = torus_3d ? "three" : "two";
      made.model = run.model;
      made.accelerator = accelerator;
      made.groups = {"synthetic"};
      made.sweep = absl::StrCat(made.source, " ", made.model);
      v1::EstimateTrainingRequest request;
      EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
          absl::StrCat("model { preset: '", run.model, "' } slice { accelerator: '", accelerator, "' topology: '",
                       torus_3d ? "4x4x8" : "8x16", "' } workload { sequence_length: ", run.sequence,
                       " global_batch_size: ", 128 * run.sequences_per_chip,
                       " remat_policy: REMAT_POLICY_FULL gradient_accumulation: 1 }"
                       " parallelism { ici { fsdp: 128 } } calibration_profile: '",
                       kSyntheticProfile, "'"),
          &request));
      made.question = request;
      made.measured = {{Metric::kStepSeconds, 1}};
      cases.push_back(made);
    }
  }
  return cases;
}

// Takes what `predictor` answers for what was measured, times `factor`.
inline void MeasureWith(const Predictor& predictor, std::vector<Case>& cases, double factor = 1) {
  for (Case& made : cases) {
    const Answer answer = predictor.Predict(made);
    ASSERT_EQ(answer.predictions.size(), 1U) << made.id << ": " << answer.failure;
    made.measured[0].value = factor * answer.predictions[0].expected;
  }
}

inline std::unique_ptr<Predictor> BuiltInPredictor() {
  absl::StatusOr<std::unique_ptr<Predictor>> predictor = Predictor::Create("");
  EXPECT_TRUE(predictor.ok()) << predictor.status();
  return *std::move(predictor);
}

}  // namespace sliceplan::calibrate

#endif  // SLICEPLAN_TESTS_CLIENT_CALIBRATE_SYNTHETIC_CASES_H_
