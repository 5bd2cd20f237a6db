#include "client/cli/job_flags.h"

namespace sliceplan::cli {

void AddModeFlags(Flags& flags) {
  flags.Group("How times are computed");
  flags.Field("--mode", "estimation_mode", "the physics alone, or as a real runtime does (default)");
  flags.Field("--profile", "calibration_profile", "calibration profile; default: the accelerator's");
}

void AddPricingFlags(Flags& flags) {
  flags.Group("Price");
  flags.Field("--price", "pricing.usd_per_chip_hour", "US dollars per chip-hour, instead of the catalog's");
  flags.Field("--price-model", "pricing.price_model", "terms");
  flags.Field("--region", "pricing.region", "region; default: the cheapest listed in the US");
  flags.Field("--provider", "pricing.provider", "cloud; default: all");
  flags.Field("--as-of", "pricing.as_of", "use prices not newer than this date, 2026-08-22");
}

}  // namespace sliceplan::cli
