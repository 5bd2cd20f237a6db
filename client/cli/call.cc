#include "client/cli/call.h"

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "client/cli/text.h"
#include "client/sliceplan/methods.h"
#include "google/protobuf/descriptor.h"
#include "server/rpc/json.h"

namespace sliceplan::cli {
namespace {

std::unique_ptr<google::protobuf::Message> NewMessage(const google::protobuf::Descriptor& type) {
  const auto* const prototype = google::protobuf::MessageFactory::generated_factory()->GetPrototype(&type);
  return std::unique_ptr<google::protobuf::Message>(prototype->New());
}

}  // namespace

absl::StatusOr<NamedMethod> FindMethod(const std::string& name) {
  std::string wanted = absl::StrReplaceAll(absl::StripPrefix(name, "/"), {{"/", "."}});
  std::vector<std::string> short_names;
  for (const MethodDefaults& known : AllMethods()) {
    const std::string dotted = absl::StrReplaceAll(known.name, {{"/", "."}});
    const std::string short_name = dotted.substr(dotted.find("v1.") + 3);
    short_names.push_back(absl::StrReplaceAll(short_name, {{".", "/"}}));
    if (wanted != dotted && wanted != short_name) continue;
    const auto* const method = google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(dotted);
    return NamedMethod{known.name, NewMessage(*method->input_type()), NewMessage(*method->output_type())};
  }
  return absl::InvalidArgumentError(absl::StrCat("there is no method '", name, "'", Suggestion(name, short_names)));
}

google::rpc::Status CallWithJson(const std::string& json, Backend& backend, NamedMethod& method) {
  const rpc::Result parsed = rpc::ParseJson(json, method.request.get());
  if (!parsed.ok()) return parsed.status();
  return backend.Call(method.full_name, *method.request, method.response.get());
}

}  // namespace sliceplan::cli
