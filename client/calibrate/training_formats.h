// What a training row saves, recomputes and stores, in which formats.
#ifndef SLICEPLAN_CLIENT_CALIBRATE_TRAINING_FORMATS_H_
#define SLICEPLAN_CLIENT_CALIBRATE_TRAINING_FORMATS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/calibrate/table.h"
#include "proto/sliceplan/v1/training.pb.h"

namespace sliceplan::calibrate {

// Sets the recompute policy: a name ("full", "minimal_flash", "save_qkv_proj"), or "custom:" and tensors with what
// happens to them ("custom: decoder_layer_input+q/k/v_proj offloaded to host"). Returns what was taken for what the row
// does not say; a policy that the service cannot express is INVALID_ARGUMENT.
absl::StatusOr<std::string> SetRemat(const Row& row, v1::TrainingWorkload& workload);

// Sets the number formats, the optimizer, and what of it is offloaded. INVALID_ARGUMENT: no such number format.
absl::Status SetFormats(const Row& row, v1::TrainingWorkload& workload);

}  // namespace sliceplan::calibrate

#endif  // SLICEPLAN_CLIENT_CALIBRATE_TRAINING_FORMATS_H_
