// The axes of a torus slice: which close, and whether they are twisted.
#ifndef SLICEPLAN_SERVER_CATALOG_TORUS_AXES_H_
#define SLICEPLAN_SERVER_CATALOG_TORUS_AXES_H_

#include <vector>

#include "server/catalog/slice_resolver.h"
#include "server/hardware/topology.h"
#include "server/hardware/violation.h"

namespace sliceplan::catalog {

// Sets topology, chip count, axes and twist of `out.slice`, whose chip is set, and notes what was assumed. Axes close
// as the query says, else by the rule of the chip; without a rule (a custom chip) all that have more than two chips. An
// axis of two chips never closes.
void SetTorus(const SliceQuery& query, const hardware::Shape& shape, ResolvedSlice& out,
              std::vector<hardware::Violation>& violations);

}  // namespace sliceplan::catalog

#endif  // SLICEPLAN_SERVER_CATALOG_TORUS_AXES_H_
