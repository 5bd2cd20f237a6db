// The model of a row: a preset where a name says what columns cannot, else written out from the columns.
#ifndef SLICEPLAN_CLIENT_CALIBRATE_SERVING_MODEL_H_
#define SLICEPLAN_CLIENT_CALIBRATE_SERVING_MODEL_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/calibrate/table.h"
#include "proto/sliceplan/v1/data_type.pb.h"
#include "proto/sliceplan/v1/model.pb.h"
#include "server/catalog/catalog.h"

namespace sliceplan::calibrate {

// As ModelOfColumns, or, where columns are blank or cannot say it, the catalog's preset of the model's name, with which
// the columns that are there must agree. INVALID_ARGUMENT: neither says what the model is.
absl::StatusOr<v1::ModelSpec> ModelOfServingRow(const Row& row, const catalog::Catalog& catalog);

// Columns: model, layers, hidden_dim, ffn_dim (of one expert), ffn_gated, heads, kv_heads, head_dim, vocab, experts,
// experts_per_token, attention_kind, notes. INVALID_ARGUMENT: what is missing.
absl::StatusOr<v1::ModelSpec> ModelOfColumns(const Row& row);

// Preset of a Hugging Face name; quantised copies ("nvidia/Qwen3-32B-NVFP4") are their model's.
v1::ModelSpec ModelOfPath(absl::string_view model_path);

// Whether the preset's own checkpoint is in this format, so that a request need not name it.
bool IsPublishedIn(absl::string_view model, v1::DataType weights);

}  // namespace sliceplan::calibrate

#endif  // SLICEPLAN_CLIENT_CALIBRATE_SERVING_MODEL_H_
