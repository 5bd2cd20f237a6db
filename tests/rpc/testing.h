// What tests of handlers and servers share.
#ifndef SLICEPLAN_TESTS_RPC_TESTING_H_
#define SLICEPLAN_TESTS_RPC_TESTING_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/google/rpc/error_details.pb.h"
#include "proto/google/rpc/status.pb.h"
#include "server/rpc/handlers/engine.h"
#include "server/rpc/handlers/register.h"
#include "server/rpc/method_table.h"
#include "server/rpc/result.h"

namespace sliceplan::rpc {

// On the built-in catalog; made once.
inline Engine& TestEngine() {
  static auto* const store =
      new absl::StatusOr<std::unique_ptr<catalog::CatalogStore>>(catalog::CatalogStore::Create(""));
  static Engine* const engine = new Engine(store->value().get());
  return *engine;
}

inline const MethodTable& TestMethods() {
  static const MethodTable* const table = new MethodTable(MakeMethodTable(&TestEngine()));
  return *table;
}

template <typename Message>
Message FromText(absl::string_view text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(std::string(text), &message)) << text;
  return message;
}

// Calls "Service/Method" as a transport would.
template <typename Response, typename Request>
Result Call(absl::string_view method, const Request& request, Response* response, const CallContext& call = {}) {
  const Method* const found = TestMethods().Find(method);
  EXPECT_NE(found, nullptr) << method;
  return found->handle(request, response, call);
}

// The detail of one type; fails the test when there is none.
template <typename Detail>
Detail DetailOf(const google::rpc::Status& status) {
  Detail detail;
  for (const auto& any : status.details()) {
    if (any.Is<Detail>() && any.UnpackTo(&detail)) return detail;
  }
  ADD_FAILURE() << "no " << Detail::descriptor()->name() << " in " << status.ShortDebugString();
  return detail;
}

// Fields of all violations, in order.
inline std::vector<std::string> ViolatedFields(const google::rpc::Status& status) {
  std::vector<std::string> fields;
  const auto details = DetailOf<google::rpc::BadRequest>(status);
  for (const auto& violation : details.field_violations()) {
    fields.push_back(violation.field());
  }
  return fields;
}

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_TESTS_RPC_TESTING_H_
