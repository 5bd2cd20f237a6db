// sliceplan shard: ProposeSharding, for a training job, or with --serve for a serving load.
#ifndef SLICEPLAN_CLIENT_CLI_SHARD_H_
#define SLICEPLAN_CLIENT_CLI_SHARD_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "client/cli/question.h"
#include "proto/sliceplan/v1/sharding.pb.h"

namespace sliceplan::cli {

class ShardQuestion : public TypedQuestion<v1::ProposeShardingRequest, v1::ProposeShardingResponse> {
 public:
  std::string method() const override { return "sliceplan.v1.PlannerService/ProposeSharding"; }
  void AddFlags(Flags& flags) override;
  google::rpc::Status Complete(Backend& backend) override;
  google::rpc::Status Missing() const override;
  std::string Verbatim() const override;
  bool MayTakeLong() const override { return true; }
  void Print(const Flags& flags, Report& report) const override;

 private:
  void AddCandidateFlags(Flags& flags);
  void AddConstraintFlags(Flags& flags);
  void AddAnswerFlags(Flags& flags);

  // What does not belong to the job that is asked about; empty when everything does.
  std::string JobProblem() const;

  Flags* flags_ = nullptr;
  bool serves_ = false;                   // --serve
  std::optional<int32_t> slice_count_;    // of every --slice
  std::optional<v1::RenderTarget> only_;  // --emit
};

// "64..512", "..512", "64.." or "256", which is exactly so many.
absl::Status ReadChipRange(const std::string& text, v1::AcceleratorRange* range);

}  // namespace sliceplan::cli

#endif  // SLICEPLAN_CLIENT_CLI_SHARD_H_
