#include "server/transformer/hugging_face/json.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace sliceplan::transformer::hugging_face {
namespace {

using nlohmann::json;

// Builds the document; any rule that is broken ends the parse with a violation.
class Builder : public nlohmann::json_sax<json> {
 public:
  explicit Builder(Report& report) : report_(report) {}

  json Take() { return std::move(root_); }

  bool null() override { return Add(nullptr); }
  bool boolean(bool value) override { return Add(value); }
  bool number_integer(number_integer_t value) override { return Add(value); }
  bool number_unsigned(number_unsigned_t value) override { return Add(value); }
  bool number_float(number_float_t value, const string_t&) override { return Add(value); }
  bool string(string_t& value) override { return Add(std::move(value)); }
  bool binary(binary_t&) override { return false; }

  bool start_object(size_t) override { return Open(json::object()); }
  bool start_array(size_t) override { return Open(json::array()); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }

  bool key(string_t& value) override {
    const auto [place, is_new] = open_.back()->get_ref<json::object_t&>().emplace(std::move(value), nullptr);
    if (!is_new) {
      report_.Violate(place->first, "the key appears twice in one object", "DUPLICATE_KEY");
      return false;
    }
    slot_ = &place->second;
    return true;
  }

  bool parse_error(size_t position, const std::string& token, const nlohmann::detail::exception&) override {
    report_.Violate("", absl::StrCat("not valid JSON at byte ", position, token.empty() ? "" : ", near ", Shown(token)),
                    "MALFORMED_JSON");
    return false;
  }

 private:
  // Enough of a token to find it, in printable characters.
  static std::string Shown(const std::string& token) {
    constexpr size_t kShown = 24;
    std::string shown;
    for (const char c : token.substr(0, kShown)) shown += c >= ' ' && c <= '~' ? c : '?';
    return shown;
  }

  json* Place(json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    if (open_.back()->is_array()) {
      auto& array = open_.back()->get_ref<json::array_t&>();
      array.push_back(std::move(value));
      return &array.back();
    }
    *slot_ = std::move(value);
    return slot_;
  }

  bool Add(json value) {
    Place(std::move(value));
    return true;
  }

  bool Open(json value) {
    if (open_.size() >= static_cast<size_t>(kMaxConfigDepth)) {
      report_.Violate("", absl::StrCat("nested deeper than ", kMaxConfigDepth, " levels"), "TOO_DEEP");
      return false;
    }
    open_.push_back(Place(std::move(value)));
    return true;
  }

  bool Close() {
    open_.pop_back();
    return true;
  }

  Report& report_;
  json root_;
  std::vector<json*> open_;  // a container is complete before its parent grows: the pointers stay valid
  json* slot_ = nullptr;     // where the value of the last key goes
};

// Quotes bare Infinity, -Infinity and NaN outside strings.
std::string QuoteNonFinite(absl::string_view text) {
  static constexpr absl::string_view kWords[] = {"-Infinity", "Infinity", "NaN"};
  std::string quoted;
  quoted.reserve(text.size() + 16);
  bool in_string = false;
  for (size_t i = 0; i < text.size();) {
    if (in_string && text[i] == '\\' && i + 1 < text.size()) {
      quoted.append(text.data() + i, 2);
      i += 2;
      continue;
    }
    if (text[i] == '"') in_string = !in_string;
    const absl::string_view rest = text.substr(i);
    bool found = false;
    for (const absl::string_view word : kWords) {
      if (in_string || !absl::StartsWith(rest, word)) continue;
      absl::StrAppend(&quoted, "\"", word, "\"");
      i += word.size();
      found = true;
      break;
    }
    if (!found) quoted += text[i++];
  }
  return quoted;
}

}  // namespace

std::optional<json> ParseJson(absl::string_view text, Report& report) {
  if (text.size() > kMaxConfigBytes) {
    report.Violate("", absl::StrCat("is ", text.size(), " bytes long, at most ", kMaxConfigBytes, " are read"),
                   "TOO_LARGE");
    return std::nullopt;
  }
  Builder builder(report);
  std::string quoted;
  if (absl::StrContains(text, "Infinity") || absl::StrContains(text, "NaN")) {
    quoted = QuoteNonFinite(text);
    text = quoted;
  }
  if (!json::sax_parse(text.begin(), text.end(), &builder)) return std::nullopt;
  json document = builder.Take();
  if (!document.is_object()) {
    report.Violate("", "must be a JSON object, as a config.json holds", "WRONG_TYPE");
    return std::nullopt;
  }
  return document;
}

}  // namespace sliceplan::transformer::hugging_face
