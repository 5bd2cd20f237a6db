// Typed reads of one JSON object of a config. Every read that fails is a violation with the path of the key, and the
// reader goes on with a harmless value, so that one import reports everything that is wrong. A key with the value null
// is absent.
#ifndef SLICEPLAN_SERVER_TRANSFORMER_HUGGING_FACE_CONFIG_H_
#define SLICEPLAN_SERVER_TRANSFORMER_HUGGING_FACE_CONFIG_H_

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "absl/strings/string_view.h"
#include "server/transformer/hugging_face/report.h"
#include "server/transformer/validate.h"

namespace sliceplan::transformer::hugging_face {

// Spellings of one thing; the first is the one that violations name.
using Keys = std::initializer_list<const char*>;

class Config {
 public:
  // `path` is "" for the whole document, "text_config" for its part. Both must outlive the reader.
  Config(const nlohmann::json& object, std::string path, Report& report)
      : object_(&object), path_(std::move(path)), report_(&report) {}

  // "num_attention_heads" -> "text_config.num_attention_heads".
  std::string Path(absl::string_view key) const;
  Report& report() const { return *report_; }

  bool Has(const char* key) const { return Find(key) != nullptr; }
  bool HasAny(Keys keys) const;
  // Present, even as null: null switches off what an absent key leaves at its default.
  bool Mentions(const char* key) const { return object_->contains(key); }
  const nlohmann::json& object() const { return *object_; }

  // An integer in [low, high]. Spellings that are present together must agree. A float with an integral value is read.
  std::optional<int64_t> Int(Keys keys, int64_t low, int64_t high);
  // The first spelling that is present; others may differ (context limits come in several senses).
  std::optional<int64_t> FirstInt(Keys keys, int64_t low, int64_t high);
  // A missing key is a violation; the value is then `low`.
  int64_t Required(Keys keys, int64_t low = 1, int64_t high = kMaxDim);
  int64_t IntOr(Keys keys, int64_t fallback, int64_t low = 1, int64_t high = kMaxDim);
  // The fallback is a default of the family that a reader might not expect: a missing key is a warning.
  int64_t IntOrAssume(Keys keys, int64_t fallback, int64_t low = 1, int64_t high = kMaxDim);

  bool Bool(Keys keys, bool fallback);
  std::optional<double> Number(const char* key, double low, double high);
  // Empty when absent.
  std::string Text(Keys keys);
  // Integers in [low, high]; empty optional when absent, or (with a violation) not such a list.
  std::optional<std::vector<int64_t>> Ints(const char* key, int64_t low, int64_t high);
  std::optional<std::vector<std::string>> Texts(const char* key);
  // The object under `key`, null when absent, null with a violation when it is something else.
  const nlohmann::json* Object(const char* key);
  const nlohmann::json* Raw(const char* key);

  // Marks keys as understood, so that WarnUnknown leaves them out.
  void Ignore(Keys keys);

  void Violate(absl::string_view key, std::string description, absl::string_view reason = "OUT_OF_RANGE") const {
    report_->Violate(Path(key), std::move(description), reason);
  }
  void Unsupported(absl::string_view key, std::string description) const {
    report_->Violate(Path(key), std::move(description), "UNSUPPORTED_VALUE", hardware::Violation::Kind::kUnsupported);
  }
  // Something is wrong with one of these keys: what is derived from them needs no complaint of its own.
  bool IsViolated(Keys keys) const;

  void Warn(ImportWarning::Kind kind, absl::string_view key, std::string text) const {
    report_->Warn(kind, Path(key), std::move(text));
  }

  // What `other`, a reader of a changed copy of the same object, has understood.
  void IgnoreWhatRead(const Config& other) { read_.insert(read_.end(), other.read_.begin(), other.read_.end()); }

  // Keys that no one read and that are not known to leave counts alone.
  std::vector<std::string> UnknownKeys() const;
  // One warning per key that no one read and that is not known to leave counts alone.
  void WarnUnknown() const;

 private:
  const nlohmann::json* Find(const char* key) const;
  std::optional<int64_t> IntAt(const char* key, const nlohmann::json& value, int64_t low, int64_t high) const;

  const nlohmann::json* object_;
  std::string path_;
  Report* report_;
  std::vector<const char*> read_;
};

// Keys of any config.json that change no parameter, FLOP or cache byte (token ids, dropout, rotary constants, ...).
bool IsHarmlessKey(absl::string_view key);

}  // namespace sliceplan::transformer::hugging_face

#endif  // SLICEPLAN_SERVER_TRANSFORMER_HUGGING_FACE_CONFIG_H_
