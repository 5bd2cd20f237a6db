// The text of a config.json -> architecture -> operations, counts, FLOPs and cache.
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/string_view.h"
#include "server/transformer/flops.h"
#include "server/transformer/hugging_face/import.h"
#include "server/transformer/operations.h"
#include "server/transformer/parameter_count.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sliceplan::transformer;
  const ImportResult result = ImportHuggingFaceConfig(absl::string_view(reinterpret_cast<const char*>(data), size));
  if (result.model.has_value() != result.violations.empty()) std::abort();
  if (!result.model.has_value()) return 0;
  const absl::StatusOr<ModelOperations> operations = OperationsOf(result.model->architecture);
  // An imported architecture is valid, so its operations exist.
  if (!operations.ok()) std::abort();
  const ParameterCount parameters = CountParameters(result.model->architecture, *operations);
  if (parameters.total_count < 0 || parameters.stored_count < parameters.total_count) std::abort();
  if (!std::isfinite(CountFlops(*operations, 8192, AttentionMask::kCausal).forward)) std::abort();
  return 0;
}
