// The book's own constants, as the engine's types. tests/data/book_constants.json; source in book_cases.md beside it.
#ifndef SLICEPLAN_TESTS_BOOK_BOOK_CONSTANTS_H_
#define SLICEPLAN_TESTS_BOOK_BOOK_CONSTANTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "server/hardware/accelerator.h"
#include "server/hardware/slice.h"
#include "server/roofline/fat_tree.h"
#include "tests/book/book_case.h"

namespace sliceplan::book {

// The file, parsed.
const Json& Constants();
// The record of a chip: "tpu-v5p", "h100". Fails the process when there is none.
const Json& ChipRecord(const std::string& id);
hardware::AcceleratorSpec ChipSpec(const std::string& id);
std::vector<roofline::FatTreeLevel> SuperPodLevels();

// A chip that has exactly the constants that a case gives: flops_per_s, hbm_bytes_per_s, ... `ops_per_s` is the int8
// rate.
hardware::AcceleratorSpec GivenChip(const Json& given);
// A torus with axes of these sizes, all rings or all lines.
hardware::Slice TorusOf(const hardware::AcceleratorSpec& accelerator, const std::vector<int32_t>& sizes, bool wraps);
// A slice of the book's chip by its generation's wrap rule.
hardware::Slice SliceOf(const std::string& chip, const std::string& topology);
// GPUs of one or more domains.
hardware::Slice SwitchedOf(const hardware::AcceleratorSpec& accelerator, int64_t gpus, int32_t domain_size);

// Both directions of an axis and both in one: the case gives either.
double LinkBytesPerSecond(const Json& given);
double AxisBytesPerSecond(const Json& given);

inline double Number(const Json& object, const char* key) { return object.at(key).get<double>(); }
inline int64_t Count(const Json& object, const char* key) { return static_cast<int64_t>(Number(object, key)); }

}  // namespace sliceplan::book

#endif  // SLICEPLAN_TESTS_BOOK_BOOK_CONSTANTS_H_
