#include "server/roofline/op_cost.h"

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/roofline/memory_tiers.h"

namespace sliceplan::roofline {
namespace {

using hardware::AcceleratorSpec;
using hardware::DataType;

constexpr std::array<DataType, 7> kDataTypes = {DataType::kBf16, DataType::kFp16, DataType::kFp32, DataType::kFp8,
                                                DataType::kFp4,  DataType::kInt8, DataType::kInt4};

absl::Status AddTransfer(const AcceleratorSpec& accelerator, MemoryTier tier, double bytes, double& seconds) {
  if (bytes <= 0) return absl::OkStatus();
  const std::optional<double> rate = TierBytesPerSecond(accelerator, tier);
  if (!rate || *rate <= 0) {
    return absl::FailedPreconditionError(absl::StrCat(TierField(tier), " is not public: set it"));
  }
  seconds = bytes / *rate;
  return absl::OkStatus();
}

}  // namespace

double OpCost::TotalFlops() const {
  double flops = vector_flops;
  for (const double part : matrix_flops) flops += part;
  return flops;
}

OpCost& OpCost::operator+=(const OpCost& other) {
  for (size_t i = 0; i < matrix_flops.size(); ++i) matrix_flops[i] += other.matrix_flops[i];
  vector_flops += other.vector_flops;
  vmem_bytes += other.vmem_bytes;
  hbm_bytes += other.hbm_bytes;
  pcie_bytes += other.pcie_bytes;
  ici_bytes += other.ici_bytes;
  scale_up_bytes += other.scale_up_bytes;
  scale_out_bytes += other.scale_out_bytes;
  dcn_bytes += other.dcn_bytes;
  return *this;
}

OpCost OpCost::Times(double factor) const {
  OpCost result = *this;
  for (double& flops : result.matrix_flops) flops *= factor;
  result.vector_flops *= factor;
  result.vmem_bytes *= factor;
  result.hbm_bytes *= factor;
  result.pcie_bytes *= factor;
  result.ici_bytes *= factor;
  result.scale_up_bytes *= factor;
  result.scale_out_bytes *= factor;
  result.dcn_bytes *= factor;
  return result;
}

absl::StatusOr<ResourceSeconds> SecondsOf(const OpCost& cost, const AcceleratorSpec& accelerator) {
  ResourceSeconds seconds;
  for (const DataType type : kDataTypes) {
    const double flops = cost.MatrixFlops(type);
    if (flops <= 0) continue;
    const std::optional<double> rate = accelerator.MatmulRate(type);
    if (!rate || *rate <= 0) {
      const absl::string_view field = type == DataType::kFp32 ? "fp32_flops_per_second" : "bf16_flops_per_second";
      return absl::FailedPreconditionError(absl::StrCat(field, " of the matrix unit is not public"));
    }
    seconds.matrix_unit += flops / *rate;
  }
  if (accelerator.vector_flops_per_second && *accelerator.vector_flops_per_second > 0) {
    seconds.vector_unit = cost.vector_flops / *accelerator.vector_flops_per_second;
  }
  const struct {
    MemoryTier tier;
    double bytes;
    double& seconds;
  } kTransfers[] = {
      {MemoryTier::kVmem, cost.vmem_bytes, seconds.vmem},
      {MemoryTier::kHbm, cost.hbm_bytes, seconds.hbm},
      {MemoryTier::kPcie, cost.pcie_bytes, seconds.pcie},
      {MemoryTier::kIciLink, cost.ici_bytes, seconds.ici},
      {MemoryTier::kScaleUp, cost.scale_up_bytes, seconds.scale_up},
      {MemoryTier::kScaleOut, cost.scale_out_bytes, seconds.scale_out},
      {MemoryTier::kDcn, cost.dcn_bytes, seconds.dcn},
  };
  for (const auto& transfer : kTransfers) {
    const absl::Status status = AddTransfer(accelerator, transfer.tier, transfer.bytes, transfer.seconds);
    if (!status.ok()) return status;
  }
  return seconds;
}

}  // namespace sliceplan::roofline
