#include "server/planner/serving/pool_system.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace sliceplan::planner {
namespace {

constexpr double kLeastSeconds = 1e-12;
constexpr int64_t kRequests = 10'000;
// A closed loop is measured over this many requests per user, all users together at most kRequests.
constexpr int64_t kRequestsPerUser = 10;
// More users than this wait in a queue that only grows: the rest of their wait follows from Little's law.
constexpr int64_t kMostReplayedUsers = 16'384;
constexpr int64_t kMostResident = int64_t{1} << 17;
// At a rate, of a larger fleet so many engines are replayed with their part of the load: more of them hardly share
// better, and the requests of a replay would not fill them.
constexpr int64_t kReplayedFleet = 64;

Latency LatencyOf(const LatencySummary& summary) {
  return {summary.mean_seconds, summary.p50_seconds, summary.p95_seconds, summary.p99_seconds};
}

LatencyBar BarOf(const LatencyTargets& limits) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  return {limits.mean_seconds.value_or(kNone), limits.p50_seconds.value_or(kNone), limits.p95_seconds.value_or(kNone),
          limits.p99_seconds.value_or(kNone)};
}

double Lowest(const LatencyTargets& limits) {
  // A request counts as good when it keeps the strictest limit of its kind.
  double lowest = std::numeric_limits<double>::infinity();
  for (const std::optional<double>& limit :
       {limits.mean_seconds, limits.p50_seconds, limits.p95_seconds, limits.p99_seconds}) {
    if (limit) lowest = std::min(lowest, *limit);
  }
  return lowest;
}

// Groups of data ranks that step alone, each an engine of its own; a fleet too large to replay keeps them together.
int64_t GroupsOf(const PlannedPool& pool) {
  const int64_t groups = pool.plan->group_count();
  return pool.replica_count <= kMaxStationReplicas / groups ? groups : 1;
}

Station StationOf(const ServingJob& job, const PlannedPool& pool) {
  const int64_t groups = GroupsOf(pool);
  Station station;
  station.replica_count = pool.replica_count * groups;
  station.timer = groups > 1 ? static_cast<const StepTimer*>(&pool.plan->group_steps()) : &pool.plan->steps();
  EngineLimits& limits = station.limits;
  limits.max_batch_size = std::max<int64_t>(1, (pool.max_batch_size + groups - 1) / groups);
  limits.kv_block_tokens = job.workload.kv_block_tokens;
  const int64_t pool_tokens = pool.plan->memory().PoolTokens(FullContext(job.workload)) / groups;
  limits.kv_capacity_tokens = pool_tokens > 0 ? std::max(pool_tokens, limits.kv_block_tokens) : int64_t{1} << 53;
  const bool separate = pool.plan->pool().efficiency != nullptr && pool.plan->pool().efficiency->separate_prefill;
  const std::optional<int32_t>& chunk = pool.plan->policy().prefill_chunk_tokens;
  const int64_t ranks = static_cast<int64_t>(pool.plan->load().data_ranks) / groups;
  if (chunk && !separate) {
    limits.policy = BatchPolicy::kChunkedPrefill;
    // Every data rank has a budget of its own, which its sequences share with its prompts.
    limits.step_token_budget = std::max<int64_t>(1, *chunk * ranks);
    limits.max_batch_size =
        std::clamp<int64_t>(limits.step_token_budget / pool.plan->tokens_per_sequence(), 1, limits.max_batch_size);
  } else {
    limits.policy = BatchPolicy::kWholePrefill;
    // One prompt on every data rank.
    limits.step_token_budget =
        std::max<int64_t>(1, static_cast<int64_t>(std::ceil(job.workload.prompt.Mean())) * ranks);
  }
  return station;
}

ServingSystem SystemOf(const ServingJob& job, const PlannedPool& main, const PlannedPool* prefill) {
  ServingSystem system;
  system.main = StationOf(job, main);
  if (prefill != nullptr) {
    system.prefill = StationOf(job, *prefill);
    system.transfer_seconds_per_prompt = TransferOf(job, *prefill->plan, *main.plan).seconds;
  }
  return system;
}

RequestMix MixOf(const ServingJob& job, const PlannedPool& main, const PlannedPool* prefill) {
  const ServingWorkload& workload = job.workload;
  RequestMix mix;
  mix.prompt = workload.prompt;
  mix.output = workload.output;
  // Prompts of a pool that only decodes come with their caches.
  mix.prefix_cache_hit_ratio =
      main.plan->pool().role == PoolRole::kDecode && prefill == nullptr ? 1 : workload.prefix_cache_hit_ratio;
  if (workload.speculation) {
    mix.draft_tokens = workload.speculation->draft_tokens;
    mix.acceptance_ratio = workload.speculation->acceptance_ratio;
  }
  return mix;
}

