// Names of enum values in messages to people.
#ifndef SLICEPLAN_SERVER_RPC_ENUM_NAMES_H_
#define SLICEPLAN_SERVER_RPC_ENUM_NAMES_H_

#include <string>

#include "google/protobuf/descriptor.h"

namespace sliceplan::rpc {

// "DATA_TYPE_BF16, DATA_TYPE_FP16, ...": all values but the unspecified one.
std::string LegalEnumNames(const google::protobuf::EnumDescriptor& type);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_ENUM_NAMES_H_
