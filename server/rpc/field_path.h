// Where in a request a value stands. A chain on the stack that is turned into text only when something is wrong with
// the value, so that a good request costs nothing.
#ifndef SLICEPLAN_SERVER_RPC_FIELD_PATH_H_
#define SLICEPLAN_SERVER_RPC_FIELD_PATH_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace sliceplan::rpc {

// FieldPath request;
// FieldPath model(request, "model");
// FieldPath group(model, "layer_groups", 2);
// group.ToString() == "model.layer_groups[2]"
class FieldPath {
 public:
  // The request itself.
  FieldPath() = default;
  // A field of `parent`, which must outlive this. `name` must outlive it too: a literal.
  FieldPath(const FieldPath& parent, absl::string_view name, int64_t index = -1)
      : parent_(&parent), name_(name), index_(index) {}

  std::string ToString() const;

 private:
  const FieldPath* parent_ = nullptr;
  absl::string_view name_;
  int64_t index_ = -1;
};

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_FIELD_PATH_H_
