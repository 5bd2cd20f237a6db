// Bytes that an optimizer keeps and moves per parameter.
#ifndef SLICEPLAN_SERVER_PLANNER_OPTIMIZER_STATE_H_
#define SLICEPLAN_SERVER_PLANNER_OPTIMIZER_STATE_H_

#include "server/planner/training_job.h"

namespace sliceplan::planner {

// Moments per parameter. AdamW two; momentum SGD and Muon one (Muon keeps a single momentum for matrices: Jordan 2024);
// Adafactor's row and column sums are a vanishing share of a matrix (Shazeer and Stern 2018): counted as 0.
constexpr double MomentCount(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::kAdamw:
    case Optimizer::kAdamw8Bit: return 2;
    case Optimizer::kSgd:
    case Optimizer::kMuon: return 1;
    case Optimizer::kAdafactor: return 0;
  }
  return 0;
}

// Moments in bytes per parameter; 8-bit AdamW stores a byte each and an fp32 scale per block of 256 (Dettmers 2021).
constexpr double MomentBytes(Optimizer optimizer, hardware::DataType state) {
  const double bytes = optimizer == Optimizer::kAdamw8Bit ? 1 + 4.0 / 256 : hardware::BytesPerElement(state);
  return MomentCount(optimizer) * bytes;
}

constexpr double MasterBytes(const TrainingPrecision& precision) {
  return precision.master_weights ? hardware::BytesPerElement(*precision.master_weights) : 0;
}

// Optimizer state in bytes per parameter. Muon is for matrices between layers: the embedding and the head keep AdamW's
// two moments (Jordan 2024).
constexpr double MatrixStateBytes(const TrainingWorkload& workload) {
  return MomentBytes(workload.optimizer, workload.precision.optimizer_state) + MasterBytes(workload.precision);
}
constexpr double TableStateBytes(const TrainingWorkload& workload) {
  const Optimizer optimizer = workload.optimizer == Optimizer::kMuon ? Optimizer::kAdamw : workload.optimizer;
  return MomentBytes(optimizer, workload.precision.optimizer_state) + MasterBytes(workload.precision);
}

// Bytes read and written by one update: the gradient once, everything else in and out.
constexpr double UpdateBytes(const TrainingWorkload& workload) {
  const TrainingPrecision& precision = workload.precision;
  const double kept = hardware::BytesPerElement(precision.parameters) + MasterBytes(precision) +
                      MomentBytes(workload.optimizer, precision.optimizer_state);
  return hardware::BytesPerElement(precision.gradients) + 2 * kept;
}

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_OPTIMIZER_STATE_H_
