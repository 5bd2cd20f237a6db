// sliceplan train: EstimateTraining.
#ifndef SLICEPLAN_CLIENT_CLI_TRAIN_H_
#define SLICEPLAN_CLIENT_CLI_TRAIN_H_

#include <string>

#include "client/cli/question.h"
#include "proto/sliceplan/v1/training.pb.h"

namespace sliceplan::cli {

class TrainQuestion : public TypedQuestion<v1::EstimateTrainingRequest, v1::EstimateTrainingResponse> {
 public:
  std::string method() const override { return "sliceplan.v1.PlannerService/EstimateTraining"; }
  void AddFlags(Flags& flags) override;
  void Print(const Flags& flags, Report& report) const override;
};

// The reply for people; `model` names what was asked about.
void PrintTraining(const v1::EstimateTrainingResponse& response, const std::string& model, const Flags& flags,
                   Report& report);

// Degrees, schedule, accumulation, remat and optimizer of the plan, in a line.
std::string PlanText(const v1::TrainingEstimate& estimate);

}  // namespace sliceplan::cli

#endif  // SLICEPLAN_CLIENT_CLI_TRAIN_H_
