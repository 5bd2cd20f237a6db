#include "server/rpc/convert/accelerator_spec.h"

namespace sliceplan::rpc {
namespace {

// Constants that are optional on both sides: name in the contract, name in the engine.
#define SLICEPLAN_SPEC_FIELDS(X)                          \
  X(bf16_flops_per_second, bf16_flops_per_second)         \
  X(int8_ops_per_second, int8_ops_per_second)             \
  X(int4_ops_per_second, int4_ops_per_second)             \
  X(fp8_flops_per_second, fp8_flops_per_second)           \
  X(fp4_flops_per_second, fp4_flops_per_second)           \
  X(vector_flops_per_second, vector_flops_per_second)     \
  X(hbm_bytes, hbm_bytes)                                 \
  X(hbm_usable_bytes, hbm_usable_bytes)                   \
  X(vmem_bytes, vmem_bytes)                               \
  X(tensorcore_count, tensorcore_count)                   \
  X(mxus_per_tensorcore, mxus_per_tensorcore)             \
  X(mxu_dim, mxu_dim)                                     \
  X(sm_count, sm_count)                                   \
  X(smem_bytes_per_sm, smem_bytes_per_sm)                 \
  X(hbm_bytes_per_second, hbm_bytes_per_second)           \
  X(ici_torus_dims, ici_torus_dims)                       \
  X(ici_link_bytes_per_second, ici_link_bytes_per_second) \
  X(scale_up_domain_size, scale_up_domain_size)           \
  X(scale_up_bytes_per_second, scale_up_bytes_per_second) \
  X(network_bytes_per_second, network_bytes_per_second)   \
  X(dcn_bytes_per_second, dcn_bytes_per_second)           \
  X(pcie_bytes_per_second, pcie_bytes_per_second)         \
  X(ici_hop_latency_seconds, ici_hop_seconds)             \
  X(scale_up_latency_seconds, scale_up_latency_seconds)   \
  X(network_latency_seconds, network_latency_seconds)     \
  X(dcn_latency_seconds, dcn_latency_seconds)             \
  X(vmem_bytes_per_second, vmem_bytes_per_second)         \
  X(chips_per_host, chips_per_host)                       \
  X(tdp_watts, tdp_watts)                                 \
  X(fp32_flops_per_second, fp32_flops_per_second)         \
  X(mean_watts, mean_watts)                               \
  X(sustained_matmul_ratio, sustained_matmul_ratio)       \
  X(sustained_fp8_matmul_ratio, sustained_fp8_matmul_ratio)

template <typename Proto>
void SetFields(const Proto& proto, hardware::AcceleratorSpec& spec) {
  if (!proto.name().empty()) spec.name = proto.name();
  // The mean power of the listed chip is not that of one with another limit.
  if (proto.has_tdp_watts()) spec.mean_watts.reset();
#define SLICEPLAN_SET(theirs, ours) \
  if (proto.has_##theirs()) spec.ours = proto.theirs();
  SLICEPLAN_SPEC_FIELDS(SLICEPLAN_SET)
#undef SLICEPLAN_SET
  if (proto.has_scale_up_in_network_reduction()) spec.in_network_reduction = proto.scale_up_in_network_reduction();
  if (proto.has_network_in_network_reduction()) {
    spec.network_in_network_reduction = proto.network_in_network_reduction();
  }
  if (proto.has_jax_devices_per_chip()) spec.devices_per_chip = proto.jax_devices_per_chip();
}

}  // namespace

void Apply(const v1::AcceleratorSpec& proto, hardware::AcceleratorSpec& spec) { SetFields(proto, spec); }

void Apply(const v1::AcceleratorOverride& proto, hardware::AcceleratorSpec& spec) { SetFields(proto, spec); }

void ToProto(const hardware::AcceleratorSpec& spec, v1::AcceleratorSpec* proto) {
  proto->set_name(spec.name);
#define SLICEPLAN_GET(theirs, ours) \
  if (spec.ours.has_value()) proto->set_##theirs(*spec.ours);
  SLICEPLAN_SPEC_FIELDS(SLICEPLAN_GET)
#undef SLICEPLAN_GET
  if (spec.in_network_reduction) proto->set_scale_up_in_network_reduction(true);
  if (spec.network_in_network_reduction) proto->set_network_in_network_reduction(true);
  if (spec.devices_per_chip > 1) proto->set_jax_devices_per_chip(spec.devices_per_chip);
}

#undef SLICEPLAN_SPEC_FIELDS

}  // namespace sliceplan::rpc
