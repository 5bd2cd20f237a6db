// What an import has found so far: everything that is wrong, and everything worth saying.
#ifndef SLICEPLAN_SERVER_TRANSFORMER_HUGGING_FACE_REPORT_H_
#define SLICEPLAN_SERVER_TRANSFORMER_HUGGING_FACE_REPORT_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/hardware/violation.h"
#include "server/transformer/hugging_face/import.h"

namespace sliceplan::transformer::hugging_face {

struct Report {
  std::vector<hardware::Violation> violations;
  std::vector<ImportWarning> warnings;

  void Violate(absl::string_view field, std::string description, absl::string_view reason,
               hardware::Violation::Kind kind = hardware::Violation::Kind::kInvalid) {
    // A key may be read for several layers: it is reported once.
    for (const hardware::Violation& known : violations) {
      if (known.field == field && known.reason == reason && known.description == description) return;
    }
    hardware::Violation violation;
    violation.field = std::string(field);
    violation.description = std::move(description);
    violation.reason = std::string(reason);
    violation.kind = kind;
    violations.push_back(std::move(violation));
  }

  void Warn(ImportWarning::Kind kind, absl::string_view field, std::string text) {
    warnings.push_back({kind, std::string(field), std::move(text)});
  }
};

}  // namespace sliceplan::transformer::hugging_face

#endif  // SLICEPLAN_SERVER_TRANSFORMER_HUGGING_FACE_REPORT_H_
