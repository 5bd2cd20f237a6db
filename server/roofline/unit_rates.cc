#include "server/roofline/unit_rates.h"

#include <cmath>

namespace sliceplan::roofline {

double SystolicFlopsPerSecond(double mxu_count, double mxu_dim, double clock_hertz) {
  constexpr double kFlopsPerCell = 2;
  return mxu_count * kFlopsPerCell * mxu_dim * mxu_dim * clock_hertz;
}

double VectorLaneCount(double unit_count, double lanes_per_unit, double alus_per_lane) {
  return unit_count * lanes_per_unit * alus_per_lane;
}

double VectorFlopsPerSecond(double lane_count, double clock_hertz, double flops_per_cycle) {
  return lane_count * clock_hertz * flops_per_cycle;
}

double ImpliedClockHertz(double flops_per_second, double lane_count, double flops_per_cycle) {
  return flops_per_second / (lane_count * flops_per_cycle);
}

double FlopsPerCyclePerUnit(double flops_per_second, double unit_count, double clock_hertz) {
  return flops_per_second / (unit_count * clock_hertz);
}

double RegisterFileBytes(double register_count, double words_per_register, double bytes_per_word) {
  return register_count * words_per_register * bytes_per_word;
}

double ResidentWarps(double register_file_bytes, double bytes_per_word, double threads_per_warp,
                     double registers_per_thread) {
  return std::floor(register_file_bytes / (bytes_per_word * threads_per_warp * registers_per_thread));
}

}  // namespace sliceplan::roofline
