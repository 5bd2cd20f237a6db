// Any bytes as a config.json: a sound model or violations, never a crash.
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "server/transformer/describe.h"
#include "server/transformer/hugging_face/import.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace transformer = sliceplan::transformer;
  const transformer::ImportResult result =
      transformer::ImportHuggingFaceConfig(absl::string_view(reinterpret_cast<const char*>(data), size));
  if (result.model.has_value() != result.violations.empty()) __builtin_trap();
  if (result.model && !transformer::DescribeModel(result.model->architecture, transformer::DescribeOptions()).ok()) {
    __builtin_trap();
  }
  return 0;
}
