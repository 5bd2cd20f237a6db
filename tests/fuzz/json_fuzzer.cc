// The body of a call over HTTP, in JSON. The first byte chooses the method (its highest bit: as many lines, for
// people); the rest is the body. What is read can be written, and read again as the same message.
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "server/rpc/json.h"
#include "server/rpc/reply_digest.h"
#include "tests/fuzz/fuzz_service.h"

namespace sliceplan::fuzz {
namespace {

constexpr unsigned char kPretty = 0x80;

std::unique_ptr<google::protobuf::Message> Read(const rpc::Method& method, absl::string_view json) {
  std::unique_ptr<google::protobuf::Message> message(method.request_prototype->New());
  const rpc::Result result = rpc::ParseJson(json, message.get());
  if (result.ok()) return message;
  CheckError(result);
  return nullptr;
}

void Run(absl::string_view input) {
  if (input.empty()) return;
  const auto choice = static_cast<unsigned char>(input[0]);
  const rpc::Method& method = ChosenMethod(choice & ~kPretty);
  const absl::string_view body = input.substr(1);

  std::string response;
  const rpc::Result result = rpc::CallWithJson(method, body, &response, ImpatientCall());
  if (!result.ok()) CheckError(result);

  const std::unique_ptr<google::protobuf::Message> request = Read(method, body);
  if (request == nullptr) {
    if (result.ok()) Fail("a body that cannot be read was answered");
    return;
  }
  const std::string written = (choice & kPretty) != 0 ? rpc::PrintPrettyJson(*request) : rpc::PrintJson(*request);
  const std::unique_ptr<google::protobuf::Message> again = Read(method, written);
  if (again == nullptr) Fail("what was written cannot be read");
  if (rpc::DeterministicBytes(*again) != rpc::DeterministicBytes(*request)) Fail("what was written reads otherwise");
}

}  // namespace
}  // namespace sliceplan::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  sliceplan::fuzz::Run(absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
