#include "client/calibrate/training_plan.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/calibrate/training_notes.h"

namespace sliceplan::calibrate {
namespace {

// Degrees over all slices, in devices.
struct Degrees {
  int64_t data = 1;
  int64_t fsdp = 1;
  int64_t tensor = 1;
  int64_t context = 1;
  int64_t expert = 1;
  int64_t pipeline = 1;

  int64_t BatchRanks() const { return data * fsdp * expert; }
};

constexpr double kBytesPerGigabyte = 1e9;

// The chip of the accelerator column, or of a name that says how it differs from one ("H100-96GB-HBM2e").
absl::Status FindChip(const Row& row, const catalog::Catalog& catalog, RowPlan& plan,
                      const catalog::Accelerator*& chip) {
  absl::string_view name = row.Text("accelerator");
  if (name.empty()) name = row.Text("chip");
  chip = catalog.FindAccelerator(name).accelerator;
  if (chip == nullptr && row.Text("accelerator").empty()) {
    chip = catalog.FindAccelerator(name.substr(0, name.find('-'))).accelerator;
    const size_t unit = name.find("GB");
    double gigabytes = 0;
    if (chip != nullptr && unit != absl::string_view::npos &&
        absl::SimpleAtod(name.substr(name.find('-') + 1, unit - name.find('-') - 1), &gigabytes)) {
      plan.slice.mutable_override()->set_hbm_bytes(static_cast<int64_t>(gigabytes * kBytesPerGigabyte));
    }
    if (chip != nullptr) plan.unknown.push_back(absl::StrCat("rates of ", std::string(name)));
  }
  if (chip == nullptr) return absl::InvalidArgumentError(absl::StrCat("no such chip in the catalog: ", name));
  plan.accelerator = chip->record.id();
  plan.slice.set_accelerator(plan.accelerator);
  return absl::OkStatus();
}

// FSDP whose ranks hold all weights from the forward to the backward pass.
bool KeepsWeightsWhole(const Row& row) {
  return Mentions(row, "notes", "SHARD_GRAD_OP") || Mentions(row, "notes", "not resharded after forward");
}

bool NamesDegrees(const Row& row) {
  for (absl::string_view column : {"dp", "fsdp", "tp", "pp"}) {
    if (row.Count(column)) return true;
  }
  return false;
}

absl::StatusOr<Degrees> DegreesOf(const Row& row, int64_t devices, RowPlan& plan) {
  Degrees degrees;
  degrees.fsdp = row.Count("fsdp").value_or(1);
  degrees.tensor = row.Count("tp").value_or(1);
  degrees.context = row.Count("sp_or_cp").value_or(1);
  degrees.pipeline = row.Count("pp").value_or(1);
  degrees.expert = row.Count("ep").value_or(1);
  const int64_t others = degrees.fsdp * degrees.tensor * degrees.context * degrees.pipeline;
  const int64_t stated_data = row.Count("dp").value_or(0);
  if (others <= 0 || degrees.expert <= 0 || devices % others != 0) {
    return absl::InvalidArgumentError("its degrees do not divide its chips");
  }
  const int64_t data = devices / others;  // experts' ranks included
  if (data % degrees.expert == 0) {
    degrees.data = data / degrees.expert;
  } else if (degrees.fsdp % degrees.expert == 0) {
    degrees.data = data;
    degrees.fsdp /= degrees.expert;
  } else if (degrees.expert % data == 0 && degrees.tensor % (degrees.expert / data) == 0) {
    plan.taken.emplace_back("experts over the replicas alone: the row has them over tensor ranks too");
    degrees.expert = data;
  } else {
    return absl::InvalidArgumentError("its degrees do not divide its chips");
  }
  const bool multiplies = stated_data == 0 || stated_data == data || stated_data == degrees.data;
  if (!multiplies) plan.taken.emplace_back("replicas: what remains of the chips, its dp does not multiply to them");
  if (stated_data == 0 && !row.Count("fsdp") && degrees.data > 1 &&
      Mentions(row, "notes", "FSDP+DP split not stated")) {
    plan.unknown.emplace_back("how FSDP and replicas share the chips");
    std::swap(degrees.data, degrees.fsdp);
  }
  if (KeepsWeightsWhole(row)) {
    degrees.data *= degrees.fsdp;
    degrees.fsdp = 1;
  }
  return degrees;
}

// Stacks whose tensor ranks share the sequence only where a flag says so. Megatron-DeepSpeed's fork is older than the
// flag (Korthikanti et al., May 2022).
bool ShardsTheSequenceOnRequest(const Row& row) {
  return StackOf(row) == Stack::kMegatronLm || Mentions(row, "framework", "Megatron-DeepSpeed") ||
         Mentions(row, "framework", "DeepSpeed + Megatron");
}

// What the data axis shards.
v1::ZeroStage StageOf(const Row& row) {
  if (KeepsWeightsWhole(row) || Mentions(row, "framework", "ZeRO-2")) return v1::ZERO_STAGE_2;
  if (const std::vector<double> noted = NotedNumbers(row, R"(\bzero_stage=([0-3]))"); !noted.empty()) {
    return static_cast<v1::ZeroStage>(v1::ZERO_STAGE_0 + std::lround(noted[0]));
  }
  const bool distributed = Mentions(row, "optimizer", "distributed") || Mentions(row, "optimizer", "ZeRO-1") ||
                           row.Token("notes", "zero1_group_size").has_value() || Mentions(row, "notes", "zero1_group");
  // NeMo's recipes shard the optimizer.
  return distributed || StackOf(row) == Stack::kNeMo ? v1::ZERO_STAGE_1 : v1::ZERO_STAGE_0;
}

// Spreads the degrees over slices, batch axes first, then over the devices of a chip.
void SetDegrees(Degrees degrees, int64_t slices, int64_t devices_per_chip, v1::Parallelism& parallelism) {
  v1::AxisDegrees& across = *parallelism.mutable_dcn();
  const auto move = [&slices](int64_t& degree) {
    const int64_t moved = std::gcd(degree, slices);
    degree /= moved;
    slices /= moved;
    return static_cast<int32_t>(moved);
  };
  across.set_data(move(degrees.data));
  across.set_fsdp(move(degrees.fsdp));
  across.set_pipeline(move(degrees.pipeline));
  across.set_expert(move(degrees.expert));
  for (int64_t* degree : {&degrees.fsdp, &degrees.data, &degrees.tensor}) {
    const int64_t halved = std::gcd(*degree, devices_per_chip);
    *degree /= halved;
    devices_per_chip /= halved;
  }
  v1::AxisDegrees& within = *parallelism.mutable_ici();
  within.set_data(static_cast<int32_t>(degrees.data));
  within.set_fsdp(static_cast<int32_t>(degrees.fsdp));
  within.set_tensor(static_cast<int32_t>(degrees.tensor));
  within.set_context(static_cast<int32_t>(degrees.context));
  within.set_expert(static_cast<int32_t>(degrees.expert));
  within.set_pipeline(static_cast<int32_t>(degrees.pipeline));
}

// Microbatches of a step: batch / (ranks of the batch x microbatch).
void SetMicrobatches(const Row& row, const Degrees& degrees, int64_t devices, RowPlan& plan) {
  const int64_t batch = row.Count("global_batch_seqs").value_or(0);
  const int64_t microbatch = row.Count("microbatch").value_or(0);
  const bool pipelined = degrees.pipeline > 1;
  // TorchTitan splits the local batch into as many microbatches as there are stages.
  if (pipelined && Mentions(row, "notes", "microbatch column is local batch")) {
    plan.taken.emplace_back("microbatches: as many as stages");
    plan.parallelism->set_microbatch_count(static_cast<int32_t>(degrees.pipeline));
    plan.gradient_accumulation = 1;
    return;
  }
  if (batch == 0 || microbatch == 0) {
    plan.unknown.emplace_back(batch == 0 ? "batch" : "microbatch");
    return;
  }
  // MaxText's batch is per device, tensor ranks included.
  const bool per_device = StackOf(row) == Stack::kTpu || StackOf(row) == Stack::kJaxGpu;
  const int64_t round = (per_device ? devices : degrees.BatchRanks()) * microbatch;
  if (batch % round != 0) {
    plan.unknown.emplace_back("microbatch: it does not divide the batch");
    return;
  }
  const auto rounds = static_cast<int32_t>(batch / round);
  if (pipelined) plan.parallelism->set_microbatch_count(rounds);
  plan.gradient_accumulation = pipelined ? 1 : rounds;
}

}  // namespace

absl::StatusOr<RowPlan> PlanOfRow(const Row& row, const catalog::Catalog& catalog) {
  RowPlan plan;
  const catalog::Accelerator* chip = nullptr;
  if (const absl::Status found = FindChip(row, catalog, plan, chip); !found.ok()) return found;
  const int64_t chips = row.Count("chips").value_or(0);
  const int64_t slices = std::max<int64_t>(1, row.Count("num_slices").value_or(1));
  if (chips <= 0) return absl::InvalidArgumentError("no chip count");
  if (chips % slices != 0) return absl::InvalidArgumentError("its slices do not divide its chips");
  plan.slice.set_chip_count(static_cast<int32_t>(chips / slices));
  if (slices > 1) plan.slice.set_slice_count(static_cast<int32_t>(slices));
  if (!NamesDegrees(row)) {
    plan.unknown.emplace_back("degrees");
    if (!row.Count("global_batch_seqs")) plan.unknown.emplace_back("batch");
    return plan;
  }
  const int64_t devices = chips * chip->spec.devices_per_chip;
  absl::StatusOr<Degrees> degrees = DegreesOf(row, devices, plan);
  if (!degrees.ok()) return degrees.status();
  plan.parallelism.emplace();
  SetMicrobatches(row, *degrees, devices, plan);
  SetDegrees(*degrees, slices, chip->spec.devices_per_chip, *plan.parallelism);
  if (const v1::ZeroStage stage = StageOf(row); stage != v1::ZERO_STAGE_0) {
    plan.parallelism->set_data_zero_stage(stage);
  }
  const std::vector<double> chunks = NotedNumbers(row, R"(\b(?:VP|virtual_stages)=(\d+))");
  if (!chunks.empty() && chunks[0] > 1 && degrees->pipeline > 1) {
    // A chunk that holds the embedding or the loss alone counts in Megatron, not here.
    const int64_t most = std::max<int64_t>(1, row.Count("layers").value_or(1) / degrees->pipeline);
    plan.parallelism->set_virtual_stage_count(static_cast<int32_t>(std::min<int64_t>(most, std::llround(chunks[0]))));
  }
  // The column cannot say both; whoever shards the context shards the sequence over tensor ranks too.
  if (ShardsTheSequenceOnRequest(row) && degrees->tensor > 1 && degrees->context == 1) {
    plan.parallelism->set_sequence_parallel(Mentions(row, "sp_or_cp", "SP=TP"));
  }
  return plan;
}

}  // namespace sliceplan::calibrate
