// XPK: the command that starts the job. Options as in AI-Hypercomputer/xpk src/xpk/parser/workload.py (2026).
#include <string>

#include "absl/strings/str_cat.h"
#include "server/planner/render/render_words.h"

namespace sliceplan::planner {
namespace {

// XPK refuses longer names; of slices cut out of larger ones, 28 is the limit.
constexpr size_t kMaxNameSize = 28;

absl::string_view CapacityOption(hardware::PriceModel model) {
  switch (model) {
    case hardware::PriceModel::kSpot: return "--spot";
    case hardware::PriceModel::kFlexStart: return "--flex";
    case hardware::PriceModel::kCommitted1Y:
    case hardware::PriceModel::kCommitted3Y:
    case hardware::PriceModel::kCalendar: return "--reservation=\"${YOUR_RESERVATION:?}\"";
    case hardware::PriceModel::kOnDemand: return "--on-demand";
  }
  return "--on-demand";
}

}  // namespace

absl::StatusOr<std::string> RenderXpk(const RenderInput& input) {
  if (input.names.xpk_device_type.empty()) {
    return CannotExpress(RenderTarget::kXpk, "no XPK device type of the slice is known");
  }
  const std::string device = PlainWord(input.names.xpk_device_type);
  std::string text = absl::StrCat(
      PlanComment(input), "# Set the variables that begin with YOUR_ first.\nxpk workload create \\\n  --workload=",
      DnsLabel(input.model_name, kMaxNameSize), " \\\n  --cluster=\"${YOUR_CLUSTER:?}\" \\\n");
  if (IsTorus(input)) {
    absl::StrAppend(&text, "  --tpu-type=", device, " \\\n  --num-slices=", input.slice->slice_count, " \\\n");
  } else {
    absl::StrAppend(&text, "  --device-type=", device,
                    " \\\n  --num-nodes=", HostCount(input) * input.slice->slice_count, " \\\n");
  }
  if (!input.names.zone.empty()) absl::StrAppend(&text, "  --zone=", PlainWord(input.names.zone), " \\\n");
  absl::StrAppend(&text, "  ", CapacityOption(input.names.price_model),
                  " \\\n  --docker-image=\"${YOUR_IMAGE:?}\" \\\n  --command=\"${YOUR_COMMAND:?}\"\n");
  return text;
}

}  // namespace sliceplan::planner
