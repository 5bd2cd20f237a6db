#include "server/planner/serving/estimate_serving.h"
#include "server/planner/budget.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/planner/cost.h"
#include "server/planner/serving/batch_point.h"
#include "server/planner/serving/frontier.h"
#include "server/planner/serving/load_result.h"
#include "server/planner/serving/mean_intervals.h"
#include "server/planner/serving/plan_choice.h"
#include "server/planner/serving/pool_system.h"
#include "server/planner/serving/replica_plan.h"
#include "server/planner/serving/serving_advice.h"
#include "server/planner/serving/serving_fix.h"
#include "server/planner/serving/serving_limits.h"
#include "server/planner/serving/serving_money.h"
#include "server/planner/serving/serving_outcome.h"
#include "server/planner/words.h"

namespace sliceplan::planner {
namespace {

// A pool of the job with its plan.
struct Pool {
  std::unique_ptr<ReplicaPlan> plan;
  PlannedPool planned;
};

class Estimator {
 public:
  Estimator(const ServingJob& job, MappingCache& mappings, const std::function<bool()>& cancelled,
            ReplicaTrials* trials, bool only_judges = false)
      : job_(job),
        mappings_(mappings),
        cancelled_(cancelled),
        trials_(trials != nullptr ? *trials : own_trials_),
        only_judges_(only_judges) {}

  ServingAnswer Run() {
    CheckPools(job_, answer_.violations);
    if (!answer_.violations.empty() || !PlanPools()) return std::move(answer_);
    FillShape();
    if (!FillMemory()) return std::move(answer_);
    RunLoad();
    if (answer_.cancelled) return std::move(answer_);
    FillPasses();
    FillMoney();
    FillFrontier();
    JudgeTargets(job_, main().max_batch_size, Floor(), queueing_share_, answer_.estimate);
    if (only_judges_) return std::move(answer_);
    if (job_.workload.load == ServingLoadKind::kRate && pools_.size() == 1) {
      const std::optional<int64_t> count = ReplicasFor(job_, main(), trials_, cancelled_, answer_.cancelled);
      if (count) SuggestReplicas(job_, *count, estimate());
    }
    if (job_.mode == EstimationMode::kCalibrated) {
      AddMeanIntervals(*main().plan->pool().efficiency, job_.workload.load, place_wait_seconds_, answer_.estimate);
    }
    AddServingAdvice(job_, *main().plan, main().max_batch_size, mappings_, answer_.estimate);
    return std::move(answer_);
  }

 private:
  ServingEstimate& estimate() { return answer_.estimate; }
  const PlannedPool& main() const { return pools_[main_].planned; }
  const PlannedPool* prefill() const { return prefill_ ? &pools_[*prefill_].planned : nullptr; }

  // False: the answer is complete without times.
  bool PlanPools() {
    for (size_t i = 0; i < job_.pools.size(); ++i) {
      const ServingPool& pool = job_.pools[i];
      const std::string prefix = job_.pools_given ? absl::StrCat("pools[", i, "].") : "";
      PoolEstimate filled;
      filled.replica_count = pool.replica_count;
      Pool planned;
      if (pool.parallelism) {
        std::vector<std::string> notes;
        CheckServingPlan(job_, pool, *pool.parallelism, prefix, answer_.violations, notes, &filled.paddings);
        if (!answer_.violations.empty()) continue;
        auto made = ReplicaPlan::Make(job_, pool, *pool.parallelism, NominalBatch(job_.workload), mappings_);
        if (!made.ok()) {
          answer_.violations.push_back(ViolationOf(made.status(), prefix));
          continue;
        }
        planned.plan = *std::move(made);
      } else {
        PlanChoice choice = ChoosePlan(job_, pool, mappings_, cancelled_);
        answer_.cancelled |= choice.cancelled;
        if (choice.cancelled) return false;
        if (!choice.figure_missing.ok()) {
          answer_.violations.push_back(ViolationOf(choice.figure_missing, prefix));
          continue;
        }
        if (choice.plan == nullptr) {
          SetNoLegalPlan(pool, estimate());
          return false;
        }
        planned.plan = std::move(choice.plan);
        if (job_.pools.size() == 1) trials_ = std::move(choice.trials);
        std::vector<std::string> notes;
        std::vector<hardware::Violation> none;
        CheckServingPlan(job_, pool, planned.plan->parallelism(), prefix, none, notes, &filled.paddings);
        estimate().assumptions.push_back(absl::StrCat(
            prefix, "parallelism: the best of ", CountWords(choice.considered_count), " ways to spread a replica"));
        for (ServingPoint& point : choice.frontier) frontier_.push_back(std::move(point));
      }
      filled.parallelism = planned.plan->parallelism();
      filled.mapping = PlacementsOf(*planned.plan);
      planned.planned.plan = planned.plan.get();
      planned.planned.replica_count = pool.replica_count;
      planned.planned.max_batch_size = planned.plan->memory().MaxBatch(FullContext(job_.workload));
      if (pool.role == PoolRole::kPrefill) {
        prefill_ = i;
      } else if (!has_main_) {
        main_ = i;
        has_main_ = true;
      }
      estimate().chip_count += pool.slice.TotalChips() * pool.replica_count;
      estimate().pools.push_back(std::move(filled));
      pools_.push_back(std::move(planned));
    }
    return answer_.violations.empty();
  }

