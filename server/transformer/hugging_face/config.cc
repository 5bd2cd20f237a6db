#include "server/transformer/hugging_face/config.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace sliceplan::transformer::hugging_face {
namespace {

using nlohmann::json;

// Doubles hold every integer up to here.
constexpr double kExactIntegers = 9007199254740992.0;  // 2^53

const char* TypeName(const json& value) {
  switch (value.type()) {
    case json::value_t::object: return "an object";
    case json::value_t::array: return "a list";
    case json::value_t::string: return "a string";
    case json::value_t::boolean: return "true or false";
    case json::value_t::number_float: return "not a whole number";
    default: return "a number";
  }
}

// Enough of an unexpected value to recognise it.
std::string Shown(const json& value) {
  constexpr size_t kShown = 40;
  std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > kShown) {
    text.resize(kShown);
    text += "...";
  }
  return text;
}

// A switch that is off adds nothing, unless it takes away what is there by default.
bool IsOff(absl::string_view key, const json& value) {
  constexpr absl::string_view kOnByDefault[] = {"affine", "bias", "gate", "norm"};
  if (value == 0 || value.empty()) return true;
  return value == false && std::none_of(std::begin(kOnByDefault), std::end(kOnByDefault),
                                        [key](absl::string_view part) { return absl::StrContains(key, part); });
}

}  // namespace

std::string Config::Path(absl::string_view key) const {
  if (path_.empty()) return std::string(key);
  return key.empty() ? path_ : absl::StrCat(path_, ".", key);
}

const json* Config::Find(const char* key) const {
  const auto place = object_->find(key);
  return place == object_->end() || place->is_null() ? nullptr : &*place;
}

bool Config::HasAny(Keys keys) const {
  return std::any_of(keys.begin(), keys.end(), [this](const char* key) { return Has(key); });
}

bool Config::IsViolated(Keys keys) const {
  return std::any_of(keys.begin(), keys.end(), [this](const char* key) {
    const std::string path = Path(key);
    return std::any_of(report_->violations.begin(), report_->violations.end(),
                       [&path](const hardware::Violation& violation) { return violation.field == path; });
  });
}

void Config::Ignore(Keys keys) { read_.insert(read_.end(), keys.begin(), keys.end()); }

const json* Config::Raw(const char* key) {
  read_.push_back(key);
  return Find(key);
}

std::optional<int64_t> Config::IntAt(const char* key, const json& value, int64_t low, int64_t high) const {
  int64_t number = 0;
  if (value.is_number_unsigned()) {
    const uint64_t wide = value.get<uint64_t>();
    if (wide > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      Violate(key, absl::StrCat("must be ", low, " to ", high, ", is ", wide));
      return std::nullopt;
    }
    number = static_cast<int64_t>(wide);
  } else if (value.is_number_integer()) {
    number = value.get<int64_t>();
  } else if (value.is_number_float() && std::abs(value.get<double>()) <= kExactIntegers &&
             std::floor(value.get<double>()) == value.get<double>()) {
    number = static_cast<int64_t>(value.get<double>());
  } else {
    Violate(key, absl::StrCat("must be a whole number, is ", TypeName(value), ": ", Shown(value)), "WRONG_TYPE");
    return std::nullopt;
  }
  if (number < low || number > high) {
    Violate(key, absl::StrCat("must be ", low, " to ", high, ", is ", number));
    return std::nullopt;
  }
  return number;
}

std::optional<int64_t> Config::Int(Keys keys, int64_t low, int64_t high) {
  std::optional<int64_t> found;
  const char* found_key = nullptr;
  for (const char* key : keys) {
    const json* value = Raw(key);
    if (value == nullptr) continue;
    const std::optional<int64_t> number = IntAt(key, *value, low, high);
    // What was said is wrong: reading on with `low` keeps later complaints about a missing value away.
    if (!number) return low;
    if (found && *found != *number) {
      Violate(key, absl::StrCat("is ", *number, ", but ", found_key, " says ", *found), "CONFLICT");
    }
    if (!found) {
      found = number;
      found_key = key;
    }
  }
  return found;
}

std::optional<int64_t> Config::FirstInt(Keys keys, int64_t low, int64_t high) {
  std::optional<int64_t> found;
  for (const char* key : keys) {
    const json* value = Raw(key);
    if (value != nullptr && !found) found = IntAt(key, *value, low, high);
  }
  return found;
}

