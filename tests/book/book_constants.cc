#include "tests/book/book_constants.h"

#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>

#include "server/hardware/topology.h"
#include "server/roofline/memory_tiers.h"

namespace sliceplan::book {
namespace {

using hardware::AcceleratorSpec;
using hardware::FabricKind;
using hardware::Slice;
using hardware::WrapRule;

template <typename T>
void Read(const Json& object, const char* key, std::optional<T>& field) {
  if (object.contains(key)) field = static_cast<T>(Number(object, key));
}

WrapRule WrapRuleNamed(const std::string& name) {
  static const std::map<std::string, WrapRule> rules = {
      {"never", WrapRule::kNever}, {"axis_of_16", WrapRule::kAxisOf16}, {"whole_cubes", WrapRule::kWholeCubes}};
  return rules.at(name);
}

}  // namespace

const Json& Constants() {
  static const Json constants = [] {
    std::ifstream file(std::string(SLICEPLAN_TEST_DATA_DIR) + "/book_constants.json");
    return Json::parse(file);
  }();
  return constants;
}

const Json& ChipRecord(const std::string& id) {
  for (const char* kind : {"tpus", "gpus"}) {
    for (const Json& record : Constants().at(kind)) {
      if (record.at("id") == id) return record;
    }
  }
  throw std::out_of_range("book_constants.json has no chip " + id);
}

AcceleratorSpec ChipSpec(const std::string& id) {
  const Json& spec = ChipRecord(id).at("spec");
  AcceleratorSpec chip;
  chip.name = id;
  Read(spec, "bf16_flops_per_second", chip.bf16_flops_per_second);
  Read(spec, "int8_ops_per_second", chip.int8_ops_per_second);
  Read(spec, "fp8_flops_per_second", chip.fp8_flops_per_second);
  Read(spec, "fp4_flops_per_second", chip.fp4_flops_per_second);
  Read(spec, "hbm_bytes", chip.hbm_bytes);
  Read(spec, "hbm_bytes_per_second", chip.hbm_bytes_per_second);
  Read(spec, "vmem_bytes", chip.vmem_bytes);
  Read(spec, "tensorcore_count", chip.tensorcore_count);
  Read(spec, "mxus_per_tensorcore", chip.mxus_per_tensorcore);
  Read(spec, "mxu_dim", chip.mxu_dim);
  Read(spec, "sm_count", chip.sm_count);
  Read(spec, "smem_bytes_per_sm", chip.smem_bytes_per_sm);
  Read(spec, "ici_torus_dims", chip.ici_torus_dims);
  Read(spec, "ici_link_bytes_per_second", chip.ici_link_bytes_per_second);
  Read(spec, "scale_up_domain_size", chip.scale_up_domain_size);
  Read(spec, "scale_up_bytes_per_second", chip.scale_up_bytes_per_second);
  Read(spec, "network_bytes_per_second", chip.network_bytes_per_second);
  Read(spec, "dcn_bytes_per_second", chip.dcn_bytes_per_second);
  Read(spec, "pcie_bytes_per_second", chip.pcie_bytes_per_second);
  if (spec.contains("devices_per_chip")) chip.devices_per_chip = spec.at("devices_per_chip").get<int32_t>();
  if (spec.contains("wrap_rule")) chip.wrap_rule = WrapRuleNamed(spec.at("wrap_rule"));
  if (spec.contains("scale_up_domain_size")) chip.fabric = FabricKind::kSwitched;
  return chip;
}

std::vector<roofline::FatTreeLevel> SuperPodLevels() {
  std::vector<roofline::FatTreeLevel> levels;
  for (const Json& level : Constants().at("h100_superpod").at("levels")) {
    levels.push_back({level.at("child_count").get<int32_t>(), Number(level, "child_bytes_per_second")});
  }
  return levels;
}

AcceleratorSpec GivenChip(const Json& given) {
  AcceleratorSpec chip;
  Read(given, "flops_per_s", chip.bf16_flops_per_second);
  Read(given, "ops_per_s", chip.int8_ops_per_second);
  Read(given, "hbm_bytes_per_s", chip.hbm_bytes_per_second);
  Read(given, "hbm_bytes", chip.hbm_bytes);
  Read(given, "pcie_bytes_per_s", chip.pcie_bytes_per_second);
  Read(given, "dcn_bytes_per_s_per_chip", chip.dcn_bytes_per_second);
  Read(given, "gpu_bytes_per_s", chip.scale_up_bytes_per_second);
  Read(given, "hop_latency_s", chip.ici_hop_seconds);
  for (const char* key :
       {"ici_one_way_bytes_per_s", "link_bytes_per_s_one_way", "one_way_bytes_per_s", "ici_bidi_bytes_per_s"}) {
    if (given.contains(key)) {
      chip.ici_link_bytes_per_second = LinkBytesPerSecond(given);
      break;
    }
  }
  return chip;
}

Slice TorusOf(const AcceleratorSpec& accelerator, const std::vector<int32_t>& sizes, bool wraps) {
  Slice slice;
  slice.accelerator = accelerator;
  slice.accelerator.fabric = FabricKind::kTorus;
  for (const int32_t size : sizes) {
    slice.axes.push_back({size, wraps});
    slice.chip_count *= size;
  }
  return slice;
}

Slice SliceOf(const std::string& chip, const std::string& topology) {
  Slice slice = TorusOf(ChipSpec(chip), {}, false);
  const hardware::Shape shape = hardware::ParseShape(topology).value();
  const hardware::AxisWraps wraps = hardware::WrapsOf(slice.accelerator.wrap_rule, shape, /*pod_shape=*/{});
  for (size_t i = 0; i < shape.size(); ++i) {
    slice.axes.push_back({shape[i], wraps[i]});
    slice.chip_count *= shape[i];
  }
  return slice;
}

Slice SwitchedOf(const AcceleratorSpec& accelerator, int64_t gpus, int32_t domain_size) {
  Slice slice;
  slice.accelerator = accelerator;
  slice.accelerator.fabric = FabricKind::kSwitched;
  slice.accelerator.scale_up_domain_size = domain_size;
  slice.axes.push_back({static_cast<int32_t>(gpus), false});
  slice.chip_count = gpus;
  slice.domain_size = domain_size;
  return slice;
}

double LinkBytesPerSecond(const Json& given) {
  for (const char* key : {"ici_one_way_bytes_per_s", "link_bytes_per_s_one_way", "one_way_bytes_per_s"}) {
    if (given.contains(key)) return Number(given, key);
  }
  constexpr double kDirections = 2;
  return Number(given, "ici_bidi_bytes_per_s") / kDirections;
}

double AxisBytesPerSecond(const Json& given) {
  AcceleratorSpec chip;
  chip.ici_link_bytes_per_second = LinkBytesPerSecond(given);
  return roofline::TierBytesPerSecond(chip, roofline::MemoryTier::kIciAxis).value();
}

}  // namespace sliceplan::book
