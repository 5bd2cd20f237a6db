// The chip that a query plans with, where it is not just a record of the catalog.
#ifndef SLICEPLAN_SERVER_CATALOG_CHIP_EDIT_H_
#define SLICEPLAN_SERVER_CATALOG_CHIP_EDIT_H_

#include <vector>

#include "server/catalog/catalog.h"
#include "server/catalog/slice_resolver.h"
#include "server/hardware/accelerator.h"
#include "server/hardware/violation.h"

namespace sliceplan::catalog {

// `query.custom`, checked. It is joined by a torus when the query names one: ici fields, wraps, a twist, a topology of
// several dimensions; else by switches.
hardware::AcceleratorSpec CustomSpec(const SliceQuery& query, std::vector<hardware::Violation>& violations);

// The constants of `accelerator` with the query's override, checked. An override of the other kind of fabric, or of the
// dimensions of the torus, is a violation.
hardware::AcceleratorSpec OverriddenSpec(const Accelerator& accelerator, const SliceQuery& query,
                                         std::vector<hardware::Violation>& violations);

}  // namespace sliceplan::catalog

#endif  // SLICEPLAN_SERVER_CATALOG_CHIP_EDIT_H_
