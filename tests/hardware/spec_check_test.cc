#include "server/hardware/spec_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <vector>

namespace sliceplan::hardware {
namespace {

std::vector<Violation> Check(const AcceleratorSpec& spec) {
  std::vector<Violation> violations;
  CheckSpec(spec, "custom.", violations);
  return violations;
}

TEST(CheckSpecTest, NothingIsRequired) { EXPECT_TRUE(Check(AcceleratorSpec()).empty()); }

struct BadCase {
  const char* field;
  std::function<void(AcceleratorSpec&)> spoil;
};

TEST(CheckSpecTest, NamesTheFieldOutOfRange) {
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  static constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const BadCase kCases[] = {
      {"custom.bf16_flops_per_second", [](AcceleratorSpec& s) { s.bf16_flops_per_second = kNan; }},
      {"custom.fp8_flops_per_second", [](AcceleratorSpec& s) { s.fp8_flops_per_second = 0; }},
      {"custom.hbm_bytes_per_second", [](AcceleratorSpec& s) { s.hbm_bytes_per_second = kInfinity; }},
      {"custom.ici_link_bytes_per_second", [](AcceleratorSpec& s) { s.ici_link_bytes_per_second = -1; }},
      {"custom.dcn_bytes_per_second", [](AcceleratorSpec& s) { s.dcn_bytes_per_second = 1.1e24; }},
      // Tiny rates would make infinite times.
      {"custom.bf16_flops_per_second", [](AcceleratorSpec& s) { s.bf16_flops_per_second = 1e-300; }},
      {"custom.ici_link_bytes_per_second", [](AcceleratorSpec& s) { s.ici_link_bytes_per_second = 5e-324; }},
      {"custom.sustained_matmul_ratio", [](AcceleratorSpec& s) { s.sustained_matmul_ratio = 5e-324; }},
      {"custom.mean_watts", [](AcceleratorSpec& s) { s.mean_watts = 1e7; }},
      {"custom.tdp_watts", [](AcceleratorSpec& s) { s.tdp_watts = 1e7; }},
      {"custom.hbm_bytes", [](AcceleratorSpec& s) { s.hbm_bytes = 0; }},
      {"custom.vmem_bytes", [](AcceleratorSpec& s) { s.vmem_bytes = (int64_t{1} << 53) + 1; }},
      {"custom.hbm_usable_bytes", [](AcceleratorSpec& s) { s.hbm_bytes = 10, s.hbm_usable_bytes = 11; }},
      {"custom.mxu_dim", [](AcceleratorSpec& s) { s.mxu_dim = 0; }},
      {"custom.ici_torus_dims", [](AcceleratorSpec& s) { s.ici_torus_dims = 4; }},
      {"custom.scale_up_domain_size", [](AcceleratorSpec& s) { s.scale_up_domain_size = (1 << 20) + 1; }},
      {"custom.ici_hop_latency_seconds", [](AcceleratorSpec& s) { s.ici_hop_seconds = 1.5; }},
      {"custom.jax_devices_per_chip", [](AcceleratorSpec& s) { s.devices_per_chip = 0; }},
      {"custom.name", [](AcceleratorSpec& s) { s.name = std::string(129, 'x'); }},
  };
  for (const BadCase& c : kCases) {
    AcceleratorSpec spec;
    c.spoil(spec);
    const std::vector<Violation> violations = Check(spec);
    ASSERT_EQ(violations.size(), 1u) << c.field;
    EXPECT_EQ(violations[0].field, c.field);
    EXPECT_EQ(violations[0].kind, Violation::Kind::kInvalid);
    EXPECT_EQ(violations[0].reason, "OUT_OF_RANGE");
  }
}

TEST(CheckSpecTest, ReportsAllAtOnce) {
  AcceleratorSpec spec;
  spec.bf16_flops_per_second = -1;
  spec.hbm_bytes = -1;
  spec.sm_count = -1;
  EXPECT_EQ(Check(spec).size(), 3u);
}

}  // namespace
}  // namespace sliceplan::hardware
