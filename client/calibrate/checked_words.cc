#include "client/calibrate/checked_words.h"

#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/calibrate/serving_model.h"
#include "client/calibrate/serving_words.h"
#include "client/calibrate/training_formats.h"
#include "server/catalog/near_names.h"

namespace sliceplan::calibrate {
namespace {

using Words = std::vector<absl::string_view>;

// What a cell that is not blank must be.
enum class Form {
  kNumber,      // finite, not negative
  kCount,       // whole too
  kWord,        // one of the words
  kFirstWord,   // begins with one of the words
  kAnyWord,     // has one of the words among its own
  kContexts,    // a count, or SP=TP
  kRecompute,   // a policy, "custom: ..." with tensors
  kChip,        // of the catalog
  kPath,        // whose last part is a model of the catalog
  kProfileNote  // notes, whose token profile= names a profile of the catalog
};

struct Column {
  std::string name;
  Form form = Form::kCount;
  Words words;
};

// The columns of one form.
void Add(const Words& names, Form form, std::vector<Column>& columns) {
  for (const absl::string_view name : names) columns.push_back({std::string(name), form, {}});
}

const Words& ModelCounts() {
  static const Words* const names = new Words{
      "layers", "hidden_dim", "ffn_dim", "heads", "kv_heads", "head_dim", "vocab", "experts", "experts_per_token"};
  return *names;
}

std::vector<Column> TrainingColumns() {
  std::vector<Column> columns = {
      {"accelerator", Form::kChip, {}},
      {"ffn_gated", Form::kWord, {"0", "1"}},
      {"sp_or_cp", Form::kContexts, {}},
      {"remat", Form::kRecompute, {}},
      {"precision", Form::kFirstWord, TrainingFormatWords()},
      {"optimizer", Form::kAnyWord, OptimizerWords()},
      {"framework",
       Form::kAnyWord,
       {"MaxText",
        "Paxml",
        "Pax",
        "AXLearn",
        "T5X",
        "Levanter",
        "JAX",
        "NeMo",
        "Megatron",
        "Megatron-LM",
        "Megatron-Bridge",
        "MegaScale",
        "TorchTitan",
        "PyTorch",
        "torch",
        "FSDP",
        "DeepSpeed",
        "llm-foundry",
        "Composer",
        "InternEvo",
        "OLMo-core",
        "HAI-LLM",
        "Megatron-DeepSpeed",
        "Megatron-LLaMA"}},
      {"notes", Form::kProfileNote, {}},
  };
  Add(ModelCounts(), Form::kCount, columns);
  Add({"seq_len", "global_batch_seqs", "chips", "num_slices", "dp", "fsdp", "tp", "pp", "ep"}, Form::kCount, columns);
  Add({"n_params", "microbatch", "tokens_per_step", "metric_step_time_s", "metric_tokens_per_s_per_chip",
       "memory_gb_per_chip"},
      Form::kNumber, columns);
  return columns;
}

std::vector<Column> ServingColumns() {
  std::vector<Column> columns = {
      {"accelerator", Form::kChip, {}},
      {"ffn_gated", Form::kWord, {"0", "1"}},
      {"attention_kind", Form::kWord, {"mha", "gqa", "mqa", "mla"}},
      {"weight_dtype", Form::kWord, DataTypeWords()},
      {"kv_dtype", Form::kWord, DataTypeWords()},
      {"activation_dtype", Form::kWord, DataTypeWords()},
      {"framework",
       Form::kAnyWord,
       {"TensorRT-LLM", "trtllm", "vLLM", "SGLang", "SGLang-JAX", "FasterTransformer", "gpt-fast", "PyTorch",
        "JetStream", "JetStream-PyTorch", "JAX", "DeepSeek"}},
      {"phase", Form::kWord, {"prefill", "decode", "e2e"}},
  };
  Add(ModelCounts(), Form::kCount, columns);
  Add({"chips", "tp", "pp", "ep", "dp", "batch_or_concurrency"}, Form::kCount, columns);
  Add({"input_len", "output_len", "context_len", "metric_prefill_s", "metric_ttft_s", "metric_step_ms_or_tpot_ms",
       "metric_output_tokens_per_s_total"},
      Form::kNumber, columns);
  return columns;
}

std::vector<Column> EndToEndColumns() {
  std::vector<Column> columns = {
      {"accelerator", Form::kChip, {}},         {"backend", Form::kWord, {"trtllm", "sglang", "vllm"}},
      {"mode", Form::kWord, {"agg", "disagg"}}, {"precision", Form::kWord, DataTypeWords()},
      {"model_path", Form::kPath, {}},
  };
  Add({"concurrency", "batch_size", "prefill_num_workers", "decode_batch_size", "decode_num_workers"}, Form::kCount,
      columns);
  for (const absl::string_view prefix : {"", "prefill_", "decode_"}) {
    for (const absl::string_view degree : {"tp_size", "pp_size", "attention_dp_size", "moe_tp_size", "moe_ep_size"}) {
      columns.push_back({absl::StrCat(prefix, degree), Form::kCount, {}});
    }
  }
  Add({"isl", "osl", "silicon_ttft_ms", "silicon_tpot_ms"}, Form::kNumber, columns);
  return columns;
}

std::string NoneOf(absl::string_view cell, const Words& words) {
  return absl::StrCat(catalog::Quoted(cell), " is none of ", absl::StrJoin(words, ", "),
                      catalog::DidYouMean(catalog::NearNames(cell, words)));
}

bool IsWord(absl::string_view cell, const Words& words) {
  return absl::c_any_of(words, [cell](absl::string_view word) { return absl::EqualsIgnoreCase(cell, word); });
}

// Words of a cell: letters, digits, hyphens.
Words WordsOf(absl::string_view cell) { return absl::StrSplit(cell, absl::ByAnyChar(" \t,;:()+/"), absl::SkipEmpty()); }

std::string NumberFault(const Row& row, const Column& column, absl::string_view cell) {
  const std::optional<double> number = row.Number(column.name);
  if (!number) return absl::StrCat(catalog::Quoted(cell), " is no number");
  if (*number < 0) return absl::StrCat(catalog::Quoted(cell), " is negative");
  if (column.form == Form::kCount && !row.Count(column.name))
    return absl::StrCat(catalog::Quoted(cell), " is no whole number");
  return "";
}

std::string ProfileFault(const Row& row, const catalog::Catalog& catalog) {
  const std::optional<absl::string_view> profile = row.Token("notes", "profile");
  if (!profile) return "";
  Words names;
  for (const auto& record : catalog.calibration_profiles()) names.push_back(record.name());
  if (absl::c_linear_search(names, *profile)) return "";
  return absl::StrCat("profile=", *profile, ": there is no such profile",
                      catalog::DidYouMean(catalog::NearNames(*profile, names)));
}

// What is wrong with the cell; empty when nothing is.
std::string FaultOf(const Row& row, const Column& column, const catalog::Catalog& catalog) {
  const absl::string_view cell = row.Text(column.name);
  if (cell.empty()) return "";
  switch (column.form) {
    case Form::kNumber:
    case Form::kCount: return NumberFault(row, column, cell);
    case Form::kWord: return IsWord(cell, column.words) ? "" : NoneOf(cell, column.words);
    case Form::kFirstWord: {
      const Words own = WordsOf(cell);
      const absl::string_view first = own.empty() ? cell : own.front();
      return IsWord(first, column.words) ? "" : NoneOf(first, column.words);
    }
    case Form::kAnyWord: {
      const Words own = WordsOf(cell);
      const bool known = absl::c_any_of(own, [&](absl::string_view word) { return IsWord(word, column.words); });
      return known ? "" : NoneOf(cell, column.words);
    }
    case Form::kContexts:
      if (absl::StrContains(cell, "SP=TP")) return "";
      return row.Count(column.name) ? "" : absl::StrCat(catalog::Quoted(cell), " is neither a count nor SP=TP");
    case Form::kRecompute: {
      const std::string unknown = UnknownRecomputeWord(cell);
      return unknown.empty() ? "" : NoneOf(unknown, RecomputeWords());
    }
    case Form::kChip: {
      const catalog::AcceleratorLookup found = catalog.FindAccelerator(cell);
      return found.violation ? found.violation->description : "";
    }
    case Form::kPath: {
      const catalog::ModelLookup found = catalog.FindModel(ModelOfPath(cell).preset());
      return found.violation ? found.violation->description : "";
    }
    case Form::kProfileNote: return ProfileFault(row, catalog);
  }
  return "";
}

}  // namespace

std::vector<std::string> FaultsOf(const Table& table, TableKind kind, absl::string_view file,
                                  const catalog::Catalog& catalog) {
  const std::vector<Column> columns = kind == TableKind::kTraining  ? TrainingColumns()
                                      : kind == TableKind::kServing ? ServingColumns()
                                                                    : EndToEndColumns();
  std::vector<std::string> faults;
  for (const Row& row : table.rows()) {
    for (const Column& column : columns) {
      const std::string fault = FaultOf(row, column, catalog);
      if (!fault.empty()) faults.push_back(absl::StrCat(file, ":", row.line(), ":", column.name, ": ", fault));
    }
  }
  return faults;
}

}  // namespace sliceplan::calibrate
