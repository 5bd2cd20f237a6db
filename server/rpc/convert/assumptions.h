// The lines of a reply that say which defaults were used.
#ifndef SLICEPLAN_SERVER_RPC_CONVERT_ASSUMPTIONS_H_
#define SLICEPLAN_SERVER_RPC_CONVERT_ASSUMPTIONS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/sliceplan/v1/estimate.pb.h"

namespace sliceplan::rpc {

struct AssumptionLine {
  absl::string_view field;  // a literal: path of the field that would change it; empty when none would
  std::string value;        // as in proto3 JSON, without quotes
  std::string sentence;

  friend bool operator==(const AssumptionLine&, const AssumptionLine&) = default;
};

class Assumptions {
 public:
  void Add(absl::string_view field, std::string value, std::string sentence) {
    lines_.push_back({field, std::move(value), std::move(sentence)});
  }
  // A sentence of the engine or of the catalog.
  void Add(std::string sentence) { Add("", "", std::move(sentence)); }

  // The lines of `other` that are not here yet.
  void AddNew(const Assumptions& other);

  void ToProto(google::protobuf::RepeatedPtrField<v1::Assumption>* proto) const;

 private:
  std::vector<AssumptionLine> lines_;
};

// A sentence that starts with a capital and ends with a full stop.
std::string AsSentence(absl::string_view text);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_CONVERT_ASSUMPTIONS_H_
