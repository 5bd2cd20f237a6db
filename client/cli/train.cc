#include "client/cli/train.h"

#include "client/cli/job_flags.h"
#include "client/cli/model_flag.h"
#include "client/cli/plan_flags.h"
#include "client/cli/slice_flags.h"
#include "client/cli/workload_flags.h"

namespace sliceplan::cli {
void TrainQuestion::AddFlags(Flags& flags) {
  v1::EstimateTrainingRequest* const request = this->request();
  const auto workload = [request] { return request->mutable_workload(); };

  flags.Group("Model and chips");
  AddModelFlag(flags, "--model", [this] { return request_.mutable_model(); });
  AddSliceFlags(flags, [request] { return request->mutable_slice(); });
  flags.Require("slice");

  flags.Group("Job");
  AddJobFlags(flags, "workload", workload);
  flags.Field("--deadline", "job_deadline_seconds", "latest end of the training, from its start: 30d");
  flags.Field("--budget", "budget_usd", "most that the training may cost, US dollars: 5M");

  flags.Group("Plan");
  AddParallelismFlags(flags, [request] { return request->mutable_parallelism(); });
  flags.Field("--accumulation", "workload.gradient_accumulation",
              "passes whose gradients are added up; default: the least that fits");

  AddArithmeticFlags(flags, "workload", workload);

  AddModeFlags(flags);
  flags.Field("--assumed-mfu", "assumed_mfu_ratio", "skip the time model: step times follow from this MFU");
  AddPricingFlags(flags);

  AddReliabilityFlags(flags);
}

void TrainQuestion::Print(const Flags& flags, Report& report) const {
  PrintTraining(response_, ModelLabel(request_.model(), flags), flags, report);
}

}  // namespace sliceplan::cli
