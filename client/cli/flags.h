// Flags that fill in a request. Most name a field of it, and the type and name of the field say how the value is read:
// enums by their short names, times where the name has seconds, bytes where it ends in _bytes. The same table turns a
// field of an error or of an advice back into the flag.
#ifndef SLICEPLAN_CLIENT_CLI_FLAGS_H_
#define SLICEPLAN_CLIENT_CLI_FLAGS_H_

#include <functional>
#include <istream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

namespace CLI {
class App;
}  // namespace CLI

namespace sliceplan::cli {

// The field at `path` ("workload.precision.compute"). The path must exist in the type.
const google::protobuf::FieldDescriptor* FindField(const google::protobuf::Descriptor& type, absl::string_view path);

// Reads `text` for the field at `path` of `message`, and sets it.
absl::Status SetField(google::protobuf::Message* message, absl::string_view path, const std::string& text);

class Flags {
 public:
  using Read = std::function<absl::Status(const std::string&)>;

  // Options go to `app`, values to `request`; both must outlive parsing. `in` is what a file named "-" means.
  Flags(CLI::App* app, google::protobuf::Message* request, std::istream* in) : app_(app), request_(request), in_(in) {}

  // Heading of the flags that follow, in the help.
  void Group(const std::string& name) { group_ = name; }

  // "--sequence" fills in `field`. A boolean field takes no value: it becomes true, or false when the flag begins with
  // "--no-". A flag that was added before gets a second meaning: it fills in the field whose message the request has,
  // "training" of training.batch or "serving" of serving.batch, and the first where it has none of them.
  void Field(const std::string& flag, const std::string& field, const std::string& help);
  // A flag with a syntax of its own: `read` gets its value. `field` is what it fills in, for errors. "kind,--kind" is
  // positional as well.
  void Custom(const std::string& flag, const std::string& field, const std::string& value_name, const std::string& help,
              Read read);
  // The same for a flag that may be given several times: `read` gets one value after the other.
  void Repeated(const std::string& flag, const std::string& field, const std::string& value_name,
                const std::string& help, Read read);
  // In the syntax of `flag`, what lies under `field` is set by name=value, with `prefix` before the name: "dcn." for
  // parallelism.dcn.
  void Pairs(const std::string& flag, const std::string& field, const std::string& prefix);
  // A flag without a value.
  void Switch(const std::string& flag, const std::string& help, std::function<void()> set);

  // Field of the request that must be set; a problem unless it is.
  void Require(const std::string& field) { required_.push_back(field); }
  // A problem of several flags together, asked for after parsing; empty: none.
  void Check(std::function<std::string()> problem) { checks_.push_back(std::move(problem)); }
  // `field` of the request as it is sent was filled in by `flag`.
  void Alias(const std::string& field, const std::string& flag) { fields_.emplace_back(field, flag); }

  // The flag that fills in `field` or what contains it; empty when there is none. "slice.override" is the longer match.
  std::string FlagFor(absl::string_view field) const;
  // `text` with the flags of the fields that it names: "--tokens" for workload.total_tokens, "--override hbm_bytes" for
  // slice.override.hbm_bytes.
  std::string WithFlags(absl::string_view text) const;
  // "--remat full" for a field that has a flag of its own, "--parallelism tensor=8" for one that is set by name,
  // "workload.x = full" for another.
  std::string ChangeAsFlag(const std::string& field, const std::string& value) const;

  // Flags that were given and fill in nothing but what lies under `fields`, in the order of their adding.
  std::vector<std::string> GivenFor(const std::vector<std::string>& fields) const;

  // What was typed for a flag with a syntax of its own; empty when it was not given.
  std::string Typed(const std::string& flag) const;

  std::istream& in() const { return *in_; }
  // After parsing: what is wrong with the values given, "--sequence: ...", and which flags are missing.
  std::vector<std::string> Problems() const;
  // What the reader should know about how values were read.
  void AddNote(std::string note) { notes_.push_back(std::move(note)); }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  // The fields that `flag` fills in; none when it has a syntax of its own for several.
  std::vector<std::string> FieldsOf(const std::string& flag) const;
  // Of the meanings of `flag` the one that the request is about.
  std::string FieldMeant(const std::string& flag) const;
  // Whether at most one of the two can be set.
  bool ExcludeEachOther(const std::string& flag, const std::string& other) const;
  void AddOption(const std::string& flag, const std::string& field, const std::string& value_name,
                 const std::string& help, Read read, bool repeatable);

  CLI::App* const app_;
  google::protobuf::Message* const request_;
  std::istream* const in_;
  std::string group_ = "Options";
  // Field and flag.
  std::vector<std::pair<std::string, std::string>> fields_;
  struct PairSyntax {
    std::string field;
    std::string flag;
    std::string prefix;
  };
  std::vector<PairSyntax> pairs_;
  std::vector<std::pair<std::string, std::string>> typed_;
  std::vector<std::string> required_;
  std::vector<std::function<std::string()>> checks_;
  std::vector<std::string> problems_;
  std::vector<std::string> notes_;
};

}  // namespace sliceplan::cli

#endif  // SLICEPLAN_CLIENT_CLI_FLAGS_H_
