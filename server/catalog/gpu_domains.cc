#include "server/catalog/gpu_domains.h"

namespace sliceplan::catalog {

int64_t DomainSizeOf(const hardware::AcceleratorSpec& spec) {
  if (spec.scale_up_domain_size.has_value()) return *spec.scale_up_domain_size;
  if (spec.scale_up_bytes_per_second.has_value() && spec.chips_per_host.has_value()) return *spec.chips_per_host;
  return 1;
}

DomainSplit SplitIntoDomains(int64_t chip_count, int64_t domain, int64_t host) {
  if (chip_count <= domain) return {chip_count, {}};
  if (chip_count % domain == 0) return {domain, {}};
  const auto even_share = [domain, host](int64_t count) -> int64_t {
    // A share of at least half a domain bounds the number of domains from both sides.
    const int64_t fewest = (count + domain - 1) / domain;
    for (int64_t domains = fewest; domains * domain <= 2 * count; ++domains) {
      if (count % domains == 0 && (count / domains) % host == 0) return count / domains;
    }
    return 0;
  };
  DomainSplit split;
  split.domain_size = even_share(chip_count);
  if (split.domain_size > 0) return split;
  // A multiple of the domain is never far.
  int64_t below = chip_count - 1;
  while (below > domain && below % domain != 0 && even_share(below) == 0) --below;
  int64_t above = chip_count + 1;
  while (above % domain != 0 && even_share(above) == 0) ++above;
  split.nearest_counts = {below, above};
  return split;
}

}  // namespace sliceplan::catalog
