// sliceplan op matmul|attention|elementwise: AnalyzeOperation.
#ifndef SLICEPLAN_CLIENT_CLI_OPERATION_H_
#define SLICEPLAN_CLIENT_CLI_OPERATION_H_

#include <string>

#include "client/cli/question.h"
#include "proto/sliceplan/v1/operation.pb.h"

namespace sliceplan::cli {

class OperationQuestion : public TypedQuestion<v1::AnalyzeOperationRequest, v1::AnalyzeOperationResponse> {
 public:
  enum class Kind { kMatmul, kAttention, kElementwise };

  explicit OperationQuestion(Kind kind) : kind_(kind) {}

  std::string method() const override { return "sliceplan.v1.AnalysisService/AnalyzeOperation"; }
  void AddFlags(Flags& flags) override;
  void Print(const Flags& flags, Report& report) const override;

 private:
  const Kind kind_;
};

}  // namespace sliceplan::cli

#endif  // SLICEPLAN_CLIENT_CLI_OPERATION_H_
