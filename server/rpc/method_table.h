// Every method of the service, by name: one way in for gRPC, for JSON over HTTP, for the command's `call` and for the
// fuzzer. Parse -> validate -> compute -> message, without a transport.
#ifndef SLICEPLAN_SERVER_RPC_METHOD_TABLE_H_
#define SLICEPLAN_SERVER_RPC_METHOD_TABLE_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "server/rpc/call_context.h"
#include "server/rpc/result.h"

namespace sliceplan::rpc {

// What a request may take. All but the short run on the worker pool.
enum class Effort {
  kShort,       // below 50 us or so: answered on the thread that it came in on
  kLong,        // milliseconds: a config to read, a list to filter
  kSearch,      // a search for plans on given slices, or a load to replay and to mend
  kWideSearch,  // a search over accelerators, a cluster's capacity or the whole catalog
};

struct Method {
  std::string service;  // "sliceplan.v1.PlannerService"
  std::string name;     // "EstimateTraining"
  const google::protobuf::Message* request_prototype = nullptr;
  const google::protobuf::Message* response_prototype = nullptr;
  // Messages must be of the types above. Does not throw.
  std::function<Result(const google::protobuf::Message&, google::protobuf::Message*, const CallContext&)> handle;
  std::function<Effort(const google::protobuf::Message&)> effort;

  // "sliceplan.v1.PlannerService/EstimateTraining".
  std::string FullName() const;
};

class MethodTable {
 public:
  // `handle(const Request&, Response*, const CallContext&) -> Result`; `effort(const Request&) -> Effort`. Exceptions
  // of `handle` become INTERNAL.
  template <typename Request, typename Response, typename Handle, typename EffortOf>
  void Add(absl::string_view service, absl::string_view name, Handle handle, EffortOf effort);

  // By "package.Service/Method", with or without the package and a leading slash. nullptr when there is none.
  const Method* Find(absl::string_view full_name) const;
  const std::vector<std::unique_ptr<Method>>& methods() const { return methods_; }
  // Full names of the services, each once, in order.
  std::vector<std::string> ServiceNames() const;

 private:
  static Result Guarded(const std::function<Result()>& handle, const CallContext& call);

  std::vector<std::unique_ptr<Method>> methods_;
};

// Fills `*request`. Bytes that are no such message are INVALID_ARGUMENT.
Result ParseBytes(const Method& method, absl::string_view bytes, google::protobuf::Message* request);

// One call in bytes: `request` and `*response` are serialised messages of the method. Bytes that are no such message
// are INVALID_ARGUMENT.
Result CallWithBytes(const Method& method, absl::string_view request, std::string* response, const CallContext& call);

// One call in proto3 JSON. Names in either spelling are read, lowerCamel is written, with fields at their default
// written too. A request that does not fit the message is INVALID_ARGUMENT with every field that is wrong and, for
// enums, the legal names.
Result CallWithJson(const Method& method, absl::string_view request, std::string* response, const CallContext& call);

// ---- Implementation ----

template <typename Request, typename Response, typename Handle, typename EffortOf>
void MethodTable::Add(absl::string_view service, absl::string_view name, Handle handle, EffortOf effort) {
  auto method = std::make_unique<Method>();
  method->service = std::string(service);
  method->name = std::string(name);
  method->request_prototype = &Request::default_instance();
  method->response_prototype = &Response::default_instance();
  method->handle = [handle = std::move(handle)](const google::protobuf::Message& request,
                                                google::protobuf::Message* response, const CallContext& call) {
    return Guarded([&] { return handle(static_cast<const Request&>(request), static_cast<Response*>(response), call); },
                   call);
  };
  method->effort = [effort = std::move(effort)](const google::protobuf::Message& request) {
    return effort(static_cast<const Request&>(request));
  };
  methods_.push_back(std::move(method));
}

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_METHOD_TABLE_H_
