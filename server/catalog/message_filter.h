// Filters over protobuf messages: fields are named as in the message ("chip_count", "spec.hbm_bytes", or lowerCamel),
// enum values by their name with or without the prefix of their type ("SPOT").
#ifndef SLICEPLAN_SERVER_CATALOG_MESSAGE_FILTER_H_
#define SLICEPLAN_SERVER_CATALOG_MESSAGE_FILTER_H_

#include "absl/status/status.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "server/catalog/filter.h"

namespace sliceplan::catalog {

// INVALID_ARGUMENT names the field that `descriptor` lacks, with near names, or the value that does not fit its type.
absl::Status CheckFilter(const Filter& filter, const google::protobuf::Descriptor& descriptor);

// `filter` must have passed CheckFilter with the descriptor of `message`.
bool MatchesFilter(const Filter& filter, const google::protobuf::Message& message);

}  // namespace sliceplan::catalog

#endif  // SLICEPLAN_SERVER_CATALOG_MESSAGE_FILTER_H_
