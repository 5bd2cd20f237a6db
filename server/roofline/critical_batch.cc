#include "server/roofline/critical_batch.h"

namespace sliceplan::roofline {

using hardware::BytesPerElement;

double CriticalBatch(double flops_per_second, double bytes_per_second, double weight_bytes_per_element,
                     double sparsity) {
  constexpr double kFlopsPerWeight = 2;
  return sparsity * flops_per_second * weight_bytes_per_element / (kFlopsPerWeight * bytes_per_second);
}

std::optional<double> ExactCriticalBatch(const Matmul& matmul, double flops_per_second, double bytes_per_second) {
  const double flops_per_byte = flops_per_second / bytes_per_second;
  const double k = static_cast<double>(matmul.k);
  const double n = static_cast<double>(matmul.n);
  // Per row of m: bytes that compute can wait for, less those that the row itself moves.
  const double spare_bytes_per_row =
      2 * k * n / flops_per_byte - BytesPerElement(matmul.lhs) * k - BytesPerElement(matmul.output) * n;
  if (spare_bytes_per_row <= 0) return std::nullopt;
  return BytesPerElement(matmul.rhs) * k * n / spare_bytes_per_row;
}

double MinimumContractingDim(double flops_per_byte, double n_over_k, double lhs_bytes_per_element,
                             double output_bytes_per_element) {
  return flops_per_byte * (lhs_bytes_per_element + output_bytes_per_element * n_over_k) / (2 * n_over_k);
}

}  // namespace sliceplan::roofline
