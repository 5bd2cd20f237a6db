#include "client/cli/flags.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/cli/choices.h"
#include "client/cli/quantity.h"

namespace sliceplan::cli {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

enum class Kind { kChoice, kBytes, kCount, kSeconds, kNumber, kText, kSwitch };

Kind KindOf(const FieldDescriptor& field) {
  const absl::string_view name = field.name();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_ENUM: return Kind::kChoice;
    case FieldDescriptor::CPPTYPE_BOOL: return Kind::kSwitch;
    case FieldDescriptor::CPPTYPE_STRING: return Kind::kText;
    case FieldDescriptor::CPPTYPE_INT32:
    case FieldDescriptor::CPPTYPE_INT64: return absl::EndsWith(name, "bytes") ? Kind::kBytes : Kind::kCount;
    default:
      return absl::StrContains(name, "seconds") && !absl::StrContains(name, "per_second") ? Kind::kSeconds
                                                                                          : Kind::kNumber;
  }
}

std::string ValueName(const FieldDescriptor& field) {
  switch (KindOf(field)) {
    case Kind::kChoice: return "NAME";
    case Kind::kBytes: return "BYTES";
    case Kind::kCount: return "N";
    case Kind::kSeconds: return "TIME";
    case Kind::kNumber:
      if (absl::StrContains(field.name(), "usd")) return "USD";
      return absl::EndsWith(field.name(), "ratio") ? "RATIO" : "X";
    case Kind::kText: return "TEXT";
    case Kind::kSwitch: return "";
  }
  return "";
}

// Walks to the message that holds the field, making those on the way.
std::pair<Message*, const FieldDescriptor*> Reach(Message* message, absl::string_view path) {
  const std::vector<std::string> names = absl::StrSplit(path, '.');
  for (size_t i = 0; i + 1 < names.size(); ++i) {
    const FieldDescriptor* const field = message->GetDescriptor()->FindFieldByName(names[i]);
    message = message->GetReflection()->MutableMessage(message, field);
  }
  return {message, message->GetDescriptor()->FindFieldByName(names.back())};
}

// "--model" of "model,--model".
std::string LongName(const std::string& flag) {
  const size_t dashes = flag.find("--");
  return dashes == std::string::npos ? flag : flag.substr(dashes);
}

}  // namespace

const FieldDescriptor* FindField(const Descriptor& type, absl::string_view path) {
  const Descriptor* message = &type;
  const FieldDescriptor* field = nullptr;
  for (const std::string& name : std::vector<std::string>(absl::StrSplit(path, '.'))) {
    field = message == nullptr ? nullptr : message->FindFieldByName(name);
    if (field == nullptr) return nullptr;
    message = field->message_type();
  }
  return field;
}

absl::Status SetField(Message* message, absl::string_view path, const std::string& text) {
  const auto [parent, field] = Reach(message, path);
  const auto* const reflection = parent->GetReflection();
  const auto set = [&, parent = parent, field = field](const auto& value, auto setter) {
    if (value.ok()) (reflection->*setter)(parent, field, *value);
    return value.status();
  };
  switch (KindOf(*field)) {
    case Kind::kChoice: return set(ParseChoice(*field->enum_type(), text), &google::protobuf::Reflection::SetEnumValue);
    case Kind::kSeconds: return set(ParseSeconds(text), &google::protobuf::Reflection::SetDouble);
    case Kind::kNumber: return set(ParseNumber(text), &google::protobuf::Reflection::SetDouble);
    case Kind::kText: reflection->SetString(parent, field, text); return absl::OkStatus();
    case Kind::kSwitch: reflection->SetBool(parent, field, text == "true"); return absl::OkStatus();
    case Kind::kBytes:
    case Kind::kCount: break;
  }
  const absl::StatusOr<int64_t> count = KindOf(*field) == Kind::kBytes ? ParseBytes(text) : ParseCount(text);
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_INT64) {
    return set(count, &google::protobuf::Reflection::SetInt64);
  }
  if (count.ok() && *count > std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError(absl::StrCat(text, " is above ", std::numeric_limits<int32_t>::max()));
  }
  return set(count, &google::protobuf::Reflection::SetInt32);
}

