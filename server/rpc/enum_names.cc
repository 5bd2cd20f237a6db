#include "server/rpc/enum_names.h"

#include "absl/strings/str_cat.h"

namespace sliceplan::rpc {

std::string LegalEnumNames(const google::protobuf::EnumDescriptor& type) {
  std::string names;
  for (int i = 0; i < type.value_count(); ++i) {
    if (type.value(i)->number() == 0) continue;
    absl::StrAppend(&names, names.empty() ? "" : ", ", type.value(i)->name());
  }
  return names;
}

}  // namespace sliceplan::rpc