  void FillShape() {
    const ReplicaPlan& plan = *main().plan;
    FillLoadUsed(job_, plan, estimate());
    estimate().max_batch_size = static_cast<int32_t>(main().max_batch_size);
    estimate().max_context_tokens = plan.memory().MaxContext();
    const int32_t limit = job_.model.architecture->max_position_count;
    if (limit > 0 && FullContext(job_.workload) > limit) {
      estimate().warnings.push_back(absl::StrCat("Prompt and output together are ",
                                                 CountWords(FullContext(job_.workload)),
                                                 " tokens; the model's config "
                                                 "allows ",
                                                 CountWords(limit), "."));
    }
  }

  void SetMemory(size_t pool, int64_t batch_size) {
    const ReplicaMemory& memory = pools_[pool].plan->memory();
    PoolEstimate& filled = estimate().pools[pool];
    filled.memory = memory.Of(batch_size, FullContext(job_.workload));
    memory.Describe(filled.memory);
    filled.stages = memory.Stages(batch_size, FullContext(job_.workload));
    if (pool == main_) estimate().memory = filled.memory;
  }

  // False: the load does not fit.
  bool FillMemory() {
    const int64_t asked = job_.workload.load == ServingLoadKind::kBatch ? job_.workload.batch_size : 1;
    for (size_t i = 0; i < pools_.size(); ++i) {
      const bool decodes = job_.pools[i].role != PoolRole::kPrefill;
      SetMemory(i, decodes ? asked : 1);
    }
    for (size_t i = 0; i < pools_.size(); ++i) {
      const bool decodes = job_.pools[i].role != PoolRole::kPrefill;
      if (pools_[i].planned.max_batch_size >= (decodes ? asked : 1)) continue;
      estimate().batch_size = static_cast<int32_t>(asked);
      FillPassesAt(asked);
      estimate().memory = estimate().pools[i].memory;
      SetOutOfMemory(job_, *pools_[i].plan, decodes ? asked : 1, mappings_, estimate());
      return false;
    }
    return true;
  }

  void RunLoad() {
    switch (job_.workload.load) {
      case ServingLoadKind::kLargestBatch: {
        const int64_t most = main().max_batch_size;
        const int64_t within = job_.slo.Any() ? LargestBatchWithin(job_, *main().plan, most) : most;
        RunBatch(std::max<int64_t>(1, within));
        break;
      }
      case ServingLoadKind::kBatch: RunBatch(job_.workload.batch_size); break;
      case ServingLoadKind::kConcurrency:
      case ServingLoadKind::kRate: RunSystem(); break;
    }
  }

  // Of the whole system.
  double Saturation() const {
    if (prefill_) return SustainedRate(job_, main(), prefill());
    double rate = 0;
    for (const Pool& pool : pools_) rate += SustainedRate(job_, pool.planned);
    return rate;
  }

