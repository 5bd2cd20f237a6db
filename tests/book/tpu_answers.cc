// Chapter 2: TPUs.
#include <string>

#include "server/hardware/topology.h"
#include "server/planner/budget.h"
#include "server/planner/serving_closed_form.h"
#include "server/roofline/bound.h"
#include "server/roofline/critical_batch.h"
#include "server/roofline/host_offload.h"
#include "server/roofline/memory_tiers.h"
#include "server/roofline/ring_collective.h"
#include "server/roofline/tile_padding.h"
#include "server/roofline/unit_rates.h"
#include "tests/book/book_case.h"
#include "tests/book/book_constants.h"

namespace sliceplan::book {
namespace {

using hardware::AcceleratorSpec;
using hardware::BytesPerElement;
using hardware::DataType;
using hardware::Slice;
using namespace roofline;  // NOLINT(google-build-using-namespace): this file calls little else

int64_t ChipsOf(const std::string& topology) { return hardware::ChipCount(hardware::ParseShape(topology).value()); }

// The book's table against the named set, through the engine's view of a chip.
Json SpecOf(const Json& given) {
  const std::string id = given.at("chip");
  const Json& record = ChipRecord(id);
  const AcceleratorSpec chip = ChipSpec(id);
  Json answer = {{"pod_topology", record.at("pod_topology")},
                 {"pod_chips", ChipsOf(record.at("pod_topology"))},
                 {"host_topology", record.at("host_topology")},
                 {"chips_per_host", ChipsOf(record.at("host_topology"))},
                 {"hbm_capacity_bytes", chip.hbm_bytes.value()},
                 {"hbm_bytes_per_s", TierBytesPerSecond(chip, MemoryTier::kHbm).value()},
                 {"bf16_flops_per_s", chip.MatmulRate(DataType::kBf16).value()},
                 {"int8_ops_per_s", chip.MatmulRate(DataType::kInt8).value()},
                 {"ici_link_one_way_bytes_per_s", TierBytesPerSecond(chip, MemoryTier::kIciLink).value()},
                 {"ici_link_bidi_bytes_per_s", TierBytesPerSecond(chip, MemoryTier::kIciAxis).value()}};
  if (chip.pcie_bytes_per_second) answer["pcie_bytes_per_s_per_chip"] = *chip.pcie_bytes_per_second;
  if (chip.dcn_bytes_per_second) answer["dcn_egress_bytes_per_s_per_chip"] = *chip.dcn_bytes_per_second;
  return answer;
}

Json IntensityTable(MemoryTier tier) {
  Json answer;
  for (const Json& record : Constants().at("tpus")) {
    std::string key = record.at("id").get<std::string>() + "_flops_per_byte";
    key.replace(key.find('-'), 1, "_");
    answer[key] = CriticalIntensity(ChipSpec(record.at("id")), tier).value();
  }
  return answer;
}

Json Padding(const Json& given) {
  Json padded = Json::array();
  Json useful = Json::array();
  for (const Json& dim : given.at("dims")) {
    padded.push_back(PaddedDim(dim, Count(given, "mxu_dim")));
    useful.push_back(UsefulRatio(dim, Count(given, "mxu_dim")));
  }
  return {{"padded", padded}, {"utilisation", useful}};
}

Json Vmem(const Json& given) {
  const AcceleratorSpec chip = GivenChip(given);
  return {{"vmem_bytes_per_s", TierBytesPerSecond(chip, MemoryTier::kVmem).value()},
          {"intensity_flops_per_byte", CriticalIntensity(chip, MemoryTier::kVmem).value()}};
}

Json VectorUnit(const Json& given) {
  const double lanes =
      VectorLaneCount(Number(given, "sublanes"), Number(given, "lanes"), Number(given, "alus_per_lane_sublane"));
  const double core = VectorFlopsPerSecond(lanes, Number(given, "clock_hz"));
  const double chip = VectorFlopsPerSecond(lanes * Number(given, "cores"), Number(given, "clock_hz"));
  return {{"vpu_flops_per_s_per_core", core},
          {"vpu_flops_per_s_per_chip", chip},
          {"mxu_over_vpu", Number(given, "mxu_flops_per_s_per_core") / core}};
}

Json Registers(const Json& given) {
  const double words = Number(given, "lanes") * Number(given, "sublanes");
  const double core = RegisterFileBytes(Number(given, "vregs"), words, Number(given, "bytes_per_word"));
  return {{"bytes_per_core", core}, {"bytes_per_chip", core * *ChipSpec(given.at("chip")).tensorcore_count}};
}

Json Wraps(const Json& given) {
  const Slice slice = SliceOf(given.at("chip"), given.at("topology"));
  Json answer;
  for (size_t i = 0; i < slice.axes.size(); ++i) answer["wrap_axis_" + std::to_string(i)] = slice.axes[i].wraps;
  return answer;
}

// Two cores that the runtime shows as one device.
bool IsMegacore(const std::string& id) {
  const AcceleratorSpec chip = ChipSpec(id);
  return *chip.tensorcore_count == 2 && chip.devices_per_chip == 1;
}

Json Cores(const Json&) {
  return {{"v5p_cores", *ChipSpec("tpu-v5p").tensorcore_count},
          {"v5e_cores", *ChipSpec("tpu-v5e").tensorcore_count},
          {"v4p_megacore", IsMegacore("tpu-v4p")},
          {"v5p_megacore", IsMegacore("tpu-v5p")},
          {"v3_megacore", IsMegacore("tpu-v3")},
          {"tpu7x_megacore", IsMegacore("tpu-7x")}};
}

Json StreamWeights(const Json& given) {
  const double bytes = Number(given, "params") * BytesPerElement(DataType::kBf16);
  OpCost cost;
  cost.hbm_bytes = bytes / Number(given, "chips");
  return {{"bytes_per_chip", cost.hbm_bytes}, {"t_s", SecondsOf(cost, GivenChip(given)).value().hbm}};
}

Json PodTotals(const Json& given) {
  Slice slice = SliceOf(given.at("chip"), given.at("topology"));
  slice.chips_per_host = static_cast<int32_t>(Count(given, "chips_per_host"));
  const planner::SliceTotals totals = planner::TotalsOf(slice);
  return {{"hosts", totals.host_count.value()},
          {"tensor_cores", totals.tensorcore_count.value()},
          {"flops_per_s", totals.flops_per_second.value()},
          {"hbm_bytes", totals.hbm_bytes.value()}};
}

Json OverPcie(const Json& given) {
  const AcceleratorSpec chip = GivenChip(given);
  const double bytes = BytesPerElement(DataType::kBf16);
  const double needed = CriticalIntensity(chip, MemoryTier::kPcie).value();
  return {{"batch_critical", CriticalBatch(*chip.bf16_flops_per_second, *chip.pcie_bytes_per_second, bytes)},
          {"min_D_for_exact_crossover", MinimumContractingDim(needed, Number(given, "F_over_D"), bytes, bytes)}};
}

Json FromVmem(const Json& given) {
  AcceleratorSpec chip = ChipSpec(given.at("chip"));
  const double vmem = TierBytesPerSecond(chip, MemoryTier::kVmem).value();
  const Matmul matmul{.k = given.at("weight_shape")[0],
                      .n = given.at("weight_shape")[1],
                      .lhs = DataType::kInt8,
                      .rhs = DataType::kInt8,
                      .output = DataType::kInt8};
  return {{"vmem_bytes_per_s", vmem},
          {"batch_critical", ExactCriticalBatch(matmul, *chip.MatmulRate(DataType::kInt8), vmem).value()}};
}

Json PointToPoint(const Json& given) {
  const Slice slice = SliceOf(given.at("chip"), given.at("topology"));
  const std::vector<int32_t> from = given.at("src");
  const std::vector<int32_t> to = given.at("dst");
  const int64_t hops = HopsBetween(slice.axes, from, to);
  const int ports = PortsTowards(slice.axes, from, to);
  const double bytes = Number(given, "array_bytes");
  const double link = *slice.accelerator.ici_link_bytes_per_second;
  const double hop = Number(given, "hop_latency_s");
  return {{"bytes", bytes},
          {"hops", hops},
          {"first_byte_s", PointToPointSeconds(0, hops, ports, link, hop)},
          {"bandwidth_time_s", PointToPointSeconds(bytes, 0, ports, link, hop)},
          {"total_s", PointToPointSeconds(bytes, hops, ports, link, hop)}};
}

Json HostOffload(const Json& given) {
  Slice slice = SliceOf(given.at("chip"), given.at("topology"));
  slice.chips_per_host = static_cast<int32_t>(ChipsOf(ChipRecord(given.at("chip")).at("host_topology")));
  const std::vector<int64_t> vector_shape = given.at("vector_shape");
  const Matmul matmul{.m = vector_shape[0], .k = vector_shape[1], .n = vector_shape[1], .rhs = DataType::kInt8};
  const std::vector<int32_t> corner = {0, 0};
  const ResourceSeconds seconds = OffloadedMatmulSeconds(matmul, slice, corner).value();
  return {{"matrix_bytes", BytesOf(matmul).rhs},
          {"t_pcie_s", seconds.pcie},
          {"t_ici_s", seconds.ici},
          {"t_hbm_s", seconds.hbm},
          {"t_math_s", seconds.matrix_unit},
          {"t_lower_s", BoundOf(seconds).lower_seconds},
          {"hosts", planner::TotalsOf(slice).host_count.value()}};
}

}  // namespace

Answers TpuAnswers() {
  Answers answers = {
      {"tpus.hbm_intensity_table", [](const Json&) { return IntensityTable(MemoryTier::kHbm); }},
      {"tpus.ici_intensity_table", [](const Json&) { return IntensityTable(MemoryTier::kIciAxis); }},
      {"tpus.mxu_rate_v5p",
       [](const Json& given) -> Json {
         return {{"chip_flops_per_s", SystolicFlopsPerSecond(Number(given, "mxus_per_chip"), Number(given, "mxu_dim"),
                                                             Number(given, "clock_hz"))}};
       }},
      {"tpus.mxu_padding", Padding},
      {"tpus.mxu_padding_v6e", Padding},
      {"tpus.vmem_intensity", Vmem},
      {"tpus.vpu_v5p", VectorUnit},
      {"tpus.vreg_bytes", Registers},
      {"tpus.pcie_vs_hbm_v4",
       [](const Json& given) -> Json {
         return {{"ratio", BandwidthRatio(GivenChip(given), MemoryTier::kHbm, MemoryTier::kPcie).value()}};
       }},
      {"tpus.dcn_per_host_v5p",
       [](const Json& given) -> Json {
         const double bytes =
             HostDcnBytesPerSecond(GivenChip(given), static_cast<int32_t>(Count(given, "chips_per_host"))).value();
         constexpr double kBitsPerByte = 8;
         constexpr double kGiga = 1e9;
         return {{"bytes_per_s_per_host", bytes}, {"gbit_per_s_per_host", bytes * kBitsPerByte / kGiga}};
       }},
      {"tpus.megacore", Cores},
      {"tpus.q1", StreamWeights},
      {"tpus.q2.v5e", PodTotals},
      {"tpus.q3", OverPcie},
      {"tpus.q4.vmem", FromVmem},
      {"tpus.q5", PointToPoint},
      {"tpus.q6", HostOffload},
  };
  for (const char* chip : {"v3", "v4p", "v5p", "v5e", "v6e"}) answers[std::string("tpus.spec.") + chip] = SpecOf;
  for (const char* slice : {"v5e_4x4", "v5e_4x8", "v5e_8x16", "v4p_2x2x1", "v4p_2x2x2", "v4p_2x2x4", "v4p_4x4x4",
                            "v5p_4x4x8", "v5p_16x20x28"}) {
    answers[std::string("tpus.wrap.") + slice] = Wraps;
  }
  return answers;
}

}  // namespace sliceplan::book
