// The smallest of many keys that change one at a time.
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_MIN_TREE_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_MIN_TREE_H_

#include <cstddef>
#include <limits>
#include <vector>

namespace sliceplan::planner {

// A tournament: O(log n) to change a key, O(1) to find the smallest, the lowest index among equals. At least one key.
class MinTree {
 public:
  MinTree(size_t count, double key) {
    while (leaves_ < count) leaves_ *= 2;
    keys_.assign(leaves_, std::numeric_limits<double>::infinity());
    for (size_t i = 0; i < count; ++i) keys_[i] = key;
    winners_.resize(leaves_);
    for (size_t node = leaves_ - 1; node > 0; --node) Play(node);
  }

  void Set(size_t index, double key) {
    if (keys_[index] == key) return;
    keys_[index] = key;
    for (size_t node = (leaves_ + index) / 2; node > 0; node /= 2) Play(node);
  }
  size_t SmallestIndex() const { return leaves_ == 1 ? 0 : winners_[1]; }
  double Smallest() const { return keys_[SmallestIndex()]; }

 private:
  size_t WinnerOf(size_t node) const { return node >= leaves_ ? node - leaves_ : winners_[node]; }
  void Play(size_t node) {
    const size_t left = WinnerOf(2 * node);
    const size_t right = WinnerOf(2 * node + 1);
    winners_[node] = keys_[right] < keys_[left] ? right : left;
  }

  size_t leaves_ = 1;
  std::vector<double> keys_;
  std::vector<size_t> winners_;
};

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SERVING_MIN_TREE_H_
