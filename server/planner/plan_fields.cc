#include "server/planner/plan_fields.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace sliceplan::planner {
namespace {

constexpr absl::string_view kPrefix = "parallelism.";

absl::string_view ScheduleField(PipelineSchedule schedule) {
  switch (schedule) {
    case PipelineSchedule::kGpipe: return "PIPELINE_SCHEDULE_GPIPE";
    case PipelineSchedule::kOneFOneB: return "PIPELINE_SCHEDULE_ONE_F_ONE_B";
    case PipelineSchedule::kInterleaved1F1B: return "PIPELINE_SCHEDULE_INTERLEAVED_1F1B";
    case PipelineSchedule::kZeroBubble: return "PIPELINE_SCHEDULE_ZERO_BUBBLE";
  }
  return "";
}

std::vector<FieldChange> FieldsOf(const Parallelism& plan) {
  std::vector<FieldChange> fields;
  const auto add = [&](absl::string_view field, std::string value) {
    fields.push_back({absl::StrCat(kPrefix, field), std::move(value)});
  };
  for (const LogicalAxis axis : kLogicalAxes) {
    if (plan.ici[axis] > 1) add(absl::StrCat("ici.", LogicalAxisName(axis)), absl::StrCat(plan.ici[axis]));
  }
  for (const LogicalAxis axis : kLogicalAxes) {
    if (plan.dcn[axis] > 1) add(absl::StrCat("dcn.", LogicalAxisName(axis)), absl::StrCat(plan.dcn[axis]));
  }
  if (plan.sequence_parallel != Parallelism().sequence_parallel) {
    add("sequence_parallel", plan.sequence_parallel ? "true" : "false");
  }
  if (plan.data_zero_stage != ZeroStage::k0) {
    add("data_zero_stage", absl::StrCat("ZERO_STAGE_", static_cast<int>(plan.data_zero_stage)));
  }
  if (plan.ici[LogicalAxis::kPipeline] > 1 || plan.dcn[LogicalAxis::kPipeline] > 1) {
    add("schedule", std::string(ScheduleField(plan.schedule)));
    if (plan.virtual_stage_count > 1) add("virtual_stage_count", absl::StrCat(plan.virtual_stage_count));
    if (plan.microbatch_count > 0) add("microbatch_count", absl::StrCat(plan.microbatch_count));
  }
  return fields;
}

}  // namespace

void CompletePlan(const Parallelism& plan, std::vector<FieldChange>& changes) {
  const auto of_plan = [](const FieldChange& change) {
    return absl::StartsWith(change.field, kPrefix) && change.field != "parallelism.allow_padding" &&
           change.field != "parallelism.allow_idle_chips";
  };
  if (std::none_of(changes.begin(), changes.end(), of_plan)) return;
  std::vector<FieldChange> complete = FieldsOf(plan);
  for (FieldChange& change : changes) {
    const auto same = std::find_if(complete.begin(), complete.end(),
                                   [&](const FieldChange& field) { return field.field == change.field; });
    if (same != complete.end()) {
      same->value = std::move(change.value);
    } else {
      complete.push_back(std::move(change));
    }
  }
  changes = std::move(complete);
}

}  // namespace sliceplan::planner
