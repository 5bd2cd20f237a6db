// Which chip the words of a query name, and what its `accelerator_type` says of the shape.
#ifndef SLICEPLAN_SERVER_CATALOG_NAMED_CHIP_H_
#define SLICEPLAN_SERVER_CATALOG_NAMED_CHIP_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "server/catalog/catalog.h"
#include "server/catalog/slice_resolver.h"
#include "server/hardware/topology.h"
#include "server/hardware/violation.h"

namespace sliceplan::catalog {

struct NamedChip {
  const Accelerator* accelerator = nullptr;  // nullptr: not known, see the violations
  // What `accelerator_type` says; at most one is set.
  absl::Span<const v1::SliceRecord* const> slices;  // the listed slices of that name
  std::optional<hardware::Shape> shape;             // "v5p-4x4x16"
  std::optional<int64_t> chip_count;                // "v5p-512", when no slice is listed by that name
  // The host, when `accelerator` says "p5.48xlarge"; without a shape in the query, chip_count is that of one host.
  std::string machine_type;
};

// Of a query without a custom chip. An `accelerator_type` that belongs to another chip than `accelerator` is a
// violation.
NamedChip FindNamedChip(const Catalog& catalog, const SliceQuery& query, std::vector<hardware::Violation>& violations);

}  // namespace sliceplan::catalog

#endif  // SLICEPLAN_SERVER_CATALOG_NAMED_CHIP_H_
