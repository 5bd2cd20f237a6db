// An operator's file of chips, slices, prices or profiles over a small catalog: refused with every problem, or a
// catalog that answers for each of its chips.
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "server/catalog/catalog.h"
#include "server/catalog/efficiency.h"
#include "server/catalog/slice_resolver.h"
#include "server/planner/estimate_training.h"
#include "server/transformer/hugging_face/import.h"
#include "tests/fuzz/fuzz_service.h"

namespace sliceplan::fuzz {
namespace {

constexpr char kChip[] = R"(
# proto-message: sliceplan.catalog.v1.Accelerators
accelerators {
  id: "chip" aliases: ["c"] kind: ACCELERATOR_KIND_TPU vendor: "maker" status: AVAILABILITY_STATUS_GA
  figures { field: "bf16_flops_per_second" value: 1e14 chosen: true source: "s" as_of: "2026-08" }
  figures { field: "hbm_bytes" value: 17179869184 chosen: true source: "s" as_of: "2026-08" }
  figures { field: "hbm_bytes_per_second" value: 8e11 chosen: true source: "s" as_of: "2026-08" }
  figures { field: "tensorcore_count" value: 1 chosen: true source: "s" as_of: "2026-08" }
  figures { field: "ici_torus_dims" value: 2 chosen: true source: "s" as_of: "2026-08" }
  figures { field: "ici_link_bytes_per_second" value: 4.5e10 chosen: true source: "s" as_of: "2026-08" }
  interconnect { kind: FABRIC_KIND_TORUS_2D wrap_rule: WRAP_RULE_AXIS_OF_16_WRAPS source: "s" as_of: "2026-08" }
  source: "s" as_of: "2026-08-22"
})";
constexpr char kSlices[] = R"(
# proto-message: sliceplan.catalog.v1.Slices
defaults { accelerator: "chip" name_counts: NAME_COUNTS_CHIPS chips_per_host: 4 chips_per_host_bounds: [2, 2] source: "s"
           as_of: "2026-08" }
slices { topology: "2x4" slice_name: "c-8" })";
constexpr char kPrices[] = R"(
# proto-message: sliceplan.catalog.v1.Prices
prices { provider: "p" accelerator: "chip" region: "us-east5" price_model: PRICE_MODEL_ON_DEMAND usd_per_chip_hour: 1.2
         as_of: "2026-08" source: "s" })";

constexpr char kModel[] = R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64,
  "intermediate_size": 128, "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2,
  "vocab_size": 256, "max_position_embeddings": 256, "tie_word_embeddings": false})";

constexpr size_t kAskedChips = 4;

const transformer::ModelOperations& Model() {
  static const auto& model = *new transformer::ModelOperations(
      *transformer::OperationsOf(transformer::ImportHuggingFaceConfig(kModel).model->architecture));
  return model;
}

void Ask(const catalog::Catalog& catalog, const catalog::Accelerator& chip) {
  roofline::EfficiencyProfile profile;
  catalog::Problems problems;
  for (const catalog::v1::CalibrationProfile& record : catalog.calibration_profiles()) {
    catalog::RecordProblems record_problems(problems, "", record.name());
    profile = catalog::EfficiencyOf(record, chip.record.id(), record_problems);
  }
  std::vector<catalog::SliceQuery> queries(2);
  queries[0].one_chip_without_shape = true;
  queries[1].chip_count = 8;
  for (catalog::SliceQuery& query : queries) {
    query.accelerator = chip.record.id();
    const catalog::SliceResolution resolution = catalog::ResolveSlice(catalog, query);
    if (resolution.resolved.has_value() == !resolution.violations.empty())
      Fail("neither a slice nor a reason, or both");
    if (!resolution.resolved.has_value()) continue;
    planner::TrainingJob job;
    job.model = &Model();
    job.profile = &profile;
    job.slice = resolution.resolved->slice;
    job.workload.sequence_length = 64;
    job.workload.global_batch_size = 8;
    hardware::PriceQuery price_query;
    price_query.accelerator = chip.record.id();
    const hardware::PriceAnswer price = catalog.prices().Resolve(price_query);
    if (price.row != nullptr) job.usd_per_chip_hour = price.row->usd_per_chip_hour;
    planner::MappingCache mappings;
    const planner::TrainingAnswer answer = planner::EstimateTraining(job, mappings, [polls = 0]() mutable {
      constexpr int kPolls = 20;
      return ++polls > kPolls;
    });
    if (!answer.violations.empty() || answer.cancelled) continue;
    const planner::TrainingEstimate& estimate = answer.estimate;
    for (const double value : {estimate.step_time.roofline_lower_seconds, estimate.step_time.roofline_upper_seconds,
                               estimate.step_time.expected_seconds, estimate.mfu_ratio, estimate.hfu_ratio,
                               estimate.tokens_per_second, estimate.shortfall_amount}) {
      if (!std::isfinite(value) || value < 0) Fail("a figure that is none");
    }
  }
}

void Run(absl::string_view input) {
  const std::vector<catalog::SourceFile> base = {
      {"chip.textproto", kChip}, {"slices.textproto", kSlices}, {"prices.textproto", kPrices}};
  // Several files, as a directory has them, parted by a form feed.
  std::vector<catalog::SourceFile> overlay;
  for (const absl::string_view text : absl::StrSplit(input, '\f')) {
    overlay.push_back({std::string(1, static_cast<char>('a' + overlay.size() % 26)) + ".textproto", text});
  }
  const auto catalog = catalog::Catalog::Build(base, overlay);
  if (!catalog.ok()) {
    if (catalog.status().code() != absl::StatusCode::kInvalidArgument) Fail("another error than INVALID_ARGUMENT");
    if (catalog.status().message().empty()) Fail("an error without a sentence");
    return;
  }
  for (const catalog::Accelerator& chip : (*catalog)->accelerators().subspan(0, kAskedChips)) Ask(**catalog, chip);
}

}  // namespace
}  // namespace sliceplan::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  sliceplan::fuzz::Run(absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
