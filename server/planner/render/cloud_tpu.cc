// Cloud TPU API: the request for queued resources. Options as on cloud.google.com/tpu/docs/queued-resources and
// request-using-flex-start (2025-08).
#include <string>

#include "absl/strings/str_cat.h"
#include "server/planner/render/render_words.h"

namespace sliceplan::planner {
namespace {

constexpr RenderTarget kTarget = RenderTarget::kCloudTpu;
constexpr size_t kMaxNameSize = 40;

}  // namespace

absl::StatusOr<std::string> RenderCloudTpu(const RenderInput& input) {
  if (!IsTorus(input)) return CannotExpress(kTarget, "the slice is no TPU");
  if (input.names.accelerator_type.empty()) {
    return CannotExpress(kTarget, "the Cloud TPU API has no accelerator type for the slice");
  }
  const std::string name = DnsLabel(input.model_name, kMaxNameSize);
  const hardware::PriceModel terms = input.names.price_model;
  const bool flex = terms == hardware::PriceModel::kFlexStart;
  const bool calendar = terms == hardware::PriceModel::kCalendar;
  std::string text = absl::StrCat(PlanComment(input),
                                  "# Set the variables that begin with YOUR_ first; the runtime version is the one "
                                  "that Cloud TPU lists for this generation.\n");
  if (input.slice->twisted) {
    absl::StrAppend(&text,
                    "# Not expressed: the twisted torus; --type and --topology=", PlainWord(input.names.topology),
                    "_twisted ask for it in place of --accelerator-type.\n");
  } else if (!input.names.topology.empty()) {
    absl::StrAppend(&text, "# Topology ", PlainWord(input.names.topology), ", ", HostCount(input), " hosts a slice.\n");
  }
  absl::StrAppend(&text, flex || calendar ? "gcloud alpha" : "gcloud", " compute tpus queued-resources create ", name,
                  " \\\n");
  if (input.slice->slice_count > 1) {
    absl::StrAppend(&text, "  --node-count=", input.slice->slice_count, " \\\n  --node-prefix=", name, " \\\n");
  } else {
    absl::StrAppend(&text, "  --node-id=", name, " \\\n");
  }
  absl::StrAppend(&text, "  --accelerator-type=", PlainWord(input.names.accelerator_type),
                  " \\\n  --zone=", input.names.zone.empty() ? "\"${YOUR_ZONE:?}\"" : PlainWord(input.names.zone),
                  " \\\n");
  switch (terms) {
    case hardware::PriceModel::kSpot: absl::StrAppend(&text, "  --spot \\\n"); break;
    case hardware::PriceModel::kFlexStart:
      absl::StrAppend(&text, "  --provisioning-model=flex-start \\\n  --max-run-duration=\"${YOUR_DURATION:?}\" \\\n");
      break;
    case hardware::PriceModel::kCalendar:
      absl::StrAppend(&text,
                      "  --provisioning-model=reservation-bound \\\n  --reservation=\"${YOUR_RESERVATION:?}\" "
                      "\\\n");
      break;
    case hardware::PriceModel::kCommitted1Y:
    case hardware::PriceModel::kCommitted3Y: absl::StrAppend(&text, "  --reserved \\\n"); break;
    case hardware::PriceModel::kOnDemand: break;
  }
  absl::StrAppend(&text, "  --runtime-version=\"${YOUR_RUNTIME_VERSION:?}\"\n");
  return text;
}

}  // namespace sliceplan::planner
