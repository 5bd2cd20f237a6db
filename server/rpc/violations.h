// Collects everything that is wrong with a request, so that the caller learns all of it at once.
#ifndef SLICEPLAN_SERVER_RPC_VIOLATIONS_H_
#define SLICEPLAN_SERVER_RPC_VIOLATIONS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/hardware/violation.h"
#include "server/rpc/errors.h"
#include "server/rpc/field_path.h"
#include "server/rpc/result.h"

namespace sliceplan::rpc {

class Violations {
 public:
  // A malformed or impossible value. `description` is a sentence without the field's name.
  void Add(const FieldPath& field, std::string description, absl::string_view reason = "INVALID_FIELD");
  // A name that nothing has. Alone it makes the call NOT_FOUND. `type`: "accelerator", "model preset".
  void AddUnknownName(const FieldPath& field, absl::string_view type, absl::string_view name, std::string description,
                      absl::string_view reason);
  // What the engine or the catalog found, with fields relative to `parent`. `name`: what was asked for, where it is an
  // unknown name.
  void Add(const FieldPath& parent, const hardware::Violation& violation, absl::string_view name = "");

  // The same for several, less those of fields of which something was said before.
  void AddMissing(const FieldPath& parent, const std::vector<hardware::Violation>& found);

  bool empty() const { return errors_.empty(); }
  size_t size() const { return errors_.size(); }
  const std::vector<FieldError>& errors() const { return errors_; }

  // NOT_FOUND for a single unknown name, INVALID_ARGUMENT otherwise. Requires !empty().
  Result ToResult() const;

 private:
  std::vector<FieldError> errors_;
  // Of the first unknown name.
  std::string unknown_type_;
  std::string unknown_name_;
};

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_VIOLATIONS_H_