// Requests per second when prompts are all that there is: as many at once as a step takes.
double PromptRate(const ServingJob& job, const PlannedPool& pool) {
  const double prompt = std::max(1.0, job.workload.prompt.Mean() * (1 - job.workload.prefix_cache_hit_ratio));
  const double chunk = pool.plan->policy().prefill_chunk_tokens.value_or(1);
  const auto at_once = static_cast<int64_t>(std::max(1.0, std::floor(chunk / prompt)) * pool.plan->load().data_ranks);
  const int64_t prompts = std::clamp<int64_t>(at_once, 1, std::max<int64_t>(1, pool.max_batch_size));
  return static_cast<double>(pool.replica_count * prompts) /
         std::max(pool.plan->PrefillSeconds(prompts), kLeastSeconds);
}

// A full batch whose data ranks read a prompt each and then go on together.
double RankedRate(const ServingJob& job, const PlannedPool& pool) {
  const auto ranks = static_cast<int64_t>(pool.plan->load().data_ranks);
  const double prompt = pool.plan->PrefillSeconds(ranks) / static_cast<double>(ranks);
  const double tokens = std::max(0.0, job.workload.output.Mean() - 1);
  const double token = pool.plan->TokenSeconds(pool.max_batch_size, DecodeContext(job.workload)) /
                       static_cast<double>(pool.max_batch_size);
  return static_cast<double>(pool.replica_count) / std::max(prompt + tokens * token, kLeastSeconds);
}

}  // namespace

double SustainedRate(const ServingJob& job, const PlannedPool& main, const PlannedPool* prefill) {
  if (main.max_batch_size < 1) return 0;
  const double sustained = SaturationOf(SystemOf(job, main, prefill), MixOf(job, main, prefill)).requests_per_second;
  const bool reads_prompts = prefill == nullptr && main.plan->pool().role == PoolRole::kBoth;
  if (!reads_prompts) return sustained;
  // The mean field has whole prompts one after the other; data ranks read theirs side by side.
  const double together = main.plan->load().expert_ranks > 1 ? RankedRate(job, main) : 0;
  return std::min(std::max(sustained, together), PromptRate(job, main));
}

double SustainedRate(const ServingJob& job, const PlannedPool& pool) {
  return pool.plan->pool().role == PoolRole::kPrefill ? PromptRate(job, pool) : SustainedRate(job, pool, nullptr);
}

MeanField MeanFieldAt(const ServingJob& job, const PlannedPool& pool, double requests_per_second) {
  PlannedPool one = pool;
  one.replica_count = 1;
  return OpenLoopMeanField(SystemOf(job, one, nullptr), MixOf(job, one, nullptr), requests_per_second,
                           job.workload.arrival_burstiness);
}

double MeanSeconds(const ServingJob& job, const PlannedPool& pool, double requests_per_second) {
  const MeanField mean = MeanFieldAt(job, pool, requests_per_second);
  return mean.is_stable ? mean.end_to_end_seconds : std::numeric_limits<double>::max();
}

std::optional<double> HandOverRate(const hardware::Slice& slice) {
  const hardware::AcceleratorSpec& accelerator = slice.accelerator;
  const bool switched = accelerator.fabric == hardware::FabricKind::kSwitched;
  const std::optional<double>& one = switched ? accelerator.network_bytes_per_second : accelerator.dcn_bytes_per_second;
  if (!one) return std::nullopt;
  return *one * static_cast<double>(slice.chip_count);
}

CacheTransfer TransferOf(const ServingJob& job, const ReplicaPlan& prefill, const ReplicaPlan& decode) {
  CacheTransfer transfer;
  transfer.bytes = prefill.memory().KvBytesPerSequence(static_cast<int64_t>(std::ceil(job.workload.prompt.Mean())));
  const std::optional<double> out = HandOverRate(prefill.pool().slice);
  const std::optional<double> in = HandOverRate(decode.pool().slice);
  transfer.tier = prefill.pool().slice.accelerator.fabric == hardware::FabricKind::kSwitched ? roofline::Tier::kScaleOut
                                                                                             : roofline::Tier::kDcn;
  transfer.rate_is_known = out && in;
  if (transfer.rate_is_known) transfer.seconds = transfer.bytes / std::min(*out, *in);
  return transfer;
}

