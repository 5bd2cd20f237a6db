// The paths that bytes take to a chip's units, and the intensity that each path asks for. Chapters 1 and 2 of "How To
// Scale Your Model"; chapter 12 for GPUs.
#ifndef SLICEPLAN_SERVER_ROOFLINE_MEMORY_TIERS_H_
#define SLICEPLAN_SERVER_ROOFLINE_MEMORY_TIERS_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/hardware/accelerator.h"
#include "server/hardware/data_type.h"

namespace sliceplan::roofline {

// kIciAxis: both directions of one ring axis, what the book calls W_ici. kScaleOut: per chip.
enum class MemoryTier { kVmem, kHbm, kPcie, kIciLink, kIciAxis, kScaleUp, kScaleOut, kDcn };

// On-chip vector memory delivers this many times the bandwidth of HBM. Book, chapter 2.
inline constexpr double kVmemToHbmBandwidthRatio = 22;

// Bytes per second of one chip, one way (both ways for kIciAxis); nullopt when the figure is not public.
std::optional<double> TierBytesPerSecond(const hardware::AcceleratorSpec& accelerator, MemoryTier tier);

// The field of AcceleratorSpec that `tier` reads: "hbm_bytes_per_second".
absl::string_view TierField(MemoryTier tier);

// FLOPs per byte above which operands of `compute` that come over `tier` keep the matrix unit busy: peak / bandwidth.
// FAILED_PRECONDITION names the missing figure.
absl::StatusOr<double> CriticalIntensity(const hardware::AcceleratorSpec& accelerator, MemoryTier tier,
                                         hardware::DataType compute = hardware::DataType::kBf16);

// Times that `slow` is slower than `fast`. FAILED_PRECONDITION names the missing figure.
absl::StatusOr<double> BandwidthRatio(const hardware::AcceleratorSpec& accelerator, MemoryTier fast, MemoryTier slow);

// Totals of one chip or of its neighbourhood; nullopt when a figure is not public.
std::optional<double> IciEgressBytesPerSecond(const hardware::AcceleratorSpec& accelerator);  // all links of a chip
std::optional<double> DomainEgressBytesPerSecond(
    const hardware::AcceleratorSpec& accelerator);  // scale-up domain, outwards
std::optional<double> HostDcnBytesPerSecond(const hardware::AcceleratorSpec& accelerator, int32_t chips_per_host);
std::optional<double> SharedMemoryBytes(const hardware::AcceleratorSpec& accelerator);  // of all multiprocessors

}  // namespace sliceplan::roofline

#endif  // SLICEPLAN_SERVER_ROOFLINE_MEMORY_TIERS_H_
