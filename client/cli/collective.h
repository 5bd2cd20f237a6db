// sliceplan collective: AnalyzeCollective.
#ifndef SLICEPLAN_CLIENT_CLI_COLLECTIVE_H_
#define SLICEPLAN_CLIENT_CLI_COLLECTIVE_H_

#include <string>
#include <vector>

#include "client/cli/question.h"
#include "proto/sliceplan/v1/collective.pb.h"

namespace sliceplan::cli {

class CollectiveQuestion : public TypedQuestion<v1::AnalyzeCollectiveRequest, v1::AnalyzeCollectiveResponse> {
 public:
  std::string method() const override { return "sliceplan.v1.AnalysisService/AnalyzeCollective"; }
  void AddFlags(Flags& flags) override;
  // Whole axes need their lengths, which only the answerer knows: asks for the same collective over everything.
  google::rpc::Status Complete(Backend& backend) override;
  void Print(const Flags& flags, Report& report) const override;

 private:
  std::vector<v1::GroupPiece> pieces_;
};

}  // namespace sliceplan::cli

#endif  // SLICEPLAN_CLIENT_CLI_COLLECTIVE_H_
