// What one chip is. All rates are dense, per chip (TPU) or per GPU, decimal bytes, one direction.
#ifndef SLICEPLAN_SERVER_HARDWARE_ACCELERATOR_H_
#define SLICEPLAN_SERVER_HARDWARE_ACCELERATOR_H_

#include <cstdint>
#include <optional>
#include <string>

#include "server/hardware/data_type.h"

namespace sliceplan::hardware {

// How chips of one slice are joined.
enum class FabricKind {
  kTorus,     // direct links to neighbours along 1 to 3 axes
  kSwitched,  // scale-up domains behind switches, joined by a leaf and spine network
};

// Which axes of a torus slice close into rings.
enum class WrapRule {
  kNever,        // a mesh, or not public
  kAxisOf16,     // 2D: an axis wraps only at size 16
  kWholeCubes,   // 3D: every axis wraps when every dimension is a multiple of 4
  kFullPodOnly,  // only the full pod is known to close
};

// A field that is not public stays unset; a question that needs it is refused by name.
struct AcceleratorSpec {
  std::string name;
  FabricKind fabric = FabricKind::kTorus;
  WrapRule wrap_rule = WrapRule::kNever;

  // Peak rates of the matrix unit by operand type, operations per second.
  std::optional<double> bf16_flops_per_second;
  std::optional<double> int8_ops_per_second;
  std::optional<double> int4_ops_per_second;
  std::optional<double> fp8_flops_per_second;
  std::optional<double> fp4_flops_per_second;
  std::optional<double> fp32_flops_per_second;
  // fp32 rate of the vector unit.
  std::optional<double> vector_flops_per_second;

  std::optional<int64_t> hbm_bytes;         // physical
  std::optional<int64_t> hbm_usable_bytes;  // what a program can allocate
  std::optional<double> hbm_bytes_per_second;
  std::optional<int64_t> vmem_bytes;
  std::optional<double> vmem_bytes_per_second;  // unset: never binds

  std::optional<int32_t> tensorcore_count;
  std::optional<int32_t> mxus_per_tensorcore;
  std::optional<int32_t> mxu_dim;  // systolic array edge; matmul dimensions pad to it
  std::optional<int32_t> sm_count;
  std::optional<int64_t> smem_bytes_per_sm;
  // Devices that the runtime shows per chip: each holds its own gathered weights (2 where the cores are not fused).
  int32_t devices_per_chip = 1;

  std::optional<int32_t> ici_torus_dims;
  std::optional<double> ici_link_bytes_per_second;  // one link, one way
  std::optional<double> ici_hop_seconds;

  std::optional<int32_t> scale_up_domain_size;
  std::optional<double> scale_up_bytes_per_second;  // per chip, one way, inside the domain
  std::optional<double> network_bytes_per_second;   // per chip, one way, out of the domain
  bool in_network_reduction = false;                // of the switches of the scale-up domain
  bool network_in_network_reduction = false;        // of the leaf and spine switches
  // Of one crossing; unset: what server/roofline/collective.h takes for the first two, zero for the third.
  std::optional<double> scale_up_latency_seconds;
  std::optional<double> network_latency_seconds;
  std::optional<double> dcn_latency_seconds;

  std::optional<double> dcn_bytes_per_second;   // per chip, one way, between slices
  std::optional<double> pcie_bytes_per_second;  // per chip, one way, to the host
  std::optional<int32_t> chips_per_host;

  std::optional<double> mean_watts;  // per chip under load
  std::optional<double> tdp_watts;

  // Measured share of the peak that large matmuls reach, by operand type, when known.
  std::optional<double> sustained_matmul_ratio;      // bf16
  std::optional<double> sustained_fp8_matmul_ratio;  // of the fp8 peak

  // Peak of the matrix unit for operands of `type`, falling back to the rate that the unit really runs such operands
  // at: fp16 as bf16; a narrow type without a rate of its own is upcast and runs at the bf16 rate. nullopt when that is
  // unknown too. fp32 never falls back: nullopt without a rate of its own.
  std::optional<double> MatmulRate(DataType type) const;
  // Memory that a program can allocate: usable, else physical.
  std::optional<int64_t> AllocatableBytes() const { return hbm_usable_bytes ? hbm_usable_bytes : hbm_bytes; }
};

}  // namespace sliceplan::hardware

#endif  // SLICEPLAN_SERVER_HARDWARE_ACCELERATOR_H_
