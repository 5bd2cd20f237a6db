// sliceplan serve: EstimateServing.
#ifndef SLICEPLAN_CLIENT_CLI_SERVE_H_
#define SLICEPLAN_CLIENT_CLI_SERVE_H_

#include <optional>
#include <string>

#include "client/cli/question.h"
#include "proto/sliceplan/v1/serving.pb.h"

namespace sliceplan::cli {

class ServeQuestion : public TypedQuestion<v1::EstimateServingRequest, v1::EstimateServingResponse> {
 public:
  std::string method() const override { return "sliceplan.v1.PlannerService/EstimateServing"; }
  void AddFlags(Flags& flags) override;
  // Puts the replicas that flags describe one by one into pools, where `slice` alone cannot say it.
  google::rpc::Status Complete(Backend& backend) override;
  std::string CsvHelp() const override { return "the frontier"; }
  std::string Csv() const override;
  void Print(const Flags& flags, Report& report) const override;

 private:
  void AddReplicaFlags(Flags& flags);
  // What is wrong with the replicas, all flags together; empty when nothing is.
  std::string ReplicaProblem() const;
  void AddPool(v1::Pool pool, const std::string& prefix);

  Flags* flags_ = nullptr;
  // One request of each, whose pools are made of them.
  std::optional<v1::Pool> prefill_;
  std::optional<v1::Pool> decode_;
  v1::Pool only_;  // role and replicas of --slice
};

// The reply for people; `model` names what was asked about.
void PrintServing(const v1::EstimateServingResponse& response, const std::string& model, const Flags& flags,
                  Report& report);

// Load, latencies, throughput, cost, what binds and the plan, a row for each.
void PrintServingSummary(const v1::ServingEstimate& estimate, Report& report);

// The frontier, a line for each point, with a heading.
std::string FrontierCsv(const v1::ServingEstimate& estimate);

}  // namespace sliceplan::cli

#endif  // SLICEPLAN_CLIENT_CLI_SERVE_H_
