#include "server/planner/serving/serving_reasons.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "server/planner/words.h"

namespace sliceplan::planner {
namespace {

std::string TokenWords(const ServingEstimate& a, const ServingEstimate& b) {
  return absl::StrCat("a token every ", SecondsWords(a.tpot ? a.tpot->mean_seconds : 0), " against ",
                      SecondsWords(b.tpot ? b.tpot->mean_seconds : 0));
}

std::string ChipWords(const ServingEstimate& a, const ServingEstimate& b) {
  return absl::StrCat(CountWords(a.chip_count), " chips against ", CountWords(b.chip_count));
}

// Empty when one has no price.
std::string MoneyWords(const ServingEstimate& a, const ServingEstimate& b) {
  if (!a.cost || !b.cost) return "";
  return absl::StrCat(UsdWords(a.cost->usd_per_hour), " an hour against ", UsdWords(b.cost->usd_per_hour));
}

std::string DensityWords(const ServingEstimate& a, const ServingEstimate& b) {
  return absl::StrCat(NumberWords(a.throughput.output_tokens_per_second_per_chip), " tokens a second and chip against ",
                      NumberWords(b.throughput.output_tokens_per_second_per_chip));
}

}  // namespace

std::string ServingReason(Objective objective, const RankedProposal& first, const RankedProposal& next) {
  const ServingEstimate& a = first.proposal.estimate;
  const ServingEstimate& b = next.proposal.estimate;
  const std::string money = MoneyWords(a, b);
  std::string words;
  switch (objective) {
    case Objective::kMinCost: words = money.empty() ? "with a public price" : money; break;
    case Objective::kMinChips: words = ChipWords(a, b); break;
    case Objective::kMaxThroughputPerChip: words = DensityWords(a, b); break;
    case Objective::kMinStepTime:
    case Objective::kMinTimeToTrain:
      return absl::StrCat(TokenWords(a, b), "; ", money.empty() ? ChipWords(a, b) : money, ".");
  }
  const bool is_tie = first.rank.key == next.rank.key;
  if (!is_tie || next.rank.seconds >= std::numeric_limits<double>::max()) {
    return absl::StrCat(words, "; ", TokenWords(a, b), ".");
  }
  return absl::StrCat(words, "; a request takes ", SecondsWords(first.rank.seconds), " against ",
                      SecondsWords(next.rank.seconds), " in the mean.");
}

}  // namespace sliceplan::planner