namespace {

// Keeps part of a fleet whose smaller station has more than kReplayedFleet engines; returns which part.
double KeepPart(ServingSystem& system) {
  int64_t least = system.main.replica_count;
  if (system.prefill) least = std::min(least, system.prefill->replica_count);
  if (least <= kReplayedFleet) return 1;
  const auto all = static_cast<double>(system.main.replica_count);
  const double part = static_cast<double>(kReplayedFleet) / static_cast<double>(least);
  system.main.replica_count = std::llround(all * part);
  const double kept = static_cast<double>(system.main.replica_count) / all;
  if (system.prefill) {
    // Rounded down: a part that is too small says so, one that is too large would hide it.
    system.prefill->replica_count =
        static_cast<int64_t>(std::floor(static_cast<double>(system.prefill->replica_count) * kept + 1e-9));
  }
  return kept;
}

}  // namespace

SystemResult ReplayLoad(const ServingJob& job, const PlannedPool& main, const PlannedPool* prefill, double share,
                        const std::function<bool()>& cancelled, ReplayEnd end) {
  const ServingWorkload& workload = job.workload;
  ServingSystem system = SystemOf(job, main, prefill);
  const double part = workload.load == ServingLoadKind::kRate ? KeepPart(system) : 1;
  const RequestMix mix = MixOf(job, main, prefill);
  Load load;
  int64_t users = 0;
  ReplayOptions options;
  options.request_count = kRequests;
  if (workload.load == ServingLoadKind::kConcurrency) {
    load.kind = LoadKind::kClosedLoop;
    users = std::max<int64_t>(1, std::llround(share * workload.concurrency));
    const int64_t resident = main.replica_count * main.max_batch_size;
    load.users = std::min(users, std::clamp(2 * resident, kMostReplayedUsers, kMostResident));
    options.request_count =
        std::clamp<int64_t>(load.users * kRequestsPerUser, load.users, std::max(load.users, kRequests));
  } else {
    load.kind = LoadKind::kOpenLoop;
    load.requests_per_second = std::clamp(part * share * workload.requests_per_second, 1e-9, 1e9);
    load.arrival_burstiness = workload.arrival_burstiness;
  }
  options.limits = {Lowest(job.slo.ttft), Lowest(job.slo.tpot), Lowest(job.slo.end_to_end)};
  if (end == ReplayEnd::kWhenATargetIsMissed && load.kind == LoadKind::kOpenLoop) {
    options.bars = {BarOf(job.slo.ttft), BarOf(job.slo.tpot), BarOf(job.slo.end_to_end)};
  }
  options.keep_samples = job.pools.size() > 1 && prefill == nullptr;
  ReplayResult replayed = Replay(system, mix, load, options, cancelled);

  SystemResult result;
  result.missed = replayed.is_hopeless;
  if (result.missed) return result;
  result.cancelled = !replayed.is_complete && cancelled != nullptr && cancelled();
  result.samples = std::move(replayed.samples);
  result.ttft = LatencyOf(replayed.ttft);
  result.tpot = LatencyOf(replayed.tpot);
  result.inter_token = LatencyOf(replayed.inter_token);
  result.end_to_end = LatencyOf(replayed.end_to_end);
  result.normalized = LatencyOf(replayed.normalized_time_per_output_token);
  result.requests_per_second = replayed.requests_per_second / part;
  if (users > load.users && replayed.requests_per_second > 0) {
    const double wait = static_cast<double>(users - load.users) / replayed.requests_per_second;
    const auto add = [](double seconds, Latency& latency) {
      latency.mean_seconds += seconds;
      latency.p50_seconds += seconds;
      latency.p95_seconds += seconds;
      latency.p99_seconds += seconds;
    };
    add(wait, result.ttft);
    add(wait, result.end_to_end);
    add(wait / workload.output.Mean(), result.normalized);
  }
  result.output_tokens_per_second = replayed.output_tokens_per_second / part;
  result.input_tokens_per_second = replayed.input_tokens_per_second / part;
  result.goodput_requests_per_second = replayed.goodput_requests_per_second / part;
  result.mean_batch_size = replayed.mean_batch_size * static_cast<double>(GroupsOf(main));
  result.queueing_share = replayed.queueing_share_of_ttft;
  result.busy_ratio = replayed.busy_ratio;
  result.prefill_busy_ratio = replayed.prefill_busy_ratio;
  result.preemptions = replayed.preemptions;
  result.unstable = replayed.is_unstable;
  return result;
}

}  // namespace sliceplan::planner
