// Bytes -> parse -> validate -> plan -> reply, through the same table as every transport. The first byte chooses the
// method and the encoding (its lowest bit: JSON or binary); the rest is the request.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "server/catalog/catalog_store.h"
#include "server/rpc/call_context.h"
#include "server/rpc/handlers/engine.h"
#include "server/rpc/handlers/register.h"
#include "server/rpc/method_table.h"

namespace sliceplan::rpc {
namespace {

// A search is stopped after so many polls, as a caller that went away would.
constexpr int kPolls = 20;
// Error details travel in gRPC trailers, which hold 8 KiB.
constexpr size_t kMaxStatusBytes = 4096 + 1024;

void Fail(const char* what) {
  std::fprintf(stderr, "request_fuzzer: %s\n", what);
  std::abort();
}

// No reply holds NaN or infinity.
void CheckFinite(const google::protobuf::Message& message) {
  using google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        CheckFinite(field->is_repeated() ? reflection.GetRepeatedMessage(message, field, i)
                                         : reflection.GetMessage(message, field));
      } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE) {
        const double value = field->is_repeated() ? reflection.GetRepeatedDouble(message, field, i)
                                                  : reflection.GetDouble(message, field);
        if (!std::isfinite(value)) Fail(field->full_name().c_str());
      }
    }
  }
}

struct Server {
  Server() : store(*catalog::CatalogStore::Create("")), engine(store.get()), table(MakeMethodTable(&engine)) {}
  std::unique_ptr<catalog::CatalogStore> store;
  Engine engine;
  MethodTable table;
};

void Run(absl::string_view input) {
  static Server& server = *new Server;
  if (input.empty()) return;
  const uint8_t choice = static_cast<uint8_t>(input[0]);
  const Method& method = *server.table.methods()[(choice >> 1) % server.table.methods().size()];
  int polls = 0;
  CallContext call;
  call.caller_gone = [&polls] { return ++polls > kPolls; };
  std::string response;
  const absl::string_view request = input.substr(1);
  const Result result = (choice & 1) != 0 ? CallWithJson(method, request, &response, call)
                                          : CallWithBytes(method, request, &response, call);
  if (!result.ok()) {
    if (result.code() == absl::StatusCode::kInternal) Fail("an engine error");
    if (result.status().ByteSizeLong() > kMaxStatusBytes) Fail("status details too large for a trailer");
    return;
  }
  if ((choice & 1) != 0) return;
  const std::unique_ptr<google::protobuf::Message> reply(method.response_prototype->New());
  if (!reply->ParseFromString(response)) Fail("a reply that does not parse");
  CheckFinite(*reply);
}

}  // namespace
}  // namespace sliceplan::rpc

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  sliceplan::rpc::Run(absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
