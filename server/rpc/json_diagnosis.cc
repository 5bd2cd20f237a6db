#include "server/rpc/json_diagnosis.h"

#include <cmath>
#include <cstdint>
#include <limits>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "server/catalog/near_names.h"
#include "server/rpc/enum_names.h"
#include "server/rpc/field_path.h"
#include "server/rpc/text.h"
#include "server/rpc/violations.h"

namespace sliceplan::rpc {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::OneofDescriptor;
using nlohmann::json;

// Nothing is kept of the text: its depth is followed and the first problem noted.
class SyntaxCheck : public nlohmann::json_sax<json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return Enter(); }
  bool key(string_t&) override { return true; }
  bool end_object() override { return Leave(); }
  bool start_array(std::size_t) override { return Enter(); }
  bool end_array() override { return Leave(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ..."
    absl::string_view what = error.what();
    const size_t end_of_id = what.find("] ");
    problem_ = absl::StrCat("The request is not JSON: ",
                            end_of_id == absl::string_view::npos ? what : what.substr(end_of_id + 2));
    return false;
  }

  const std::string& problem() const { return problem_; }

 private:
  bool Enter() {
    if (++depth_ <= kMaxJsonDepth) return true;
    problem_ = absl::StrCat("The JSON is nested more than ", kMaxJsonDepth, " levels deep.");
    return false;
  }
  bool Leave() {
    --depth_;
    return true;
  }

  int depth_ = 0;
  std::string problem_;
};

std::string Shown(const json& value) {
  return Quoted(value.is_string() ? value.get_ref<const std::string&>()
                                  : value.dump(-1, ' ', false, json::error_handler_t::replace));
}

class Diagnosis {
 public:
  void CheckMessage(const json& value, const Descriptor& type, const FieldPath& path) {
    if (IsWellKnown(type)) {
      if (!value.is_string()) Wrong(value, "a duration in quotes, \"2.5s\"", path);
      return;
    }
    if (!value.is_object()) return Wrong(value, absl::StrCat("an object (", type.name(), ")"), path);
    absl::flat_hash_map<const OneofDescriptor*, const FieldDescriptor*> chosen;
    for (const auto& [key, member] : value.items()) {
      const FieldDescriptor* const field = FindField(type, key);
      if (field == nullptr) {
        AddUnknownField(type, key, path);
        continue;
      }
      if (member.is_null()) continue;
      if (const OneofDescriptor* const oneof = field->real_containing_oneof(); oneof != nullptr) {
        const auto [other, first] = chosen.emplace(oneof, field);
        if (!first) {
          violations_.Add(FieldPath(path, field->name()),
                          absl::StrCat("At most one of a choice may be set, and ", other->second->name(), " is too."));
        }
      }
      CheckField(member, *field, path);
    }
  }

  const std::vector<FieldError>& errors() const { return violations_.errors(); }

 private:
  static bool IsWellKnown(const Descriptor& type) { return type.full_name() == "google.protobuf.Duration"; }

  static const FieldDescriptor* FindField(const Descriptor& type, const std::string& key) {
    if (const FieldDescriptor* const field = type.FindFieldByName(key); field != nullptr) return field;
    for (int i = 0; i < type.field_count(); ++i) {
      if (type.field(i)->json_name() == key) return type.field(i);
    }
    return nullptr;
  }

  void AddUnknownField(const Descriptor& type, const std::string& key, const FieldPath& path) {
    std::vector<absl::string_view> names;
    for (int i = 0; i < type.field_count(); ++i) names.push_back(type.field(i)->json_name());
    const std::vector<std::string> near = catalog::NearNames(key, names);
    violations_.Add(
        path,
        absl::StrCat(type.name(), " has no field ", Quoted(key), catalog::DidYouMean(near), near.empty() ? "." : ""),
        "UNKNOWN_FIELD");
  }

  void CheckField(const json& value, const FieldDescriptor& field, const FieldPath& parent) {
    if (!field.is_repeated()) return CheckValue(value, field, FieldPath(parent, field.name()));
    if (!value.is_array()) return Wrong(value, "an array", FieldPath(parent, field.name()));
    int64_t index = 0;
    for (const json& element : value) CheckValue(element, field, FieldPath(parent, field.name(), index++));
  }

  void CheckValue(const json& value, const FieldDescriptor& field, const FieldPath& path) {
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE: return CheckMessage(value, *field.message_type(), path);
      case FieldDescriptor::CPPTYPE_ENUM: return CheckEnum(value, *field.enum_type(), path);
      case FieldDescriptor::CPPTYPE_STRING:
        if (!value.is_string()) Wrong(value, "text in quotes", path);
        return;
      case FieldDescriptor::CPPTYPE_BOOL:
        if (!value.is_boolean()) Wrong(value, "true or false", path);
        return;
      case FieldDescriptor::CPPTYPE_DOUBLE:
      case FieldDescriptor::CPPTYPE_FLOAT:
        if (!IsNumber(value)) Wrong(value, "a number", path);
        return;
      case FieldDescriptor::CPPTYPE_INT32:
        if (!IsInteger(value, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max())) {
          Wrong(value, "a whole number of 32 bits", path);
        }
        return;
      default:
        if (!IsInteger(value, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max())) {
          Wrong(value, "a whole number of 64 bits", path);
        }
        return;
    }
  }

  void CheckEnum(const json& value, const google::protobuf::EnumDescriptor& type, const FieldPath& path) {
    if (value.is_number_integer()) return;
    if (value.is_string() && type.FindValueByName(value.get_ref<const std::string&>()) != nullptr) return;
    violations_.Add(path, absl::StrCat(Shown(value), " is no ", type.name(), "; legal are ", LegalEnumNames(type), "."),
                    "UNKNOWN_ENUM_VALUE");
  }

  static bool IsNumber(const json& value) {
    double number = 0;
    return value.is_number() || (value.is_string() && absl::SimpleAtod(value.get_ref<const std::string&>(), &number));
  }

  static bool IsInteger(const json& value, int64_t least, int64_t greatest) {
    int64_t number = 0;
    if (value.is_number_unsigned()) {
      if (value.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return false;
      number = value.get<int64_t>();
    } else if (value.is_number_integer()) {
      number = value.get<int64_t>();
    } else if (value.is_number_float()) {
      const double real = value.get<double>();
      constexpr double kExact = 9007199254740992.0;  // 2^53
      if (std::trunc(real) != real || std::abs(real) > kExact) return false;
      number = static_cast<int64_t>(real);
    } else if (!value.is_string() || !absl::SimpleAtoi(value.get_ref<const std::string&>(), &number)) {
      return false;
    }
    return number >= least && number <= greatest;
  }

  void Wrong(const json& value, absl::string_view expected, const FieldPath& path) {
    violations_.Add(path, absl::StrCat(Shown(value), " is not ", expected, "."), "WRONG_TYPE");
  }

  Violations violations_;
};

}  // namespace

std::string JsonSyntaxProblem(absl::string_view text) {
  SyntaxCheck check;
  const bool whole = json::sax_parse(text.begin(), text.end(), &check);
  return whole || !check.problem().empty() ? check.problem() : "The request is not JSON.";
}

std::vector<FieldError> DiagnoseJson(absl::string_view text, const Descriptor& type) {
  const json value = json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) return {};
  Diagnosis diagnosis;
  diagnosis.CheckMessage(value, type, FieldPath());
  return diagnosis.errors();
}

}  // namespace sliceplan::rpc
