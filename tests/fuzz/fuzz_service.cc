#include "tests/fuzz/fuzz_service.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "google/protobuf/descriptor.h"
#include "server/catalog/catalog_store.h"
#include "server/rpc/call_context.h"
#include "server/rpc/handlers/engine.h"
#include "server/rpc/handlers/register.h"

namespace sliceplan::fuzz {
namespace {

// A search is stopped after so many polls, as a caller that went away would.
constexpr int kPolls = 20;
// Error details travel in gRPC trailers, which hold 8 KiB.
constexpr size_t kMaxStatusBytes = 4096 + 1024;

struct Server {
  Server() : store(*catalog::CatalogStore::Create("")), engine(store.get()), table(rpc::MakeMethodTable(&engine)) {}
  std::unique_ptr<catalog::CatalogStore> store;
  rpc::Engine engine;
  rpc::MethodTable table;
};

}  // namespace

void Fail(absl::string_view what) {
  std::fprintf(stderr, "fuzzer: %s\n", std::string(what).c_str());
  std::abort();
}

const rpc::MethodTable& Service() {
  static const Server& server = *new Server;
  return server.table;
}

const rpc::Method& ChosenMethod(unsigned char choice) {
  const auto& methods = Service().methods();
  return *methods[choice % methods.size()];
}

rpc::CallContext ImpatientCall() {
  rpc::CallContext call;
  call.caller_gone = [polls = 0]() mutable { return ++polls > kPolls; };
  return call;
}

void CheckError(const rpc::Result& result) {
  if (result.code() == absl::StatusCode::kInternal) Fail("an engine error");
  if (result.status().ByteSizeLong() > kMaxStatusBytes) Fail("status details too large for a trailer");
}

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
        if (!std::isfinite(value)) Fail(field->full_name());
      }
    }
  }
}

}  // namespace sliceplan::fuzz