void Flags::Field(const std::string& flag, const std::string& field, const std::string& help) {
  const FieldDescriptor* const type = FindField(*request_->GetDescriptor(), field);
  if (CLI::Option* const known = app_->get_option_no_throw(flag); known != nullptr) {
    fields_.emplace_back(field, flag);
    if (known->get_description() != help) {
      known->description(absl::StrCat(known->get_description(), "; ", absl::AsciiStrToLower(group_), ": ", help));
    }
    return;
  }
  if (KindOf(*type) == Kind::kSwitch) {
    fields_.emplace_back(field, flag);
    const std::string value = absl::StartsWith(flag, "--no-") ? "false" : "true";
    app_->add_flag_callback(
            flag,
            [this, flag, field, value] {
              typed_.emplace_back(flag, value);
              SetField(request_, field, value).IgnoreError();
            },
            help)
        ->group(group_);
    return;
  }
  std::string full_help = help;
  if (KindOf(*type) == Kind::kChoice) absl::StrAppend(&full_help, ": ", AllChoices(*type->enum_type()));
  const bool is_latency = KindOf(*type) == Kind::kSeconds && absl::StrContains(absl::StrCat(".", field), ".slo.");
  Custom(flag, field, ValueName(*type), full_help,
         [this, is_latency, long_name = LongName(flag)](const std::string& text) {
           // Whole numbers are how milliseconds are written elsewhere.
           if (double seconds = 0; is_latency && absl::SimpleAtod(text, &seconds) && seconds >= 1) {
             AddNote(absl::StrCat(long_name, " ", text, " read as ", text, " seconds; for milliseconds write ", text,
                                  "ms."));
           }
           return SetField(request_, FieldMeant(long_name), text);
         });
}

void Flags::AddOption(const std::string& flag, const std::string& field, const std::string& value_name,
                      const std::string& help, Read read, bool repeatable) {
  const std::string long_name = LongName(flag);
  if (!field.empty()) fields_.emplace_back(field, long_name);
  app_->add_option_function<std::string>(
          flag,
          [this, long_name, read = std::move(read)](const std::string& text) {
            typed_.emplace_back(long_name, text);
            if (const absl::Status status = read(text); !status.ok()) {
              problems_.push_back(absl::StrCat(long_name, ": ", status.message()));
            }
          },
          help)
      ->type_name(value_name)
      ->trigger_on_parse(repeatable)
      ->group(group_);
}

void Flags::Repeated(const std::string& flag, const std::string& field, const std::string& value_name,
                     const std::string& help, Read read) {
  AddOption(flag, field, value_name, help, std::move(read), /*repeatable=*/true);
}

void Flags::Custom(const std::string& flag, const std::string& field, const std::string& value_name,
                   const std::string& help, Read read) {
  AddOption(flag, field, value_name, help, std::move(read), /*repeatable=*/false);
}

void Flags::Pairs(const std::string& flag, const std::string& field, const std::string& prefix) {
  pairs_.push_back({field, flag, prefix});
}

void Flags::Switch(const std::string& flag, const std::string& help, std::function<void()> set) {
  app_->add_flag_callback(flag, std::move(set), help)->group(group_);
}

std::vector<std::string> Flags::Problems() const {
  std::vector<std::string> problems = problems_;
  // Of fields that exclude each other the last one would win in silence.
  for (size_t i = 0; i < typed_.size(); ++i) {
    for (size_t j = i + 1; j < typed_.size(); ++j) {
      if (!ExcludeEachOther(typed_[i].first, typed_[j].first)) continue;
      problems.push_back(absl::StrCat(typed_[i].first, " and ", typed_[j].first, " exclude each other"));
    }
  }
  for (const std::string& field : required_) {
    const std::string flag = FlagFor(field);
    const bool set = request_->GetReflection()->HasField(*request_, FindField(*request_->GetDescriptor(), field));
    // A flag that was given and could not be read is not missing.
    const bool reported = std::any_of(problems.begin(), problems.end(), [&](const std::string& problem) {
      return absl::StartsWith(problem, absl::StrCat(flag, ":"));
    });
    if (!set && !reported) problems.push_back(absl::StrCat(flag, " is missing"));
  }
  for (const auto& check : checks_) {
    if (std::string problem = check(); !problem.empty()) problems.push_back(std::move(problem));
  }
  return problems;
}

std::string Flags::FlagFor(absl::string_view field) const {
  size_t longest = 0;
  std::string flag;
  for (const auto& [known, known_flag] : fields_) {
    const bool contains = absl::StartsWith(field, known) &&
                          (field.size() == known.size() || field[known.size()] == '.' || field[known.size()] == '[');
    if (contains && known.size() > longest) {
      longest = known.size();
      flag = known_flag;
    }
  }
  return flag;
}

