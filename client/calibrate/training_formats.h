// What a training row saves, recomputes and stores, in which formats.
#ifndef SLICEPLAN_CLIENT_CALIBRATE_TRAINING_FORMATS_H_
#define SLICEPLAN_CLIENT_CALIBRATE_TRAINING_FORMATS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/calibrate/table.h"
#include "proto/sliceplan/v1/training.pb.h"

namespace sliceplan::calibrate {

// Sets the recompute policy: a name ("full", "minimal_flash", "save_qkv_proj"), or "custom:" and tensors with what
// happens to them ("custom: decoder_layer_input+q/k/v_proj offloaded to host"). Returns what was taken for what the row
// does not say; a policy that the service cannot express is INVALID_ARGUMENT.
absl::StatusOr<std::string> SetRemat(const Row& row, v1::TrainingWorkload& workload);

// Policies that the remat column may begin with, and the tensors and verbs of a "custom:" one.
std::vector<absl::string_view> RecomputeWords();
// The first word of a remat cell that is none of them; empty when all are. A known word can still be a policy that the
// service cannot express.
std::string UnknownRecomputeWord(absl::string_view cell);

// What the precision column may begin with, and what the optimizer column has among its words.
std::vector<absl::string_view> TrainingFormatWords();
std::vector<absl::string_view> OptimizerWords();

// Sets the number formats, the optimizer, and what of it is offloaded. INVALID_ARGUMENT: no such number format.
absl::Status SetFormats(const Row& row, v1::TrainingWorkload& workload);

}  // namespace sliceplan::calibrate

#endif  // SLICEPLAN_CLIENT_CALIBRATE_TRAINING_FORMATS_H_
