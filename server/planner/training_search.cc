#include "server/planner/training_search.h"

#include <algorithm>
#include <cstdint>
#include <tuple>

#include "server/planner/legality.h"

namespace sliceplan::planner {
namespace {

constexpr int64_t kLargestTensorDegree = 64;
constexpr int64_t kLargestContextDegree = 64;
constexpr int64_t kLargestPipelineDegree = 64;

std::vector<int64_t> DivisorsUpTo(int64_t number, int64_t limit) {
  std::vector<int64_t> divisors;
  for (int64_t d = 1; d <= std::min(number, limit); ++d) {
    if (number % d == 0) divisors.push_back(d);
  }
  return divisors;
}

int AxisCount(const Parallelism& parallelism) {
  int count = 0;
  for (LogicalAxis axis : kLogicalAxes) count += parallelism.Degree(axis) > 1 ? 1 : 0;
  return count;
}

auto Simplicity(const Parallelism& parallelism) {
  return std::make_tuple(AxisCount(parallelism), parallelism.Degree(LogicalAxis::kPipeline),
                         parallelism.Degree(LogicalAxis::kExpert), parallelism.Degree(LogicalAxis::kContext),
                         parallelism.Degree(LogicalAxis::kTensor), parallelism.Degree(LogicalAxis::kData));
}

// Ways to split what the other axes leave between FSDP (inside) and data (outside).
std::vector<int64_t> DataDegrees(const hardware::Slice& slice, int64_t rest) {
  std::vector<int64_t> degrees = {1};
  if (rest == 1) return degrees;
  degrees.push_back(rest);
  if (slice.accelerator.fabric == hardware::FabricKind::kSwitched) {
    // FSDP inside a scale-up domain, data across domains (hybrid sharding).
    for (int64_t fsdp = slice.domain_size; fsdp > 1; fsdp /= 2) {
      if (fsdp < rest && rest % fsdp == 0) degrees.push_back(rest / fsdp);
    }
  }
  return degrees;
}

}  // namespace

std::vector<Parallelism> EnumeratePlans(const TrainingJob& job) {
  const ModelDivisors divisors = DivisorsOf(*job.model);
  const hardware::Slice& slice = job.slice;
  const LegalityOptions options = {job.allow_idle_chips, job.allow_padding};
  int64_t largest_expert_count = 1;
  for (int32_t count : divisors.expert_counts) largest_expert_count = std::max<int64_t>(largest_expert_count, count);

  std::vector<Parallelism> plans;
  const auto add = [&](Parallelism plan) {
    if (IsLegal(divisors, slice, job.workload, plan, options)) plans.push_back(std::move(plan));
  };
  const int64_t chips = slice.chip_count;
  for (int64_t tensor : DivisorsUpTo(chips, kLargestTensorDegree)) {
    for (int64_t context : DivisorsUpTo(chips / tensor, kLargestContextDegree)) {
      for (int64_t expert : DivisorsUpTo(chips / tensor / context, largest_expert_count)) {
        for (int64_t pipeline :
             DivisorsUpTo(chips / tensor / context / expert, std::min(kLargestPipelineDegree, divisors.layer_count))) {
          const int64_t rest = chips / tensor / context / expert / pipeline;
          for (int64_t data : DataDegrees(slice, rest)) {
            Parallelism plan;
            plan.ici[LogicalAxis::kTensor] = static_cast<int32_t>(tensor);
            plan.ici[LogicalAxis::kContext] = static_cast<int32_t>(context);
            plan.ici[LogicalAxis::kExpert] = static_cast<int32_t>(expert);
            plan.ici[LogicalAxis::kPipeline] = static_cast<int32_t>(pipeline);
            plan.ici[LogicalAxis::kData] = static_cast<int32_t>(data);
            plan.ici[LogicalAxis::kFsdp] = static_cast<int32_t>(rest / data);
            // Sharding the optimizer state over data costs nothing: the all-reduce is a reduce-scatter and a gather.
            if (data > 1 || slice.slice_count > 1) plan.data_zero_stage = ZeroStage::k1;
            if (slice.slice_count == 1) {
              add(plan);
              continue;
            }
            for (LogicalAxis between : {LogicalAxis::kData, LogicalAxis::kFsdp, LogicalAxis::kPipeline}) {
              Parallelism joined = plan;
              joined.dcn[between] = slice.slice_count;
              add(joined);
            }
          }
        }
      }
    }
  }
  std::stable_sort(plans.begin(), plans.end(),
                   [](const Parallelism& a, const Parallelism& b) { return Simplicity(a) < Simplicity(b); });
  return plans;
}

}  // namespace sliceplan::planner
