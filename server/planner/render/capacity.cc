#include "server/planner/render/capacity.h"

#include "absl/strings/str_cat.h"

namespace sliceplan::planner {

absl::StatusOr<Labels> NodeLabels(RenderTarget target, const RenderInput& input) {
  const SliceNames& names = input.names;
  Labels labels;
  if (IsTorus(input)) {
    if (names.gke_tpu_accelerator.empty() || names.topology.empty()) {
      return CannotExpress(target, "the slice has no known GKE accelerator and topology labels");
    }
    labels.emplace_back("cloud.google.com/gke-tpu-accelerator", PlainWord(names.gke_tpu_accelerator));
    labels.emplace_back("cloud.google.com/gke-tpu-topology", PlainWord(names.topology));
  } else {
    if (names.gke_accelerator.empty()) {
      return CannotExpress(target, "the machine has no known GKE accelerator label");
    }
    labels.emplace_back("cloud.google.com/gke-accelerator", PlainWord(names.gke_accelerator));
    if (!names.machine_type.empty()) {
      labels.emplace_back("node.kubernetes.io/instance-type", PlainWord(names.machine_type));
    }
  }
  switch (names.price_model) {
    case hardware::PriceModel::kSpot: labels.emplace_back("cloud.google.com/gke-spot", "true"); break;
    case hardware::PriceModel::kFlexStart: labels.emplace_back("cloud.google.com/gke-flex-start", "true"); break;
    case hardware::PriceModel::kCalendar:
      labels.emplace_back("cloud.google.com/reservation-name", "YOUR_RESERVATION");
      break;
    case hardware::PriceModel::kOnDemand:
    case hardware::PriceModel::kCommitted1Y:
    case hardware::PriceModel::kCommitted3Y: break;
  }
  if (!names.zone.empty()) labels.emplace_back("topology.kubernetes.io/zone", PlainWord(names.zone));
  return labels;
}

std::string LabelLines(const Labels& labels, absl::string_view indent) {
  std::string text;
  for (const auto& [key, value] : labels) absl::StrAppend(&text, indent, key, ": ", Quoted(value), "\n");
  return text;
}

absl::string_view ChipResource(const RenderInput& input) {
  return IsTorus(input) ? "google.com/tpu" : "nvidia.com/gpu";
}

}  // namespace sliceplan::planner
