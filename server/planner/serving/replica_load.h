// What one chip of a replica holds, reads, computes and sends, per token and per sequence: counts only, no times.
// "Count" of count, time, schedule. Chapters 4 and 7 of "How To Scale Your Model"; docs/serving.md.
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_REPLICA_LOAD_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_REPLICA_LOAD_H_

#include <array>
#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "server/planner/parallelism.h"
#include "server/planner/serving/attention_keys.h"
#include "server/planner/serving/serving_job.h"
#include "server/planner/serving/serving_policy.h"
#include "server/planner/step_load.h"

namespace sliceplan::planner {

// What operands are multiplied as: 16 bits and wider, 8 bits, 4 bits, and 4-bit weights on a chip without units for
// them, which are unpacked to 16.
enum class RateClass { kWide, kEightBit, kFourBit, kUnpackedFourBit };
inline constexpr size_t kRateClassCount = 4;
// Seconds at the peak of each class.
using ClassSeconds = std::array<double, kRateClassCount>;

// A matmul with weights, or several that can run side by side, on one chip. A row is a token, or a token's visit to an
// expert.
struct PassGroup {
  transformer::Component component = transformer::Component::kOther;
  ClassSeconds seconds_per_row = {};
  double flops_per_row = 0;
  double weight_bytes = 0;  // read once per pass; of one expert
  double activation_bytes_per_row = 0;
  bool experts = false;
  double gather_bytes_per_token = 0;         // over tensor, before it: bytes of the full array of the group
  double reduce_bytes_per_token = 0;         // over tensor, after it
  double hidden_reduce_bytes_per_token = 0;  // over fsdp, after it: weights split along their inputs too
};

// One distinct layer.
struct PassLayer {
  double count = 0;  // in the model: a pass meets all stages
  bool has_experts = false;
  std::array<PassGroup, kOpGroupCount> groups;
  PassAttention attention;
  double elementwise_bytes_per_token = 0;
  double routed_rows_per_token = 0;  // visits of a token to experts, imbalance included
  double experts_on_chip = 0;
  double choice_ratio = 0;                     // chance that a token visits a given expert
  double expert_exchange_bytes_per_token = 0;  // of one all-to-all, held by the whole group
  double resident_bytes = 0;                   // weights on one chip, all experts of the chip
  double absorbed_copy_bytes = 0;              // latent attention: its up projection once more, in 16 bits
  double kernel_bytes_per_token = 0;           // one pass over the tensors between the matmuls
  bool latent_attention = false;
  bool four_bit_attention = false;  // projections stored in four bits
  bool unpacked_experts = false;    // four-bit experts on a chip without four-bit units

  // Sums over the groups.
  ClassSeconds seconds_per_token = {};  // visits to experts included
  double dense_weight_bytes = 0;
  double widened_weight_bytes = 0;  // the part of it in integers that are multiplied in 16 bits
  double expert_weight_bytes = 0;   // of one expert
  double activation_bytes_per_token = 0;
};

struct ReplicaLoad {
  absl::InlinedVector<PassLayer, 4> layers;  // as ModelOperations.layers
  PassGroup head;                            // rows: sequences that get a token
  double embedding_bytes_per_token = 0;
  double embedding_resident_bytes = 0;    // first stage
  double head_resident_bytes = 0;         // last stage
  double permute_bytes_per_token = 0;     // pipeline: handed to the next stage
  double projection_bytes_per_token = 0;  // what projections of the widest layer write, and what the last one reads
  double expert_workspace_bytes_per_token = 0;  // of the widest expert layer: inputs and outputs of all its matmuls
  double rotary_table_bytes = 0;                // sines and cosines of every position; 0 with learned positions
  double logits_bytes_per_row = 0;
  PassLayer mtp;  // all multi-token-prediction layers; count 0: none
  // Sums over all layers.
  ClassSeconds seconds_per_token = {};
  double dense_weight_bytes = 0;
  double widened_weight_bytes = 0;
  double all_activation_bytes_per_token = 0;
  double kernel_bytes_per_token = 0;
  bool latent_attention = false;  // in any layer

  // How a replica's sequences are spread.
  double data_ranks = 1;  // data x expert: each serves its own sequences
  double context = 1;
  double pipeline = 1;
  double expert_ranks = 1;  // of one expert group
  double tensor = 1;
};

// Requires a legal plan (serving_legality.h).
ReplicaLoad CountReplica(const ServingJob& job, const ServingPool& pool, const ServingPolicy& policy,
                         const Parallelism& parallelism);

// Weights of the whole model on the chips of one tensor group, bytes per chip.
double ResidentBytes(const ReplicaLoad& load);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SERVING_REPLICA_LOAD_H_
