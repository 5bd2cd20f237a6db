#include "server/planner/workload_check.h"

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sliceplan::planner {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct RangeCase {
  const char* name;
  std::function<void(TrainingJob&)> change;
  const char* field;
  const char* says;
};

const RangeCase kCases[] = {
    {"no_sequence", [](TrainingJob& job) { job.workload.sequence_length = 0; }, "workload.sequence_length", "got 0"},
    {"long_sequence", [](TrainingJob& job) { job.workload.sequence_length = (1 << 30) + 1; },
     "workload.sequence_length", "1 to 1,073,741,824"},
    {"no_batch", [](TrainingJob& job) { job.workload.global_batch_size = -3; }, "workload.global_batch_size", "got -3"},
    {"huge_step",
     [](TrainingJob& job) {
       job.workload.sequence_length = 1 << 30;
       job.workload.global_batch_size = int64_t{1} << 40;
     },
     "workload.global_batch_size", "more than 9,007,199,254,740,992 tokens"},
    {"no_tokens", [](TrainingJob& job) { job.workload.total_tokens = 0; }, "workload.total_tokens", "got 0"},
    {"no_accumulation", [](TrainingJob& job) { job.workload.gradient_accumulation = 0; },
     "workload.gradient_accumulation", "1 to 1,048,576"},
    {"no_chunks", [](TrainingJob& job) { job.workload.logits_chunk_count = 0; }, "workload.logits_chunk_count",
     "got 0"},
    {"many_checkpoints", [](TrainingJob& job) { job.workload.checkpoints_per_layer = 1025; },
     "workload.checkpoints_per_layer", "0 to 1,024"},
    {"two_policies",
     [](TrainingJob& job) {
       job.workload.checkpoints_per_layer = 4;
       job.workload.remat_policy = RematPolicy::kFull;
     },
     "workload.checkpoints_per_layer", "give one"},
    {"integer_parameters", [](TrainingJob& job) { job.workload.precision.parameters = hardware::DataType::kInt8; },
     "workload.precision.parameters", "int8"},
    {"integer_gradients", [](TrainingJob& job) { job.workload.precision.gradients = hardware::DataType::kInt4; },
     "workload.precision.gradients", "int4"},
    {"offload_over_unknown_link",
     [](TrainingJob& job) {
       job.slice.accelerator.pcie_bytes_per_second.reset();
       job.workload.optimizer_offload = true;
     },
     "workload.optimizer_offload", "pcie_bytes_per_second"},
    {"custom_offload_over_unknown_link",
     [](TrainingJob& job) {
       job.slice.accelerator.pcie_bytes_per_second.reset();
       job.workload.remat_policy = RematPolicy::kCustom;
       job.workload.custom_remat.context = TensorPlacement::kOffloaded;
     },
     "workload.custom_remat", "pcie_bytes_per_second"},
    {"no_mfu", [](TrainingJob& job) { job.assumed_mfu_ratio = 0; }, "assumed_mfu_ratio", "1e-06 to 1"},
    {"mfu_above_one", [](TrainingJob& job) { job.assumed_mfu_ratio = 1.01; }, "assumed_mfu_ratio", "got 1.01"},
    {"mfu_not_a_number", [](TrainingJob& job) { job.assumed_mfu_ratio = kNaN; }, "assumed_mfu_ratio", "not a number"},
    {"negative_price", [](TrainingJob& job) { job.usd_per_chip_hour = -1; }, "pricing.usd_per_chip_hour", "got -1"},
    {"infinite_price", [](TrainingJob& job) { job.usd_per_chip_hour = kInfinity; }, "pricing.usd_per_chip_hour",
     "got inf"},
    {"no_deadline", [](TrainingJob& job) { job.deadline_seconds = 0; }, "job_deadline_seconds", "1e-06 to"},
    {"no_budget", [](TrainingJob& job) { job.budget_usd = -5; }, "budget_usd", "1e-06 to"},
    {"deadline_without_length",
     [](TrainingJob& job) {
       job.deadline_seconds = 100;
       job.workload.total_tokens.reset();
     },
     "job_deadline_seconds", "workload.total_tokens"},
    {"failures_all_the_time", [](TrainingJob& job) { job.reliability.mean_seconds_between_failures_per_chip = 0; },
     "reliability.mean_seconds_between_failures_per_chip", "1 to"},
    {"write", [](TrainingJob& job) { job.reliability.checkpoint_write_seconds = kNaN; },
     "reliability.checkpoint_write_seconds", "not a number"},
    {"restart", [](TrainingJob& job) { job.reliability.restart_seconds = -1; }, "reliability.restart_seconds",
     "0 to 1,000,000"},
    {"preemptions", [](TrainingJob& job) { job.reliability.preemptions_per_hour = 1e9; },
     "reliability.preemptions_per_hour", "0 to 10,000"},
};

TrainingJob LegalJob() {
  TrainingJob job;
  job.slice.accelerator.pcie_bytes_per_second = 3.2e10;
  job.workload.total_tokens = 15'000'000'000'000;
  return job;
}

TEST(WorkloadCheckTest, DefaultsAreLegal) {
  std::vector<hardware::Violation> violations;
  std::vector<std::string> warnings;
  CheckWorkload(LegalJob(), violations, warnings, 8192);
  EXPECT_THAT(violations, IsEmpty());
  EXPECT_THAT(warnings, IsEmpty());
}

TEST(WorkloadCheckTest, EachNumberOutOfRangeIsNamed) {
  for (const RangeCase& test : kCases) {
    SCOPED_TRACE(test.name);
    TrainingJob job = LegalJob();
    test.change(job);
    std::vector<hardware::Violation> violations;
    std::vector<std::string> warnings;
    CheckWorkload(job, violations, warnings);
    ASSERT_THAT(violations, SizeIs(1));
    EXPECT_EQ(violations[0].field, test.field);
    EXPECT_THAT(violations[0].description, HasSubstr(test.says));
    EXPECT_FALSE(violations[0].reason.empty());
  }
}

TEST(WorkloadCheckTest, AllAreFoundAtOnce) {
  TrainingJob job = LegalJob();
  job.workload.sequence_length = -1;
  job.workload.global_batch_size = 0;
  job.assumed_mfu_ratio = 2;
  job.budget_usd = 0;
  job.reliability.restart_seconds = kInfinity;
  std::vector<hardware::Violation> violations;
  std::vector<std::string> warnings;
  CheckWorkload(job, violations, warnings);
  std::vector<std::string> fields;
  for (const hardware::Violation& violation : violations) fields.push_back(violation.field);
  EXPECT_THAT(fields, UnorderedElementsAre("workload.sequence_length", "workload.global_batch_size",
                                           "assumed_mfu_ratio", "budget_usd", "reliability.restart_seconds"));
}

TEST(WorkloadCheckTest, OddJobsAreWarnedOf) {
  TrainingJob job = LegalJob();
  job.workload.sequence_length = 16384;
  job.workload.total_tokens = 1000;
  std::vector<hardware::Violation> violations;
  std::vector<std::string> warnings;
  CheckWorkload(job, violations, warnings, 8192);
  EXPECT_THAT(violations, IsEmpty());
  EXPECT_THAT(warnings,
              ElementsAre(HasSubstr("less than one step"), HasSubstr("16,384 tokens is longer than the 8,192")));
}

}  // namespace
}  // namespace sliceplan::planner