int64_t Config::Required(Keys keys, int64_t low, int64_t high) {
  const std::optional<int64_t> value = Int(keys, low, high);
  if (value) return *value;
  Violate(*keys.begin(), "is missing", "REQUIRED");
  return low;
}

int64_t Config::IntOr(Keys keys, int64_t fallback, int64_t low, int64_t high) {
  return Int(keys, low, high).value_or(fallback);
}

int64_t Config::IntOrAssume(Keys keys, int64_t fallback, int64_t low, int64_t high) {
  const std::optional<int64_t> value = Int(keys, low, high);
  if (value) return *value;
  Warn(ImportWarning::Kind::kAssumedValue, *keys.begin(),
       absl::StrCat("is missing: taken as ", fallback, ", the default of this family"));
  return fallback;
}

bool Config::Bool(Keys keys, bool fallback) {
  for (const char* key : keys) {
    const json* value = Raw(key);
    if (value == nullptr) continue;
    if (value->is_boolean()) return value->get<bool>();
    Violate(key, absl::StrCat("must be true or false, is ", TypeName(*value), ": ", Shown(*value)), "WRONG_TYPE");
    return fallback;
  }
  return fallback;
}

std::optional<double> Config::Number(const char* key, double low, double high) {
  const json* value = Raw(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) {
    Violate(key, absl::StrCat("must be a number, is ", TypeName(*value), ": ", Shown(*value)), "WRONG_TYPE");
    return std::nullopt;
  }
  const double number = value->get<double>();
  if (!(number >= low && number <= high)) {
    Violate(key, absl::StrCat("must be ", low, " to ", high, ", is ", number));
    return std::nullopt;
  }
  return number;
}

std::string Config::Text(Keys keys) {
  for (const char* key : keys) {
    const json* value = Raw(key);
    if (value == nullptr) continue;
    if (value->is_string()) return value->get<std::string>();
    Violate(key, absl::StrCat("must be a string, is ", TypeName(*value), ": ", Shown(*value)), "WRONG_TYPE");
    return "";
  }
  return "";
}

std::optional<std::vector<int64_t>> Config::Ints(const char* key, int64_t low, int64_t high) {
  const json* value = Raw(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_array()) {
    Violate(key, absl::StrCat("must be a list of whole numbers, is ", TypeName(*value)), "WRONG_TYPE");
    return std::nullopt;
  }
  std::vector<int64_t> numbers;
  numbers.reserve(value->size());
  for (size_t i = 0; i < value->size(); ++i) {
    const std::optional<int64_t> number = IntAt(absl::StrCat(key, "[", i, "]").c_str(), (*value)[i], low, high);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

std::optional<std::vector<std::string>> Config::Texts(const char* key) {
  const json* value = Raw(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_array()) {
    Violate(key, absl::StrCat("must be a list of strings, is ", TypeName(*value)), "WRONG_TYPE");
    return std::nullopt;
  }
  std::vector<std::string> texts;
  texts.reserve(value->size());
  for (size_t i = 0; i < value->size(); ++i) {
    if (!(*value)[i].is_string()) {
      Violate(absl::StrCat(key, "[", i, "]"), absl::StrCat("must be a string, is ", TypeName((*value)[i])),
              "WRONG_TYPE");
      return std::nullopt;
    }
    texts.push_back((*value)[i].get<std::string>());
  }
  return texts;
}

const json* Config::Object(const char* key) {
  const json* value = Raw(key);
  if (value == nullptr || value->is_object()) return value;
  Violate(key, absl::StrCat("must be an object, is ", TypeName(*value), ": ", Shown(*value)), "WRONG_TYPE");
  return nullptr;
}

std::vector<std::string> Config::UnknownKeys() const {
  std::vector<std::string> unknown;
  for (const auto& item : object_->items()) {
    const std::string& key = item.key();
    if (item.value().is_null() || IsHarmlessKey(key) || IsOff(key, item.value())) continue;
    if (std::any_of(read_.begin(), read_.end(), [&key](const char* read) { return key == read; })) continue;
    unknown.push_back(key);
  }
  return unknown;
}

void Config::WarnUnknown() const {
  constexpr int kMostWarnings = 32;
  int warned = 0;
  for (const std::string& key : UnknownKeys()) {
    if (++warned > kMostWarnings) {
      Warn(ImportWarning::Kind::kUnknownKey, "", "holds more keys that were not understood");
      return;
    }
    Warn(ImportWarning::Kind::kUnknownKey, key,
         absl::StrCat("was not understood and is left out: ", Shown((*object_)[key])));
  }
}

}  // namespace sliceplan::transformer::hugging_face
