#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/calibrate/cases.h"
#include "client/calibrate/serving_model.h"
#include "client/calibrate/serving_words.h"

namespace sliceplan::calibrate {
namespace {

constexpr double kSecondsPerMillisecond = 1e-3;
// GPUs of one engine beyond which a degree is that of a whole deployment.
constexpr int64_t kMostReplicaChips = 16;

// Degrees of one engine as a table has them.
struct Engine {
  int64_t tensor = 1;
  int64_t pipeline = 1;
  int64_t data = 1;  // ranks of the attention
  int64_t expert = 1;
  bool has_experts = false;
};

int64_t DegreeOf(const Row& row, const std::string& column) {
  return std::max<int64_t>(1, row.Count(column).value_or(1));
}

Engine EngineOf(const Row& row, const std::string& prefix) {
  const int64_t expert = DegreeOf(row, prefix + "moe_ep_size");
  return {DegreeOf(row, prefix + "tp_size"), DegreeOf(row, prefix + "pp_size"),
          DegreeOf(row, prefix + "attention_dp_size"), expert, expert > 1 || DegreeOf(row, prefix + "moe_tp_size") > 1};
}

// InferenceX's client draws lengths from 80 to 100% of these nominal pairs.
bool AreDrawn(double prompt, double output) {
  return (prompt == 1024 && (output == 1024 || output == 8192)) || (prompt == 8192 && output == 1024);
}

void SetLengths(double prompt, double output, v1::ServingWorkload& workload) {
  constexpr double kLeastOfNominal = 0.8;
  const double least = AreDrawn(prompt, output) ? kLeastOfNominal : 1;
  *workload.mutable_prompt_distribution() = DrawnLengths(prompt, least);
  *workload.mutable_output_distribution() = DrawnLengths(output, least);
}

// The formats of an engine's recipe: TensorRT-LLM and vLLM keep an eight-bit cache beside weights of eight and fewer
// bits, SGLang does not by default.
void SetFormats(const Row& row, v1::ServingPrecision& precision) {
  const v1::DataType weights = DataTypeNamed(row.Text("precision"));
  if (weights != v1::DATA_TYPE_UNSPECIFIED && !IsPublishedIn(row.Text("model_path"), weights))
    precision.set_weights(weights);
  if (weights != v1::DATA_TYPE_UNSPECIFIED && row.Text("backend") != "sglang")
    precision.set_kv_cache(v1::DATA_TYPE_FP8);
}

// Ranks of the attention share the experts; a dense model has none to share.
v1::Parallelism PlanOf(const Engine& engine) {
  v1::Parallelism plan;
  plan.mutable_ici()->set_tensor(static_cast<int32_t>(engine.tensor));
  plan.mutable_ici()->set_pipeline(static_cast<int32_t>(engine.pipeline));
  if (engine.has_experts) {
    plan.mutable_ici()->set_expert(static_cast<int32_t>(engine.data));
  } else {
    plan.mutable_ici()->set_data(static_cast<int32_t>(engine.data));
  }
  return plan;
}

v1::Slice SliceOf(const std::string& accelerator, const Engine& engine) {
  v1::Slice slice;
  slice.set_accelerator(accelerator);
  slice.set_chip_count(static_cast<int32_t>(engine.tensor * engine.pipeline * engine.data));
  return slice;
}

void Inform(std::string remark, Case& made) {
  made.standing = Standing::kInformative;
  made.remark = std::move(remark);
}

bool IsPowerOfTwo(int64_t count) { return (count & (count - 1)) == 0; }

absl::Status SetOnePool(const Row& row, v1::EstimateServingRequest& request, Case& made) {
  Engine engine = EngineOf(row, "");
  const int64_t batch = row.Count("batch_size").value_or(0);
  const int64_t users = row.Count("concurrency").value_or(batch * engine.data);
  if (users < 1) return absl::InvalidArgumentError("neither users nor batch are stated");
  if (!row.Count("concurrency")) Inform("users are not stated: taken from the batch", made);
  // Expert groups beyond one machine are the tensor or data degree again, counted twice over.
  const bool domain_of_eight = !absl::StrContains(row.Text("system"), "gb");
  if (domain_of_eight && engine.tensor > 8) engine.tensor = engine.expert;
  if (domain_of_eight && engine.data > 8) engine.data = engine.expert;
  if (engine.data == 4 && engine.expert == 2) engine.data = engine.expert;
  if (engine.data == 1 && batch > 0 && batch < users) {
    Inform("the batch is a share of the users that no column explains", made);
    // Ranks of the attention, then.
    if (batch * engine.tensor == users) std::swap(engine.data, engine.tensor);
  }
  const int64_t chips = engine.tensor * engine.data * engine.pipeline;
  if (chips > kMostReplicaChips || !IsPowerOfTwo(chips)) {
    return absl::InvalidArgumentError(
        "degrees of a whole deployment rather than of an engine: its layout is not stated");
  }
  *request.mutable_slice() = SliceOf(made.accelerator, engine);
  *request.mutable_parallelism() = PlanOf(engine);
  request.mutable_workload()->set_concurrency(static_cast<int32_t>(users));
  return absl::OkStatus();
}

absl::Status SetTwoPools(const Row& row, const Case& made, v1::EstimateServingRequest& request) {
  const int64_t decode_batch = row.Count("decode_batch_size").value_or(0);
  const std::optional<int64_t> readers = row.Count("prefill_num_workers");
  const std::optional<int64_t> writers = row.Count("decode_num_workers");
  if (!readers || !writers) return absl::InvalidArgumentError("two pools: neither batches nor workers are stated");
  const auto add = [&](v1::PoolRole role, const std::string& prefix, int64_t count) {
    const Engine engine = EngineOf(row, prefix);
    v1::Pool& pool = *request.add_pools();
    pool.set_role(role);
    *pool.mutable_slice() = SliceOf(made.accelerator, engine);
    *pool.mutable_parallelism() = PlanOf(engine);
    pool.set_replica_count(static_cast<int32_t>(count));
    return engine;
  };
  add(v1::POOL_ROLE_PREFILL, "prefill_", *readers);
  const Engine decode = add(v1::POOL_ROLE_DECODE, "decode_", *writers);
  const int64_t users = row.Count("concurrency").value_or(decode_batch * decode.data * *writers);
  if (users < 1) return absl::InvalidArgumentError("neither users nor batches are stated");
  request.mutable_workload()->set_concurrency(static_cast<int32_t>(users));
  return absl::OkStatus();
}

// Names of one architecture are left out together.
std::string ArchitectureOf(absl::string_view model_path) {
  const std::string preset = ModelOfPath(model_path).preset();
  return preset == "deepseek-r1" ? "deepseek-v3" : preset;
}

absl::StatusOr<Case> CaseOf(const Row& row, const catalog::Catalog& catalog) {
  const std::optional<double> prompt = row.Number("isl");
  const std::optional<double> output = row.Number("osl");
  const std::optional<double> first = row.Number("silicon_ttft_ms");
  const std::optional<double> token = row.Number("silicon_tpot_ms");
  if (row.Text("accelerator").empty()) return absl::InvalidArgumentError("no catalog id for its chip");
  if (!prompt || !output) return absl::InvalidArgumentError("isl or osl is blank");
  if (!first || !token || *first <= 0 || *token <= 0) return absl::InvalidArgumentError("no measured latencies");
  Case made;
  made.id = std::string(row.Text("id"));
  made.model = std::string(row.Text("model_path"));
  made.architecture = ArchitectureOf(made.model);
  made.accelerator = ChipOf(row.Text("accelerator"), catalog);
  v1::EstimateServingRequest request;
  *request.mutable_model() = ModelOfPath(made.model);
  SetLengths(*prompt, *output, *request.mutable_workload());
  SetFormats(row, *request.mutable_workload()->mutable_precision());
  request.set_calibration_profile(ProfileOf(row.Text("backend"), made.accelerator));
  const bool apart = row.Text("mode") == "disagg";
  const absl::Status load = apart ? SetTwoPools(row, made, request) : SetOnePool(row, request, made);
  if (!load.ok()) return load;

  made.source = absl::StrCat(apart ? "corpus-disagg-" : "corpus-", row.Text("backend"));
  made.groups = {apart ? "corpus-disaggregated" : "corpus"};
  made.sweep = absl::StrCat(made.model, " ", row.Text("system"), " ", row.Text("backend"), " ", row.Text("precision"),
                            " ", row.Text("mode"), " ", *prompt, "/", *output);
  const double first_seconds = *first * kSecondsPerMillisecond;
  const double token_seconds = *token * kSecondsPerMillisecond;
  made.measured = {{Metric::kTimeToFirstToken, first_seconds}, {Metric::kTimePerOutputToken, token_seconds}};
  if (!apart || row.Count("concurrency")) {
    // Users in a closed loop: Little's law.
    const v1::ServingWorkload& workload = request.workload();
    const double written = workload.output_distribution().moments().mean_tokens();
    const double rate = workload.concurrency() * written / (first_seconds + (written - 1) * token_seconds);
    made.measured.push_back({Metric::kOutputTokensPerSecond, rate, /*derived=*/true});
    made.job = absl::StrCat(row.Text("backend"), "/", row.Text("backend_version"), "/", JobOf(request));
  }
  if (row.Text("precision").empty() && made.remark.empty())
    made.remark = "the weights' format is not stated: taken as published";
  // The draft model's layers of these runs are not in any column; the same keys ran 1.7 times slower before.
  if (absl::StrContains(made.model, "DeepSeek") && row.Text("backend_version") == "1.2.0rc6.post3") {
    Inform("whether tokens are drafted is not stated", made);
  }
  made.question = std::move(request);
  return made;
}

// Everything that decides a run but the number of users.
std::string KeyOf(const Row& row) {
  std::string key;
  for (const absl::string_view column :
       {"accelerator", "backend", "precision", "mode", "isl", "osl", "tp_size", "pp_size", "attention_dp_size",
        "moe_tp_size", "moe_ep_size", "prefill_num_workers", "prefill_tp_size", "prefill_attention_dp_size",
        "decode_num_workers", "decode_tp_size", "decode_attention_dp_size", "decode_batch_size"}) {
    absl::StrAppend(&key, row.Text(column), "|");
  }
  const absl::string_view path = row.Text("model_path");
  // The same architecture under two names.
  absl::StrAppend(&key, absl::StrContains(path, "DeepSeek") ? "deepseek" : path);
  return key;
}

// Two times to the last digit: whatever name and degrees a second row gives them, one measurement.
std::string MeasurementOf(const Row& row) {
  return absl::StrCat(row.Text("accelerator"), "|", row.Text("backend"), "|", row.Text("mode"), "|", row.Text("isl"),
                      "|", row.Text("osl"), "|", row.Text("concurrency"), "|", row.Text("silicon_ttft_ms"), "|",
                      row.Text("silicon_tpot_ms"));
}

// A case beside others of its key.
struct Sibling {
  size_t index = 0;
  std::string version;  // of the engine
  double users = 0;
  double token_seconds = 0;
};

// Runs of one key that cannot all be what their columns say: of one version with the same users but other times, or
// with several times the users and much less time. Something that no column says differed.
void MarkContradictions(const std::vector<Sibling>& siblings, std::vector<Case>& cases) {
  constexpr double kSameRun = 1.1;     // repeats of a run stay within
  constexpr double kMuchFaster = 1.3;  // more users never make a step this much shorter
  constexpr double kMoreUsers = 2;
  constexpr double kManyMoreUsers = 4;  // whatever a new version gains
  const auto mark = [&](const Sibling& one, const Sibling& other) {
    Case& made = cases[one.index];
    if (made.standing == Standing::kInformative) return;
    made.standing = Standing::kInconsistent;
    made.remark = absl::StrCat("another run of the same key with ", other.users, " users took ",
                               other.token_seconds / kSecondsPerMillisecond, " ms per token");
  };
  for (const Sibling& one : siblings) {
    for (const Sibling& other : siblings) {
      const bool same_version = one.version == other.version;
      const double ratio = other.token_seconds / one.token_seconds;
      if (same_version && one.users == other.users && std::max(ratio, 1 / ratio) > kSameRun) mark(one, other);
      const double more = same_version ? kMoreUsers : kManyMoreUsers;
      if (one.users >= more * other.users && ratio > kMuchFaster) mark(one, other);
    }
  }
}

}  // namespace

CaseTable EndToEndCases(const Table& table, const catalog::Catalog& catalog) {
  CaseTable cases;
  std::set<std::string> seen;
  std::map<std::string, std::vector<Sibling>> siblings;
  for (const Row& row : table.rows()) {
    if (!seen.insert(MeasurementOf(row)).second) {
      AddUnmapped(row, "corpus", "a measurement that is listed twice", cases);
      continue;
    }
    absl::StatusOr<Case> made = CaseOf(row, catalog);
    if (!made.ok()) {
      AddUnmapped(row, "corpus", std::string(made.status().message()), cases);
      continue;
    }
    siblings[KeyOf(row)].push_back(
        {cases.cases.size(), std::string(row.Text("backend_version")),
         static_cast<double>(std::get<v1::EstimateServingRequest>(made->question).workload().concurrency()),
         made->measured[1].value});
    cases.cases.push_back(*std::move(made));
  }
  for (const auto& [key, alike] : siblings) MarkContradictions(alike, cases.cases);
  return cases;
}

}  // namespace sliceplan::calibrate
