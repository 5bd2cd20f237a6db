// Flags of Megatron-LM that do not depend on the mesh: recompute, formats, optimizer.
#ifndef SLICEPLAN_SERVER_PLANNER_RENDER_MEGATRON_FLAGS_H_
#define SLICEPLAN_SERVER_PLANNER_RENDER_MEGATRON_FLAGS_H_

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/planner/render/render_words.h"

namespace sliceplan::planner {

class MegatronFlags {
 public:
  void Add(absl::string_view flag) { absl::StrAppend(&text_, "  ", flag, " \\\n"); }
  void Add(absl::string_view flag, absl::string_view value) {
    absl::StrAppend(&text_, "  ", flag, " ", value, " \\\n");
  }
  void Add(absl::string_view flag, int64_t value) { absl::StrAppend(&text_, "  ", flag, " ", value, " \\\n"); }
  const std::string& Text() const { return text_; }

 private:
  std::string text_;
};

// Megatron recomputes modules, not tensors: policies that keep some projections and not others are refused.
absl::Status AddRecompute(const RenderInput& input, const ModelFacts& facts, MegatronFlags& flags);
absl::Status AddFormats(const TrainingWorkload& workload, MegatronFlags& flags, std::string& notes);
// `distributed`: whether data shards the optimizer, which state in 16 bits or less and offload depend on.
absl::Status AddOptimizer(const TrainingWorkload& workload, bool distributed, MegatronFlags& flags);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_RENDER_MEGATRON_FLAGS_H_
