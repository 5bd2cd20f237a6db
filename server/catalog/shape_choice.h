// Which shapes of an accelerator are legal, and which one a number of chips stands for.
#ifndef SLICEPLAN_SERVER_CATALOG_SHAPE_CHOICE_H_
#define SLICEPLAN_SERVER_CATALOG_SHAPE_CHOICE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/catalog/catalog.h"
#include "server/hardware/topology.h"

namespace sliceplan::catalog {

// The listed slices of that shape, which must be in canonical order; several when it comes on several hosts.
std::vector<const v1::SliceRecord*> ListedSlices(const Accelerator& accelerator, const hardware::Shape& shape);

// Whether the generation's rule allows a shape that is not listed.
bool IsLegalByRule(const Accelerator& accelerator, const hardware::Shape& shape);

// Whether the catalog offers the shape twisted.
bool IsTwistOffered(const Accelerator& accelerator, const hardware::Shape& shape);

// The record of an unlisted shape that IsLegalByRule: hosts and labels of its listed neighbours, derived counts.
v1::SliceRecord DeriveSlice(const Accelerator& accelerator, const hardware::Shape& shape);

// The most cubic legal shape of exactly `chip_count` chips, shapes sold as one slice first; nullopt when there is none.
std::optional<hardware::Shape> MostCubicShape(const Accelerator& accelerator, int64_t chip_count);

// The legal chip counts next below and next above, ascending; one where the other does not exist; none without shapes.
std::vector<int64_t> NearestChipCounts(const Accelerator& accelerator, int64_t chip_count);

// A sentence that lists the legal shapes.
std::string LegalShapes(const Accelerator& accelerator);

// A sentence that lists the shapes offered twisted.
std::string TwistedShapes(const Accelerator& accelerator);

// How many the number in a slice name counts per chip: the TensorCores of a chip, or 1.
int32_t CoresPerNamedChip(const Accelerator& accelerator);

}  // namespace sliceplan::catalog

#endif  // SLICEPLAN_SERVER_CATALOG_SHAPE_CHOICE_H_