std::vector<std::string> Flags::FieldsOf(const std::string& flag) const {
  std::vector<std::string> fields;
  for (const auto& [field, known_flag] : fields_) {
    if (known_flag == flag) fields.push_back(field);
  }
  return fields;
}

std::string Flags::FieldMeant(const std::string& flag) const {
  const std::vector<std::string> fields = FieldsOf(flag);
  for (const std::string& field : fields) {
    if (!absl::StrContains(field, '.')) continue;
    const FieldDescriptor* const message = request_->GetDescriptor()->FindFieldByName(field.substr(0, field.find('.')));
    if (request_->GetReflection()->HasField(*request_, message)) return field;
  }
  return fields.front();
}

bool Flags::ExcludeEachOther(const std::string& flag, const std::string& other) const {
  if (flag == other) return false;
  const Descriptor& type = *request_->GetDescriptor();
  for (const std::string& field : FieldsOf(flag)) {
    const FieldDescriptor* const first = FindField(type, field);
    if (first == nullptr || first->real_containing_oneof() == nullptr) continue;
    for (const std::string& other_field : FieldsOf(other)) {
      const FieldDescriptor* const second = FindField(type, other_field);
      if (second == nullptr || second == first) continue;
      if (second->real_containing_oneof() == first->real_containing_oneof()) return true;
    }
  }
  return false;
}

std::vector<std::string> Flags::GivenFor(const std::vector<std::string>& fields) const {
  const auto lies_under = [&fields](const std::string& field) {
    return std::any_of(fields.begin(), fields.end(), [&field](const std::string& above) {
      return field == above || absl::StartsWith(field, absl::StrCat(above, "."));
    });
  };
  std::vector<std::string> given;
  for (const auto& [flag, text] : typed_) {
    const std::vector<std::string> filled = FieldsOf(flag);
    if (filled.empty() || !std::all_of(filled.begin(), filled.end(), lies_under)) continue;
    if (std::find(given.begin(), given.end(), flag) == given.end()) given.push_back(flag);
  }
  return given;
}

std::string Flags::WithFlags(absl::string_view text) const {
  std::vector<std::string> words;
  for (const absl::string_view word : absl::StrSplit(text, ' ')) {
    const size_t end = word.find_last_not_of(".,;:)");
    const absl::string_view path = word.substr(0, end == absl::string_view::npos ? 0 : end + 1);
    words.emplace_back(word);
    if (!absl::StrContains(path, '.')) continue;
    for (const auto& [field, flag] : fields_) {
      absl::string_view rest = path;
      if (!absl::StrContains(field, '.') || !absl::ConsumePrefix(&rest, field)) continue;
      if (!rest.empty() && !absl::ConsumePrefix(&rest, ".")) continue;
      words.back() = absl::StrCat(flag, rest.empty() ? "" : " ", rest, word.substr(path.size()));
      break;
    }
  }
  return absl::StrJoin(words, " ");
}

std::string Flags::ChangeAsFlag(const std::string& field, const std::string& value) const {
  const FieldDescriptor* const type = FindField(*request_->GetDescriptor(), field);
  std::string text = value;
  if (type != nullptr && type->enum_type() != nullptr) {
    if (const auto* const choice = type->enum_type()->FindValueByName(value); choice != nullptr) {
      text = ChoiceName(*type->enum_type(), choice->number());
    }
  }
  for (const auto& [known, flag] : fields_) {
    if (known != field) continue;
    if (type == nullptr || KindOf(*type) != Kind::kSwitch) return absl::StrCat(flag, " ", text);
    const std::string sets = absl::StartsWith(flag, "--no-") ? "false" : "true";
    return value == sets ? flag : absl::StrCat("without ", flag);
  }
  for (const PairSyntax& pair : pairs_) {
    absl::string_view name = field;
    if (absl::ConsumePrefix(&name, pair.field) && absl::ConsumePrefix(&name, ".")) {
      return absl::StrCat(pair.flag, " ", pair.prefix, name, "=", text);
    }
  }
  return absl::StrCat(field, " = ", text);
}

std::string Flags::Typed(const std::string& flag) const {
  for (const auto& [known, text] : typed_) {
    if (known == flag) return text;
  }
  return "";
}

}  // namespace sliceplan::cli
