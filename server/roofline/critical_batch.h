// The batch at which a matmul turns from waiting for weights to computing. Chapters 1 and 7 of "How To Scale Your
// Model". B counts tokens per replica of the weights: sharding the model scales compute and bandwidth together.
#ifndef SLICEPLAN_SERVER_ROOFLINE_CRITICAL_BATCH_H_
#define SLICEPLAN_SERVER_ROOFLINE_CRITICAL_BATCH_H_

#include <optional>

#include "server/roofline/matmul.h"

namespace sliceplan::roofline {

// B << D, F: only weight bytes count. B = C * b_w / (2 * W). `sparsity`: experts over experts per token, 1 when dense.
double CriticalBatch(double flops_per_second, double bytes_per_second, double weight_bytes_per_element,
                     double sparsity = 1);

// All three operands counted: the m at which compute and memory time meet. Unset when activations alone keep the memory
// busier than the units, whatever m. `matmul.m` is ignored.
std::optional<double> ExactCriticalBatch(const Matmul& matmul, double flops_per_second, double bytes_per_second);

// The smallest k for which ExactCriticalBatch exists when n = `n_over_k` * k: a * (b_l + b_o * r) / (2 * r).
double MinimumContractingDim(double flops_per_byte, double n_over_k, double lhs_bytes_per_element,
                             double output_bytes_per_element);

}  // namespace sliceplan::roofline

#endif  // SLICEPLAN_SERVER_ROOFLINE_CRITICAL_BATCH_H_
