// How chips that are joined by switches are spread over scale-up domains.
#ifndef SLICEPLAN_SERVER_CATALOG_GPU_DOMAINS_H_
#define SLICEPLAN_SERVER_CATALOG_GPU_DOMAINS_H_

#include <cstdint>
#include <vector>

#include "server/hardware/accelerator.h"

namespace sliceplan::catalog {

// Chips of a scale-up domain; of a host where the chips meet on its PCIe alone; 1 where neither is known.
int64_t DomainSizeOf(const hardware::AcceleratorSpec& spec);

struct DomainSplit {
  int64_t domain_size = 0;              // chips in use of each domain; 0: no even split
  std::vector<int64_t> nearest_counts;  // without a split
};

// Spreads chips over domains of `domain` chips whose hosts have `host` each. All in one domain where they fit; else
// whole domains, else the fewest domains that are filled alike with whole hosts, at least half full.
DomainSplit SplitIntoDomains(int64_t chip_count, int64_t domain, int64_t host);

}  // namespace sliceplan::catalog

#endif  // SLICEPLAN_SERVER_CATALOG_GPU_DOMAINS_H_