  // Everybody starts together: every request takes the same time.
  void RunBatch(int64_t batch_size) {
    estimate().batch_size = static_cast<int32_t>(batch_size);
    ServingThroughput& throughput = estimate().throughput;
    BatchPoint first;
    for (size_t i = 0; i < pools_.size(); ++i) {
      if (job_.pools[i].role == PoolRole::kPrefill) continue;
      const BatchPoint point = PointOf(job_, *pools_[i].plan, std::min(batch_size, pools_[i].planned.max_batch_size));
      const double count = static_cast<double>(pools_[i].planned.replica_count);
      throughput.requests_per_second += count * point.requests_per_second;
      if (i == main_) first = point;
      SetMemory(i, point.batch_size);
    }
    if (prefill_) {
      const CacheTransfer transfer = TransferOf(job_, *prefill()->plan, *main().plan);
      first.ttft_seconds = prefill()->plan->PrefillSeconds(1) + transfer.seconds;
      first.end_to_end_seconds += first.ttft_seconds - first.tpot_seconds;
    }
    const double output = job_.workload.output.Mean();
    SetThroughput(throughput.requests_per_second);
    // Batch after batch is a way to serve, so what one does can be sustained.
    const double sustained = throughput.requests_per_second;
    throughput.saturation_requests_per_second = DecodesAlone() ? sustained : std::max(sustained, Saturation());
    if (job_.slo.Any()) {
      throughput.goodput_requests_per_second = Meets(first, job_.slo) ? throughput.requests_per_second : 0;
    }
    const auto same = [](double value) { return Latency{value, value, value, value}; };
    estimate().ttft = same(first.ttft_seconds);
    estimate().tpot = same(first.tpot_seconds);
    estimate().inter_token_latency = same(first.tpot_seconds);
    estimate().end_to_end = same(first.end_to_end_seconds);
    estimate().normalized_time_per_output_token = same(first.end_to_end_seconds / output);
  }

  void SetThroughput(double requests_per_second) {
    ServingThroughput& throughput = estimate().throughput;
    throughput.requests_per_second = requests_per_second;
    throughput.output_tokens_per_second = requests_per_second * job_.workload.output.Mean();
    throughput.input_tokens_per_second = requests_per_second * job_.workload.prompt.Mean();
    throughput.output_tokens_per_second_per_chip =
        throughput.output_tokens_per_second / static_cast<double>(estimate().chip_count);
  }

  // Users or arrivals: by replay.
  void RunSystem() {
    ServingThroughput& throughput = estimate().throughput;
    const double saturation = Saturation();
    throughput.saturation_requests_per_second = saturation;
    if (job_.workload.load == ServingLoadKind::kRate && job_.workload.requests_per_second > saturation) {
      estimate().batch_size = static_cast<int32_t>(main().max_batch_size);
      SetThroughput(saturation);
      SetMemory(main_, estimate().batch_size);
      SetUnstable(job_, saturation, estimate());
      return;
    }
    SystemResult all;
    LoadMixture mixture;
    double batch = 0;
    for (size_t i = 0; i < pools_.size(); ++i) {
      if (job_.pools[i].role == PoolRole::kPrefill) continue;
      const PlannedPool& pool = pools_[i].planned;
      const double own = SustainedRate(job_, pool);
      const double share = DecodeShare(own);
      if (share <= 0) continue;
      SystemResult result = pools_.size() == 1 ? trials_.Result(job_, pool, cancelled_)
                                               : ReplayLoad(job_, pool, prefill(), share, cancelled_);
      if (result.cancelled) {
        answer_.cancelled = true;
        return;
      }
      if (pools_.size() > 1 && job_.mode == EstimationMode::kCalibrated)
        Calibrate(job_, pool, prefill(), share, result);
      const bool is_all = pools_.size() == 1 || prefill_;
      if (is_all) {
        all = result;
      } else {
        mixture.Add(result);
      }
      SetBusy(i, share, result);
      if (i == main_) batch = result.mean_batch_size;
    }
    if (pools_.size() > 1 && !prefill_) all = mixture.All();
    estimate().batch_size =
        static_cast<int32_t>(std::clamp<int64_t>(std::llround(batch), 1, std::max<int64_t>(1, main().max_batch_size)));
    SetMemory(main_, estimate().batch_size);
    if (all.unstable) {
      throughput.saturation_requests_per_second = std::min(saturation, all.requests_per_second);
      SetThroughput(throughput.saturation_requests_per_second);
      SetUnstable(job_, throughput.saturation_requests_per_second, estimate());
      return;
    }
    const bool at_rate = job_.workload.load == ServingLoadKind::kRate;
    // What arrives is served: a replay of so many requests only comes near it.
    SetThroughput(at_rate ? job_.workload.requests_per_second : all.requests_per_second);
    if (job_.slo.Any() && all.requests_per_second > 0) {
      throughput.goodput_requests_per_second =
          all.goodput_requests_per_second / all.requests_per_second * throughput.requests_per_second;
    }
    estimate().ttft = all.ttft;
    estimate().tpot = all.tpot;
    estimate().inter_token_latency = all.inter_token;
    estimate().end_to_end = all.end_to_end;
    estimate().normalized_time_per_output_token = all.normalized;
    queueing_share_ = all.queueing_share;
    place_wait_seconds_ = all.place_wait_seconds;
    if (all.preemptions > 0) {
      estimate().warnings.push_back(absl::StrCat("The cache runs full: ", CountWords(all.preemptions),
                                                 " times in the replay a sequence was thrown out and computed again."));
    }
  }

