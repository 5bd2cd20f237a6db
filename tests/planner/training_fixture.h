// A training job on made-up, round chips: every expected value can be worked out by hand.
#ifndef SLICEPLAN_TESTS_PLANNER_TRAINING_FIXTURE_H_
#define SLICEPLAN_TESTS_PLANNER_TRAINING_FIXTURE_H_

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "server/planner/estimate_training.h"
#include "tests/planner/small_models.h"

namespace sliceplan::planner {

// The book's v5p constants (chapter 2): 4.59e14 FLOP/s, 2.8e12 B/s HBM, 96 GB, 9e10 B/s a link and way, 6.25e9 B/s DCN.
inline hardware::AcceleratorSpec BookTorusChip() {
  hardware::AcceleratorSpec chip;
  chip.name = "test-torus";
  chip.fabric = hardware::FabricKind::kTorus;
  chip.bf16_flops_per_second = 4.59e14;
  chip.int8_ops_per_second = 9.18e14;
  chip.hbm_bytes = 96'000'000'000;
  chip.hbm_bytes_per_second = 2.8e12;
  chip.ici_torus_dims = 3;
  chip.ici_link_bytes_per_second = 9e10;
  chip.ici_hop_seconds = 1e-6;
  chip.dcn_bytes_per_second = 6.25e9;
  chip.pcie_bytes_per_second = 1.6e10;
  chip.mxu_dim = 128;
  chip.mean_watts = 400;
  return chip;
}

// The book's H100 (chapter 12).
inline hardware::AcceleratorSpec BookSwitchedChip() {
  hardware::AcceleratorSpec chip;
  chip.name = "test-switched";
  chip.fabric = hardware::FabricKind::kSwitched;
  chip.bf16_flops_per_second = 9.9e14;
  chip.hbm_bytes = 80'000'000'000;
  chip.hbm_bytes_per_second = 3.35e12;
  chip.scale_up_domain_size = 8;
  chip.scale_up_bytes_per_second = 4.5e11;
  chip.network_bytes_per_second = 5e10;
  chip.dcn_bytes_per_second = 5e10;
  chip.pcie_bytes_per_second = 6.4e10;
  return chip;
}

inline hardware::Slice TorusSlice(std::vector<int32_t> sizes, int32_t slice_count = 1) {
  hardware::Slice slice = Torus(std::move(sizes), slice_count);
  slice.accelerator = BookTorusChip();
  return slice;
}

inline hardware::Slice SwitchedSlice(int32_t chips) {
  hardware::Slice slice;
  slice.accelerator = BookSwitchedChip();
  slice.axes.push_back({chips, false});
  slice.chip_count = chips;
  slice.domain_size = 8;
  return slice;
}

// Round constants of a runtime in which every term shows.
inline roofline::EfficiencyProfile TestProfile() {
  roofline::EfficiencyProfile profile;
  profile.name = "test-profile";
  profile.version = "1";
  profile.matmul_inverse_ratio = 1.1;
  profile.matmul_operand_bytes_ratio = 0.5;
  profile.attention_ratio = 0.7;
  profile.elementwise_hbm_ratio = 0.6;
  profile.optimizer_hbm_ratio = 0.6;
  profile.expert_inverse_ratio = 1.5;
  profile.collective_ratio = 0.85;
  profile.gathered_weights_passes = 5;
  profile.fsdp_hideable_compute_ratio = 0.8;
  profile.fsdp_hidden_cost_ratio = 0.25;
  profile.tensor_exposed_ratio = 0.7;
  profile.context_exposed_ratio = 0.5;
  profile.expert_exposed_ratio = 0.7;
  profile.pipeline_exposed_ratio = 0.5;
  profile.data_exposed_ratio = 0.25;
  profile.dcn_exposed_ratio = 0.6;
  profile.dcn_jitter_ratio_per_doubling = 0.015;
  profile.dense_low_ratio = 0.9;
  profile.dense_high_ratio = 1.2;
  profile.expert_low_ratio = 0.8;
  profile.expert_high_ratio = 1.4;
  return profile;
}

struct Degrees {
  int32_t data = 1;
  int32_t fsdp = 1;
  int32_t tensor = 1;
  int32_t context = 1;
  int32_t expert = 1;
  int32_t pipeline = 1;
  int32_t dcn_data = 1;
};

inline Parallelism PlanOf(const Degrees& degrees) {
  Parallelism plan;
  plan.ici.degree = {degrees.data, degrees.fsdp, degrees.tensor, degrees.context, degrees.expert, degrees.pipeline};
  plan.dcn[LogicalAxis::kData] = degrees.dcn_data;
  return plan;
}

inline TrainingEstimate Estimated(const TrainingJob& job) {
  MappingCache mappings;
  TrainingAnswer answer = EstimateTraining(job, mappings);
  EXPECT_TRUE(answer.violations.empty()) << answer.violations.front().field << ": "
                                         << answer.violations.front().description;
  return std::move(answer.estimate);
}

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_TESTS_PLANNER_TRAINING_FIXTURE_H_
