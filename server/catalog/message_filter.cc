#include "server/catalog/message_filter.h"

#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "server/catalog/near_names.h"

namespace sliceplan::catalog {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

const FieldDescriptor* FindField(const Descriptor& descriptor, absl::string_view name) {
  if (const FieldDescriptor* field = descriptor.FindFieldByName(std::string(name))) return field;
  return descriptor.FindFieldByCamelcaseName(std::string(name));
}

// "chip_count", "spec.hbm_bytes" -> the first name and the rest.
absl::string_view TakeSegment(absl::string_view& path) {
  const size_t dot = path.find('.');
  const absl::string_view segment = path.substr(0, dot);
  path = dot == absl::string_view::npos ? absl::string_view() : path.substr(dot + 1);
  return segment;
}

// The name of an enum's value without the prefix that all share: "TPU" of ACCELERATOR_KIND_TPU.
absl::string_view ShortName(const google::protobuf::EnumValueDescriptor& value) {
  absl::string_view prefix = value.type()->value(0)->name();
  absl::string_view name = value.name();
  if (absl::ConsumeSuffix(&prefix, "UNSPECIFIED")) absl::ConsumePrefix(&name, prefix);
  return name;
}

absl::Status CheckEnumValue(const google::protobuf::EnumDescriptor& type, absl::string_view path,
                            absl::string_view value) {
  std::vector<absl::string_view> names;
  for (int i = 0; i < type.value_count(); ++i) {
    const google::protobuf::EnumValueDescriptor& known = *type.value(i);
    if (absl::EqualsIgnoreCase(value, known.name()) || absl::EqualsIgnoreCase(value, ShortName(known))) {
      return absl::OkStatus();
    }
    if (i > 0) names.push_back(ShortName(known));
  }
  return absl::InvalidArgumentError(absl::StrCat(path, " is one of ", absl::StrJoin(names, ", "), "; not ",
                                                 Quoted(value), DidYouMean(NearNames(value, names))));
}

absl::StatusOr<FieldType> TypeOf(const Descriptor& root, absl::string_view path, absl::string_view value) {
  const Descriptor* descriptor = &root;
  absl::string_view rest = path;
  if (absl::EndsWith(path, ".")) return absl::InvalidArgumentError(absl::StrCat("there is no name after ", path));
  while (true) {
    const absl::string_view segment = TakeSegment(rest);
    const FieldDescriptor* field = FindField(*descriptor, segment);
    if (field == nullptr) {
      std::vector<absl::string_view> names;
      for (int i = 0; i < descriptor->field_count(); ++i) names.push_back(descriptor->field(i)->name());
      const std::string hint = DidYouMean(NearNames(segment, names));
      return absl::InvalidArgumentError(absl::StrCat(path, ": there is no field \"", segment, "\"", hint));
    }
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      if (rest.empty())
        return absl::InvalidArgumentError(absl::StrCat(path, " has fields of its own; name one of them"));
      descriptor = field->message_type();
      continue;
    }
    if (!rest.empty()) return absl::InvalidArgumentError(absl::StrCat(path, ": ", segment, " has no fields"));
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_BOOL: return FieldType::kBool;
      case FieldDescriptor::CPPTYPE_STRING: return FieldType::kText;
      case FieldDescriptor::CPPTYPE_ENUM:
        if (absl::Status status = CheckEnumValue(*field->enum_type(), path, value); !value.empty() && !status.ok()) {
          return status;
        }
        return FieldType::kText;
      default: return FieldType::kNumber;
    }
  }
}

using ValueCallback = absl::FunctionRef<void(const FieldValue&)>;

// The name with and without the prefix that the values of the enum share.
void ReadEnum(const google::protobuf::EnumValueDescriptor& value, ValueCallback callback) {
  callback(absl::string_view(value.name()));
  if (const absl::string_view name = ShortName(value); name.size() < value.name().size()) callback(name);
}

// Element `index` of a repeated field, or the field itself with a negative index.
void ReadValue(const Message& message, const FieldDescriptor& field, int index, ValueCallback callback) {
  const Reflection& reflection = *message.GetReflection();
  const bool repeated = index >= 0;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      callback(repeated ? reflection.GetRepeatedBool(message, &field, index) : reflection.GetBool(message, &field));
      break;
    case FieldDescriptor::CPPTYPE_INT32:
      callback(static_cast<double>(repeated ? reflection.GetRepeatedInt32(message, &field, index)
                                            : reflection.GetInt32(message, &field)));
      break;
    case FieldDescriptor::CPPTYPE_INT64:
      callback(static_cast<double>(repeated ? reflection.GetRepeatedInt64(message, &field, index)
                                            : reflection.GetInt64(message, &field)));
      break;
    case FieldDescriptor::CPPTYPE_UINT32:
      callback(static_cast<double>(repeated ? reflection.GetRepeatedUInt32(message, &field, index)
                                            : reflection.GetUInt32(message, &field)));
      break;
    case FieldDescriptor::CPPTYPE_UINT64:
      callback(static_cast<double>(repeated ? reflection.GetRepeatedUInt64(message, &field, index)
                                            : reflection.GetUInt64(message, &field)));
      break;
    case FieldDescriptor::CPPTYPE_FLOAT:
      callback(static_cast<double>(repeated ? reflection.GetRepeatedFloat(message, &field, index)
                                            : reflection.GetFloat(message, &field)));
      break;
    case FieldDescriptor::CPPTYPE_DOUBLE:
      callback(repeated ? reflection.GetRepeatedDouble(message, &field, index) : reflection.GetDouble(message, &field));
      break;
    case FieldDescriptor::CPPTYPE_STRING: {
      std::string scratch;
      const std::string& text = repeated ? reflection.GetRepeatedStringReference(message, &field, index, &scratch)
                                         : reflection.GetStringReference(message, &field, &scratch);
      callback(absl::string_view(text));
      break;
    }
    case FieldDescriptor::CPPTYPE_ENUM:
      ReadEnum(repeated ? *reflection.GetRepeatedEnum(message, &field, index) : *reflection.GetEnum(message, &field),
               callback);
      break;
    case FieldDescriptor::CPPTYPE_MESSAGE: break;
  }
}

void ReadPath(const Message& message, absl::string_view path, ValueCallback callback) {
  const absl::string_view segment = TakeSegment(path);
  const FieldDescriptor* field = FindField(*message.GetDescriptor(), segment);
  if (field == nullptr) return;
  const Reflection& reflection = *message.GetReflection();
  const bool is_message = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
  if (field->is_repeated()) {
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      if (is_message) {
        ReadPath(reflection.GetRepeatedMessage(message, field, i), path, callback);
      } else {
        ReadValue(message, *field, i, callback);
      }
    }
    return;
  }
  if (field->has_presence() && !reflection.HasField(message, field)) return;
  if (is_message) {
    ReadPath(reflection.GetMessage(message, field), path, callback);
  } else {
    ReadValue(message, *field, -1, callback);
  }
}

}  // namespace

absl::Status CheckFilter(const Filter& filter, const Descriptor& descriptor) {
  return filter.Check(
      [&descriptor](absl::string_view path, absl::string_view value) { return TypeOf(descriptor, path, value); });
}

bool MatchesFilter(const Filter& filter, const Message& message) {
  return filter.Matches(
      [&message](absl::string_view path, ValueCallback callback) { ReadPath(message, path, callback); });
}

}  // namespace sliceplan::catalog
