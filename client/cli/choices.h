// Enum values of the contract as people type them: "full" is REMAT_POLICY_FULL.
#ifndef SLICEPLAN_CLIENT_CLI_CHOICES_H_
#define SLICEPLAN_CLIENT_CLI_CHOICES_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/generated_enum_reflection.h"

namespace sliceplan::cli {

// The short name of a value: "save-matmul-outputs". "unset" for the unspecified value, "number 7" for one that this
// program does not know.
std::string ChoiceName(const google::protobuf::EnumDescriptor& type, int number);

template <typename Enum>
std::string ChoiceName(Enum value) {
  return ChoiceName(*google::protobuf::GetEnumDescriptor<Enum>(), static_cast<int>(value));
}

// Reads a short name or the full one; case, "-" and "_" are the same, and common synonyms count ("1f1b"). Errors list
// all choices.
absl::StatusOr<int> ParseChoice(const google::protobuf::EnumDescriptor& type, absl::string_view text);

// "none, full, block": all values but the unspecified one.
std::string AllChoices(const google::protobuf::EnumDescriptor& type);

}  // namespace sliceplan::cli

#endif  // SLICEPLAN_CLIENT_CLI_CHOICES_H_
