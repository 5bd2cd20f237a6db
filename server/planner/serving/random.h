// Random numbers that are the same on every platform and do not depend on the order of drawing: request i of a seed has
// its own stream, so that two runs that differ in one setting see the same requests (common random numbers).
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_RANDOM_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_RANDOM_H_

#include <cstdint>

namespace sliceplan::planner {

// SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
class Random {
 public:
  // The stream of `index`, apart from those of other seeds and indices.
  Random(uint64_t seed, uint64_t index) : state_(Mix(seed + kGolden) ^ Mix(index * kGolden + 1)) {}

  // Uniform on (0, 1), both ends excluded.
  double Uniform() {
    state_ += kGolden;
    return (static_cast<double>(Mix(state_) >> 12) + 0.5) * 0x1p-52;
  }
  double Exponential();  // mean 1
  double Normal();       // mean 0, variance 1
  // Mean 1, squared coefficient of variation `c2` > 0.
  double Gamma(double c2);

 private:
  static constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio, odd
  static uint64_t Mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  uint64_t state_;
};

// The x below which a standard normal variable lies with probability `p`, 0 < p < 1. Relative error below 1.2e-9
// (P. J. Acklam, "An algorithm for computing the inverse normal cumulative distribution function", 2003).
double NormalQuantile(double p);

// The probability that a standard normal variable lies below `x`.
double NormalProbability(double x);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SERVING_RANDOM_H_
