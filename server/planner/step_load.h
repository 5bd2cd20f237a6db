// What one chip does, holds and sends in a training step: counts only, no times. "Count" of count, time, schedule.
// Chapters 4 and 5 of "How To Scale Your Model"; kernel shapes as docs/training.md derives them.
#ifndef SLICEPLAN_SERVER_PLANNER_STEP_LOAD_H_
#define SLICEPLAN_SERVER_PLANNER_STEP_LOAD_H_

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "server/planner/remat.h"
#include "server/planner/training_job.h"
#include "server/transformer/operations.h"

namespace sliceplan::planner {

// A plan with every free choice made.
struct StepPlan {
  Parallelism parallelism;
  RematPolicy remat_policy = RematPolicy::kNone;
  RematPlan remat;
  int32_t gradient_accumulation = 1;
  int32_t microbatch_count = 1;  // of the pipeline, per accumulation round
  int64_t microbatch_size = 1;   // sequences per data shard

  int64_t MicrobatchesPerStep() const { return static_cast<int64_t>(gradient_accumulation) * microbatch_count; }
};

// Operations that depend on each other inside a layer, in order; those of one group can run side by side.
enum class OpGroup { kInputProjections, kScores, kOutputProjection, kRouter, kUp, kDown, kExpertUp, kExpertDown };
inline constexpr int kOpGroupCount = 8;

OpGroup OpGroupOf(const transformer::WeightMatmul& matmul);

// Share of a split weight that one chip of the tensor group holds. Whole heads: 8 KV heads over 16 chips are one each.
double TensorShare(const transformer::WeightMatmul& matmul, double tensor);

// One group in one microbatch on one chip, forward, all sharding applied.
struct GroupLoad {
  double matmul_flops = 0;         // at the compute type's rate
  double wide_matmul_flops = 0;    // never in low precision: router, scans
  double kernel_matmul_flops = 0;  // the two above with tiles padded
  double operand_bytes = 0;        // inputs, weights and outputs, once, in 16 bits or wider
  double least_operand_bytes = 0;  // the same in the compute type, which a lower bound may assume
  double elementwise_bytes = 0;    // one pass over norms, activations, residuals
  double weight_count = 0;         // elements of dense weights on this chip, before FSDP
  double expert_weight_count = 0;
  double recompute_flops = 0;
  double recompute_kernel_flops = 0;
  double recompute_operand_bytes = 0;
  double recompute_least_operand_bytes = 0;
  transformer::Component component = transformer::Component::kOther;
};

// One layer, one microbatch, one chip.
struct LayerLoad {
  int32_t layer_group = 0;
  bool has_experts = false;
  bool recomputes = false;
  std::array<GroupLoad, kOpGroupCount> groups;

  double attention_flops = 0;         // forward, exact
  double attention_kernel_flops = 0;  // as the kernel runs them: padded heads, whole blocks
  double attention_bytes = 0;         // operands of the fused kernel, one pass
  double attention_score_bytes = 0;   // score traffic when materialised
  bool recomputes_attention = false;

  // Collectives, bytes of the full array of a group.
  int32_t tensor_block_count = 0;  // residual branches, each gathered and reduced once forward
  double tensor_bytes = 0;         // of one gather or reduction
  double context_bytes = 0;        // keys and values
  double expert_bytes = 0;         // one all-to-all
  int32_t expert_tensor_block = 0;
  double dispatch_flops = 0;  // one-hot dispatch and combine (capacity factor), forward
  double permute_bytes = 0;   // routed activations, one pass

  // Parameters on this chip before any data, FSDP or context sharding.
  double dense_parameter_count = 0;  // norms and copied vectors included
  double expert_parameter_count = 0;

  double saved_bytes = 0;         // for the backward pass
  double offloaded_bytes = 0;     // of them, kept in host memory
  double intermediate_bytes = 0;  // all intermediates of the layer: alive while it is recomputed and differentiated
};

// The parts outside the layers: embedding on the first stage, head and loss on the last.
struct EdgeLoad {
  double embedding_parameter_count = 0;
  double head_parameter_count = 0;  // 0 when tied on the same stage
  double head_flops = 0;            // forward, one microbatch
  double head_kernel_flops = 0;
  double head_operand_bytes = 0;
  double head_weight_count = 0;
  double logits_element_count = 0;
  double embedding_bytes = 0;  // lookup traffic
  double mtp_head_passes = 0;
};

struct StepLoad {
  double tokens_per_microbatch = 0;          // on one chip of a tensor group
  double wide_bytes_per_element = 2;         // of activations and gathered weights
  absl::InlinedVector<LayerLoad, 4> layers;  // by layer kind
  LayerLoad mtp;                             // multi-token-prediction layers, on the last stage
  int32_t mtp_layer_count = 0;
  EdgeLoad edge;
  double permute_bytes = 0;  // pipeline: activations handed to the next stage
};

// Fills `load` (reused between plans: no allocation after the first). Requires a legal plan.
void CountStep(const TrainingJob& job, const StepPlan& plan, StepLoad& load);

// Remembers the counts of the plans of one job, which must outlive it: many share their local shapes. Not thread-safe.
class StepLoadCache {
 public:
  // As CountStep. Valid until the next call.
  const StepLoad& Of(const TrainingJob& job, const StepPlan& plan);
  void Clear();

 private:
  using Key = std::array<int64_t, 4>;
  absl::flat_hash_map<Key, std::unique_ptr<StepLoad>> loads_;
  std::vector<std::unique_ptr<StepLoad>> spare_;  // of forgotten ones
};

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_STEP_LOAD_H_
