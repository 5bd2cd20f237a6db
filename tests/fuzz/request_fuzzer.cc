// Bytes -> parse -> validate -> plan -> reply, through the same table as every transport. The first byte chooses the
// method; the rest is the request.
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "tests/fuzz/fuzz_service.h"

namespace sliceplan::fuzz {
namespace {

void Run(absl::string_view input) {
  if (input.empty()) return;
  const rpc::Method& method = ChosenMethod(static_cast<unsigned char>(input[0]));
  std::string response;
  const rpc::Result result = rpc::CallWithBytes(method, input.substr(1), &response, ImpatientCall());
  if (!result.ok()) return CheckError(result);
  const std::unique_ptr<google::protobuf::Message> reply(method.response_prototype->New());
  if (!reply->ParseFromString(response)) Fail("a reply that does not parse");
  CheckFinite(*reply);
}

}  // namespace
}  // namespace sliceplan::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  sliceplan::fuzz::Run(absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
