#include "server/roofline/memory_tiers.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace sliceplan::roofline {
namespace {

using hardware::AcceleratorSpec;

absl::Status Missing(const AcceleratorSpec& accelerator, absl::string_view field) {
  return absl::FailedPreconditionError(absl::StrCat(
      field, " of ", accelerator.name.empty() ? "the accelerator" : accelerator.name, " is not public: set it"));
}

absl::StatusOr<double> Rate(const AcceleratorSpec& accelerator, MemoryTier tier) {
  const std::optional<double> rate = TierBytesPerSecond(accelerator, tier);
  if (!rate || *rate <= 0) return Missing(accelerator, TierField(tier));
  return *rate;
}

std::optional<double> Times(std::optional<double> rate, double factor) {
  if (!rate) return std::nullopt;
  return *rate * factor;
}

}  // namespace

std::optional<double> TierBytesPerSecond(const AcceleratorSpec& accelerator, MemoryTier tier) {
  switch (tier) {
    case MemoryTier::kVmem: return Times(accelerator.hbm_bytes_per_second, kVmemToHbmBandwidthRatio);
    case MemoryTier::kHbm: return accelerator.hbm_bytes_per_second;
    case MemoryTier::kPcie: return accelerator.pcie_bytes_per_second;
    case MemoryTier::kIciLink: return accelerator.ici_link_bytes_per_second;
    case MemoryTier::kIciAxis: return Times(accelerator.ici_link_bytes_per_second, /*factor=*/2);
    case MemoryTier::kScaleUp: return accelerator.scale_up_bytes_per_second;
    case MemoryTier::kScaleOut: return accelerator.network_bytes_per_second;
    case MemoryTier::kDcn: return accelerator.dcn_bytes_per_second;
  }
  return std::nullopt;
}

absl::string_view TierField(MemoryTier tier) {
  switch (tier) {
    case MemoryTier::kVmem:
    case MemoryTier::kHbm: return "hbm_bytes_per_second";
    case MemoryTier::kPcie: return "pcie_bytes_per_second";
    case MemoryTier::kIciLink:
    case MemoryTier::kIciAxis: return "ici_link_bytes_per_second";
    case MemoryTier::kScaleUp: return "scale_up_bytes_per_second";
    case MemoryTier::kScaleOut: return "network_bytes_per_second";
    case MemoryTier::kDcn: return "dcn_bytes_per_second";
  }
  return "";
}

absl::StatusOr<double> CriticalIntensity(const AcceleratorSpec& accelerator, MemoryTier tier,
                                         hardware::DataType compute) {
  const std::optional<double> flops_per_second = accelerator.MatmulRate(compute);
  if (!flops_per_second) {
    return Missing(accelerator,
                   compute == hardware::DataType::kFp32 ? "fp32_flops_per_second" : "bf16_flops_per_second");
  }
  const absl::StatusOr<double> bytes_per_second = Rate(accelerator, tier);
  if (!bytes_per_second.ok()) return bytes_per_second.status();
  return *flops_per_second / *bytes_per_second;
}

absl::StatusOr<double> BandwidthRatio(const AcceleratorSpec& accelerator, MemoryTier fast, MemoryTier slow) {
  const absl::StatusOr<double> fast_rate = Rate(accelerator, fast);
  if (!fast_rate.ok()) return fast_rate.status();
  const absl::StatusOr<double> slow_rate = Rate(accelerator, slow);
  if (!slow_rate.ok()) return slow_rate.status();
  return *fast_rate / *slow_rate;
}

std::optional<double> IciEgressBytesPerSecond(const AcceleratorSpec& accelerator) {
  if (!accelerator.ici_torus_dims) return std::nullopt;
  const double links = 2.0 * *accelerator.ici_torus_dims;
  return Times(accelerator.ici_link_bytes_per_second, links);
}

std::optional<double> DomainEgressBytesPerSecond(const AcceleratorSpec& accelerator) {
  if (!accelerator.scale_up_domain_size) return std::nullopt;
  return Times(accelerator.network_bytes_per_second, *accelerator.scale_up_domain_size);
}

std::optional<double> HostDcnBytesPerSecond(const AcceleratorSpec& accelerator, int32_t chips_per_host) {
  return Times(accelerator.dcn_bytes_per_second, chips_per_host);
}

std::optional<double> SharedMemoryBytes(const AcceleratorSpec& accelerator) {
  if (!accelerator.sm_count || !accelerator.smem_bytes_per_sm) return std::nullopt;
  return static_cast<double>(*accelerator.sm_count) * static_cast<double>(*accelerator.smem_bytes_per_sm);
}

}  // namespace sliceplan::roofline
