// What the free text of a training row says: numbers in its notes, names in its framework.
#ifndef SLICEPLAN_CLIENT_CALIBRATE_TRAINING_NOTES_H_
#define SLICEPLAN_CLIENT_CALIBRATE_TRAINING_NOTES_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/calibrate/table.h"

namespace sliceplan::calibrate {

// The numbers that the groups of `pattern` (ECMAScript, without regard to case) match in the notes; empty when it does
// not match.
std::vector<double> NotedNumbers(const Row& row, const std::string& pattern);

// Whether the field contains `text`, without regard to case.
bool Mentions(const Row& row, absl::string_view column, absl::string_view text);

// What runs the step: whose defaults hold where a row is silent.
enum class Stack {
  kTpu,         // JAX on TPUs: MaxText, Pax
  kJaxGpu,      // JAX on GPUs
  kNeMo,        // NeMo, Megatron-Bridge: Megatron-Core with its recipes
  kMegatronLm,  // Megatron-LM: everything is off that no flag turns on
  kTorchTitan,
  kOtherTorch,  // FSDP, DeepSpeed and their like
};

Stack StackOf(const Row& row);

// Whether the vendor of the chip maintains the stack for speed: the class that constants are fitted by.
bool IsVendorStack(Stack stack);

// Calibration profile of a row's stack: what its note "profile=" says, else that of the class. Empty on TPUs: the
// chip's.
std::string ProfileOf(const Row& row);

}  // namespace sliceplan::calibrate

#endif  // SLICEPLAN_CLIENT_CALIBRATE_TRAINING_NOTES_H_
