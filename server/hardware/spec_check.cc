#include "server/hardware/spec_check.h"

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"

namespace sliceplan::hardware {
namespace {

// Slower or weaker than any chip; what is divided by them stays finite.
constexpr double kMinRate = 1;
constexpr double kMinShare = 1e-6;
constexpr double kMinWatts = 1e-3;
constexpr double kMaxRate = 1e24;
constexpr double kMaxWatts = 1e6;
constexpr int64_t kMaxBytes = int64_t{1} << 53;
constexpr int32_t kMaxCount = 1 << 20;
constexpr int32_t kMaxDims = 3;
constexpr double kMaxLatencySeconds = 1;
constexpr size_t kMaxNameLength = 128;

class Checker {
 public:
  Checker(absl::string_view prefix, std::vector<Violation>& violations) : prefix_(prefix), violations_(violations) {}

  void Rate(absl::string_view field, std::optional<double> value) {
    // Also refuses NaN.
    if (value && !(*value >= kMinRate && *value <= kMaxRate)) Add(field, "must be between 1 and 1e24");
  }
  void Watts(absl::string_view field, std::optional<double> value) {
    if (value && !(*value >= kMinWatts && *value <= kMaxWatts)) Add(field, "must be between 0.001 and 1e6");
  }
  void Latency(absl::string_view field, std::optional<double> value) {
    if (value && !(*value >= 0 && *value <= kMaxLatencySeconds)) Add(field, "must be between 0 and 1 second");
  }
  void Share(absl::string_view field, std::optional<double> value) {
    if (value && !(*value >= kMinShare && *value <= 1)) Add(field, "must be between 1e-6 and 1");
  }
  void Bytes(absl::string_view field, std::optional<int64_t> value) {
    if (value && (*value < 1 || *value > kMaxBytes)) Add(field, "must be between 1 and 2^53");
  }
  void Count(absl::string_view field, std::optional<int32_t> value, int32_t max = kMaxCount) {
    if (value && (*value < 1 || *value > max)) Add(field, absl::StrCat("must be between 1 and ", max));
  }
  void Add(absl::string_view field, absl::string_view what) {
    violations_.push_back({absl::StrCat(prefix_, field), absl::StrCat(prefix_, field, " ", what, "."), "OUT_OF_RANGE"});
  }

 private:
  absl::string_view prefix_;
  std::vector<Violation>& violations_;
};

}  // namespace

void CheckSpec(const AcceleratorSpec& spec, absl::string_view prefix, std::vector<Violation>& violations) {
  Checker check(prefix, violations);
  if (spec.name.size() > kMaxNameLength) check.Add("name", absl::StrCat("is longer than ", kMaxNameLength, " bytes"));

  check.Rate("bf16_flops_per_second", spec.bf16_flops_per_second);
  check.Rate("int8_ops_per_second", spec.int8_ops_per_second);
  check.Rate("int4_ops_per_second", spec.int4_ops_per_second);
  check.Rate("fp8_flops_per_second", spec.fp8_flops_per_second);
  check.Rate("fp4_flops_per_second", spec.fp4_flops_per_second);
  check.Rate("fp32_flops_per_second", spec.fp32_flops_per_second);
  check.Rate("vector_flops_per_second", spec.vector_flops_per_second);

  check.Bytes("hbm_bytes", spec.hbm_bytes);
  check.Bytes("hbm_usable_bytes", spec.hbm_usable_bytes);
  if (spec.hbm_bytes && spec.hbm_usable_bytes && *spec.hbm_usable_bytes > *spec.hbm_bytes) {
    check.Add("hbm_usable_bytes", "must be at most hbm_bytes");
  }
  check.Rate("hbm_bytes_per_second", spec.hbm_bytes_per_second);
  check.Bytes("vmem_bytes", spec.vmem_bytes);
  check.Rate("vmem_bytes_per_second", spec.vmem_bytes_per_second);

  check.Count("tensorcore_count", spec.tensorcore_count);
  check.Count("mxus_per_tensorcore", spec.mxus_per_tensorcore);
  check.Count("mxu_dim", spec.mxu_dim);
  check.Count("sm_count", spec.sm_count);
  check.Bytes("smem_bytes_per_sm", spec.smem_bytes_per_sm);
  check.Count("jax_devices_per_chip", spec.devices_per_chip);

  check.Count("ici_torus_dims", spec.ici_torus_dims, kMaxDims);
  check.Rate("ici_link_bytes_per_second", spec.ici_link_bytes_per_second);
  check.Latency("ici_hop_latency_seconds", spec.ici_hop_seconds);

  check.Count("scale_up_domain_size", spec.scale_up_domain_size);
  check.Rate("scale_up_bytes_per_second", spec.scale_up_bytes_per_second);
  check.Rate("network_bytes_per_second", spec.network_bytes_per_second);
  check.Latency("scale_up_latency_seconds", spec.scale_up_latency_seconds);
  check.Latency("network_latency_seconds", spec.network_latency_seconds);

  check.Rate("dcn_bytes_per_second", spec.dcn_bytes_per_second);
  check.Latency("dcn_latency_seconds", spec.dcn_latency_seconds);
  check.Rate("pcie_bytes_per_second", spec.pcie_bytes_per_second);
  check.Count("chips_per_host", spec.chips_per_host);

  check.Watts("mean_watts", spec.mean_watts);
  check.Watts("tdp_watts", spec.tdp_watts);
  check.Share("sustained_matmul_ratio", spec.sustained_matmul_ratio);
  check.Share("sustained_fp8_matmul_ratio", spec.sustained_fp8_matmul_ratio);
}

}  // namespace sliceplan::hardware
