#include "server/rpc/method_table.h"

#include <algorithm>
#include <exception>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "google/protobuf/arena.h"
#include "server/rpc/errors.h"
#include "server/rpc/json.h"

namespace sliceplan::rpc {

std::string Method::FullName() const { return absl::StrCat(service, "/", name); }

Result MethodTable::Guarded(const std::function<Result()>& handle, const CallContext& call) {
  try {
    return handle();
  } catch (const std::exception& error) {
    return Internal(call.request_id, error.what());
  }
}

const Method* MethodTable::Find(absl::string_view full_name) const {
  full_name = absl::StripPrefix(full_name, "/");
  for (const auto& method : methods_) {
    const std::string name = method->FullName();
    if (name == full_name || (absl::EndsWith(name, full_name) && absl::EndsWith(name, absl::StrCat(".", full_name)))) {
      return method.get();
    }
  }
  return nullptr;
}

std::vector<std::string> MethodTable::ServiceNames() const {
  std::vector<std::string> names;
  for (const auto& method : methods_) {
    if (std::find(names.begin(), names.end(), method->service) == names.end()) names.push_back(method->service);
  }
  return names;
}

Result ParseBytes(const Method& method, absl::string_view bytes, google::protobuf::Message* request) {
  if (request->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return Result();
  return InvalidArgument(
      {{"",
        absl::StrCat("The bytes are not a serialised ", method.request_prototype->GetDescriptor()->full_name(), "."),
        "MALFORMED_REQUEST"}});
}

Result CallWithBytes(const Method& method, absl::string_view request, std::string* response, const CallContext& call) {
  google::protobuf::Arena arena;
  google::protobuf::Message* const request_message = method.request_prototype->New(&arena);
  if (Result result = ParseBytes(method, request, request_message); !result.ok()) return result;
  google::protobuf::Message* const response_message = method.response_prototype->New(&arena);
  Result result = method.handle(*request_message, response_message, call);
  if (result.ok()) response_message->SerializeToString(response);
  return result;
}

Result CallWithJson(const Method& method, absl::string_view request, std::string* response, const CallContext& call) {
  google::protobuf::Arena arena;
  google::protobuf::Message* const request_message = method.request_prototype->New(&arena);
  if (Result result = ParseJson(request, request_message); !result.ok()) return result;
  google::protobuf::Message* const response_message = method.response_prototype->New(&arena);
  if (Result result = method.handle(*request_message, response_message, call); !result.ok()) return result;
  *response = PrintJson(*response_message);
  return Result();
}

}  // namespace sliceplan::rpc
