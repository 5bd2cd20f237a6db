// Peaks rebuilt from what a data sheet counts: units, lanes and clock. Chapters 2 (TPU) and 12 (GPU) of "How To Scale
// Your Model". All arguments positive.
#ifndef SLICEPLAN_SERVER_ROOFLINE_UNIT_RATES_H_
#define SLICEPLAN_SERVER_ROOFLINE_UNIT_RATES_H_

namespace sliceplan::roofline {

// Systolic arrays: each of mxu_dim x mxu_dim cells multiplies and adds once a cycle.
double SystolicFlopsPerSecond(double mxu_count, double mxu_dim, double clock_hertz);

// Vector lanes of all cores or multiprocessors: units x lanes of each x arithmetic units of each lane.
double VectorLaneCount(double unit_count, double lanes_per_unit, double alus_per_lane);

// `flops_per_cycle` is 1, or 2 where a fused multiply-add counts twice.
double VectorFlopsPerSecond(double lane_count, double clock_hertz, double flops_per_cycle = 1);

// The clock that a peak implies.
double ImpliedClockHertz(double flops_per_second, double lane_count, double flops_per_cycle);

// FLOPs a cycle of one of `unit_count` matrix units.
double FlopsPerCyclePerUnit(double flops_per_second, double unit_count, double clock_hertz);

double RegisterFileBytes(double register_count, double words_per_register, double bytes_per_word);

// Warps that fit a register file when each thread holds `registers_per_thread`.
double ResidentWarps(double register_file_bytes, double bytes_per_word, double threads_per_warp,
                     double registers_per_thread);

}  // namespace sliceplan::roofline

#endif  // SLICEPLAN_SERVER_ROOFLINE_UNIT_RATES_H_
