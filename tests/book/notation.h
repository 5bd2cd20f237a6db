// The book's sharding notation: specs ["XY", null] on a mesh {"X": 8, "Y": 2}, and operands ["I_X", "J"].
#ifndef SLICEPLAN_TESTS_BOOK_NOTATION_H_
#define SLICEPLAN_TESTS_BOOK_NOTATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "server/roofline/mesh_placement.h"
#include "server/roofline/sharded_matmul.h"
#include "server/roofline/sharding.h"
#include "tests/book/book_case.h"

namespace sliceplan::book {

struct NamedMesh {
  std::vector<roofline::MeshAxis> axes;
  std::vector<int64_t> sizes;
  int IndexOf(char name) const;
};
// Axes in alphabetical order, which is the book's order.
NamedMesh MeshOf(const Json& mesh);

// "XY" or null for each dimension.
roofline::Sharding ShardingOf(const Json& spec, const NamedMesh& mesh);
roofline::ShardedArray ArrayOf(const Json& shape, const Json& spec, const NamedMesh& mesh, double bytes_per_element);

// ["I_X", "J"] with the names that the matmul gives its dimensions, in order: {"m", "k"}.
std::vector<roofline::DimensionSharding> EntriesOf(const Json& operand, const std::vector<std::string>& dimensions);
// ["X", null] likewise.
std::vector<roofline::DimensionSharding> EntriesOfSpec(const Json& spec, const std::vector<std::string>& dimensions);

// "AllGather", "ReduceScatter", ...
std::string BookName(roofline::CollectiveKind kind);
// "A", "B", "C".
std::string BookName(roofline::MatmulOperand operand);

}  // namespace sliceplan::book

#endif  // SLICEPLAN_TESTS_BOOK_NOTATION_H_
