// The model of a training row: its columns, or the catalog's preset where they cannot say it.
#ifndef SLICEPLAN_CLIENT_CALIBRATE_TRAINING_MODEL_H_
#define SLICEPLAN_CLIENT_CALIBRATE_TRAINING_MODEL_H_

#include <string>

#include "absl/status/statusor.h"
#include "client/calibrate/table.h"
#include "proto/sliceplan/v1/model.pb.h"
#include "server/catalog/catalog.h"

namespace sliceplan::calibrate {

struct RowModel {
  v1::ModelSpec spec;
  bool has_experts = false;
  std::string remark;  // what was taken for what the row does not say
};

// From the columns: attention with grouped heads, MLPs or experts, with what the notes add ("5 of 6 layers sliding
// window 1024", "MoE every 2nd layer", "1 shared expert", "3 dense layers", "parallel_block"). A row without head sizes
// (latent attention, hybrids) takes the preset of its name, or of its dimensions, with the row's number of layers.
// NOT_FOUND: neither says what the model is.
absl::StatusOr<RowModel> ModelOfRow(const Row& row, const catalog::Catalog& catalog);

// The catalog's model of the row's name; nullptr when there is none, or when its dimensions are not those of the
// columns.
const catalog::v1::ModelRecord* PresetOfName(const Row& row, const catalog::Catalog& catalog);

}  // namespace sliceplan::calibrate

#endif  // SLICEPLAN_CLIENT_CALIBRATE_TRAINING_MODEL_H_
