// sliceplan model: DescribeModel.
#ifndef SLICEPLAN_CLIENT_CLI_DESCRIBE_H_
#define SLICEPLAN_CLIENT_CLI_DESCRIBE_H_

#include <string>

#include "client/cli/question.h"
#include "proto/sliceplan/v1/model_description.pb.h"

namespace sliceplan::cli {

class DescribeQuestion : public TypedQuestion<v1::DescribeModelRequest, v1::DescribeModelResponse> {
 public:
  std::string method() const override { return "sliceplan.v1.AnalysisService/DescribeModel"; }
  void AddFlags(Flags& flags) override;
  void Print(const Flags& flags, Report& report) const override;
};

}  // namespace sliceplan::cli

#endif  // SLICEPLAN_CLIENT_CLI_DESCRIBE_H_