  // At a rate: of what the pool sustains. Else the share of time in which it works at all.
  void SetBusy(size_t index, double share, const SystemResult& result) {
    const auto busy = [&](const PlannedPool& pool, double otherwise) {
      if (job_.workload.load != ServingLoadKind::kRate) return otherwise;
      return std::min(1.0, share * job_.workload.requests_per_second / SustainedRate(job_, pool));
    };
    estimate().pools[index].busy_ratio = busy(pools_[index].planned, result.busy_ratio);
    if (prefill_) estimate().pools[*prefill_].busy_ratio = busy(*prefill(), result.prefill_busy_ratio);
  }

  double DecodeShare(double own) const {
    double total = 0;
    for (const Pool& pool : pools_) {
      if (pool.plan->pool().role == PoolRole::kPrefill) continue;
      total += SustainedRate(job_, pool.planned);
    }
    return total > 0 ? own / total : 0;
  }

  void FillPasses() { FillPassesAt(estimate().batch_size); }
  void FillPassesAt(int64_t batch_size) {
    const ReplicaPlan& decode = *main().plan;
    FillLimits(job_, decode, batch_size, estimate());
    estimate().decode = decode.timer().Decode(batch_size, DecodeContext(job_.workload), decode.tokens_per_sequence());
    const ReplicaPlan& reader = prefill_ ? *prefill()->plan : decode;
    const double prompt = job_.workload.prompt.Mean();
    estimate().prefill = reader.timer().Prefill(1, prompt, prompt * job_.workload.prefix_cache_hit_ratio,
                                                reader.policy().prefill_chunk_tokens.value_or(0));
    if (prefill_) FillDisaggregation();
  }

  void FillDisaggregation() {
    Disaggregation apart;
    const CacheTransfer transfer = TransferOf(job_, *prefill()->plan, *main().plan);
    apart.kv_transfer_seconds = transfer.seconds;
    apart.kv_transfer_bytes = static_cast<int64_t>(transfer.bytes);
    apart.tier = transfer.tier;
    const double decode = SustainedRate(job_, main()) / static_cast<double>(main().replica_count);
    const double prefill_rate = SustainedRate(job_, *prefill()) / static_cast<double>(prefill()->replica_count);
    if (prefill_rate > 0) apart.prefill_per_decode_ratio = decode / prefill_rate;
    if (!transfer.rate_is_known) {
      estimate().assumptions.push_back(
          "pools: the rate of the network between them is not public; handing over the cache counts as free");
    }
    estimate().disaggregation = apart;
  }

  void FillMoney() {
    const std::optional<double> usd_per_hour = UsdPerHour(job_);
    ServingThroughput& throughput = estimate().throughput;
    const double output = std::max(throughput.output_tokens_per_second, 1e-12);
    if (usd_per_hour) {
      BilledTokens tokens;
      tokens.output_tokens_per_second = throughput.output_tokens_per_second;
      tokens.cached_tokens_per_second = throughput.input_tokens_per_second * job_.workload.prefix_cache_hit_ratio;
      tokens.input_tokens_per_second = throughput.input_tokens_per_second - tokens.cached_tokens_per_second;
      tokens.prefill_share = PrefillShare(*usd_per_hour);
      ServingCost cost = CostOf(job_.cost_split, *usd_per_hour, tokens);
      bool same = true;
      for (const ServingPool& pool : job_.pools) same &= pool.usd_per_chip_hour == job_.pools[0].usd_per_chip_hour;
      if (same) cost.usd_per_chip_hour = job_.pools[0].usd_per_chip_hour;
      estimate().cost = cost;
    }
    double watts = 0;
    for (const ServingPool& pool : job_.pools) {
      const std::optional<double> one = WattsOf(pool.slice.accelerator);
      if (!one) return;
      watts += *one * static_cast<double>(pool.slice.TotalChips()) * pool.replica_count;
    }
    estimate().kilowatt_hours_per_million_output_tokens = watts / output * kTokensPerMillion / kJoulesPerKilowattHour;
  }

