#include "server/rpc/convert/assumptions.h"

#include <algorithm>

#include "absl/strings/ascii.h"

namespace sliceplan::rpc {

std::string AsSentence(absl::string_view text) {
  std::string sentence(text);
  if (sentence.empty()) return sentence;
  const size_t first_blank = sentence.find(' ');
  // Names of fields keep their case.
  if (sentence.find('_') >= first_blank) sentence[0] = absl::ascii_toupper(static_cast<unsigned char>(sentence[0]));
  if (sentence.back() != '.') sentence += '.';
  return sentence;
}

void Assumptions::AddNew(const Assumptions& other) {
  for (const AssumptionLine& line : other.lines_) {
    if (std::find(lines_.begin(), lines_.end(), line) == lines_.end()) lines_.push_back(line);
  }
}

void Assumptions::ToProto(google::protobuf::RepeatedPtrField<v1::Assumption>* proto) const {
  proto->Reserve(static_cast<int>(lines_.size()));
  for (const AssumptionLine& line : lines_) {
    v1::Assumption* const assumption = proto->Add();
    assumption->set_field(line.field.data(), line.field.size());
    assumption->set_value(line.value);
    assumption->set_sentence(AsSentence(line.sentence));
  }
}

}  // namespace sliceplan::rpc