  // ROOFLINE counts throughput of a batch as the book does: prompts are read on other chips, which are not in the bill.
  bool DecodesAlone() const {
    const ServingLoadKind load = job_.workload.load;
    return job_.mode == EstimationMode::kRoofline &&
           (load == ServingLoadKind::kBatch || load == ServingLoadKind::kLargestBatch);
  }

  // By time where one pool does both; by their bills where two share the work.
  double PrefillShare(double usd_per_hour) const {
    if (prefill_) {
      const ServingPool& pool = job_.pools[*prefill_];
      return *pool.usd_per_chip_hour * static_cast<double>(pool.slice.TotalChips()) * pool.replica_count /
             std::max(usd_per_hour, 1e-12);
    }
    if (main().plan->pool().role == PoolRole::kDecode || DecodesAlone()) return 0;
    return PointOf(job_, *main().plan, std::max(1, answer_.estimate.batch_size)).prefill_share;
  }

  void FillFrontier() {
    AddBatches(job_, *main().plan, main().max_batch_size, frontier_);
    estimate().frontier = ParetoOf(std::move(frontier_));
    estimate().best_point = BestPoint(job_, estimate().frontier);
  }

  // The fastest that these chips can be, whatever the load.
  BatchPoint Floor() const {
    BatchPoint floor = PointOf(job_, *main().plan, 1);
    if (prefill_) {
      floor.ttft_seconds =
          prefill()->plan->PrefillSeconds(1) + TransferOf(job_, *prefill()->plan, *main().plan).seconds;
    }
    return floor;
  }

  const ServingJob& job_;
  MappingCache& mappings_;
  const std::function<bool()>& cancelled_;
  ReplicaTrials own_trials_;
  ReplicaTrials& trials_;
  const bool only_judges_;  // whether targets are met, without counts of replicas and advice
  ServingAnswer answer_;
  std::vector<Pool> pools_;
  std::vector<ServingPoint> frontier_;
  size_t main_ = 0;
  bool has_main_ = false;
  std::optional<size_t> prefill_;
  double queueing_share_ = 0;
  double place_wait_seconds_ = 0;
};

}  // namespace

ServingAnswer EstimateServing(const ServingJob& job, MappingCache& mappings, const std::function<bool()>& cancelled,
                              ReplicaTrials* trials) {
  return Estimator(job, mappings, cancelled, trials).Run();
}

ServingAnswer EstimateServingWithFix(const ServingJob& job, MappingCache& mappings,
                                     const std::function<bool()>& cancelled, const std::function<bool()>& enough) {
  ServingAnswer answer = EstimateServing(job, mappings, cancelled);
  if (answer.cancelled || !answer.violations.empty()) return answer;
  ServingEstimate& estimate = answer.estimate;
  if (estimate.outcome != ServingOutcome::kMissesSlo && estimate.outcome != ServingOutcome::kUnstable) return answer;
  bool cut = false;
  const std::function<bool()> stop = [&] {
    if (cancelled && cancelled()) answer.cancelled = true;
    cut = cut || answer.cancelled || (enough && enough());
    return cut;
  };
  std::optional<Fix> fix = ServingFix(job, estimate, [&](const ServingJob& changed) -> std::optional<ServingEstimate> {
    if (stop()) return std::nullopt;
    ServingAnswer trial = Estimator(changed, mappings, stop, nullptr, /*only_judges=*/true).Run();
    if (trial.cancelled || !trial.violations.empty()) return std::nullopt;
    return std::move(trial.estimate);
  });
  estimate.smallest_fix = cut ? std::nullopt : std::move(fix);
  return answer;
}

}  // namespace sliceplan::planner
