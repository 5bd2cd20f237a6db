#include "server/planner/serving/saturation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "server/planner/serving/queueing.h"
#include "server/planner/serving/replica_field.h"

namespace sliceplan::planner {
namespace {

// Of the fixed point of the batch: it is a contraction below saturation, slow only close to it.
constexpr int kIterations = 200;
constexpr double kTolerance = 1e-5;
// Standard deviations of a Poisson number from which on nobody waits for a place.
constexpr double kFar = 6;
constexpr double kNoLimit = std::numeric_limits<double>::infinity();

// One system's fields and what follows from them at once.
struct System {
  System(const ServingSystem& system, const RequestMix& mix)
      : system(system), mix(mix), main(system.main, mix, !system.prefill, true) {
    if (system.prefill) prefill.emplace(*system.prefill, mix, true, false);
  }

  bool IsStatic() const { return system.main.limits.policy == BatchPolicy::kStatic; }
  double Replicas() const { return static_cast<double>(system.main.replica_count); }

  // A prompt alone on a prefill replica.
  double PrefillSeconds() const {
    if (system.prefill->limits.policy == BatchPolicy::kStatic) return prefill->StaticReadSeconds(1);
    return prefill->Read(1).residence_seconds;
  }
  // Requests a second that the prefill replicas read at most.
  double PrefillRate() const {
    if (!system.prefill) return kNoLimit;
    const double prompts = prefill->resident_limit();
    if (prompts <= 0) return 0;
    const double seconds = system.prefill->limits.policy == BatchPolicy::kStatic
                               ? prefill->StaticReadSeconds(prompts) / prompts
                               : prefill->Read(prompts).server_seconds;
    return static_cast<double>(system.prefill->replica_count) / seconds;
  }
  // Time per output token of one sequence whose steps take so long.
  double PerToken(double step_seconds) const {
    const double tokens = main.output_tokens();
    return tokens > 0 ? step_seconds * main.decode_steps() / tokens : 0;
  }
  double TransferSeconds() const {
    return system.prefill ? system.transfer_seconds_per_prompt + system.transfer_seconds_per_token * mix.prompt.Mean()
                          : 0;
  }

  const ServingSystem& system;
  const RequestMix& mix;
  ReplicaField main;
  std::optional<ReplicaField> prefill;
};

// The decoding replicas with `resident` sequences each, whatever the prefill replicas do.
Saturation Full(const System& of, double resident) {
  Saturation full;
  full.limit = of.main.limit();
  full.batch_size = resident;
  if (resident <= 0) return full;
  if (of.IsStatic()) {
    const double seconds = of.main.StaticBatchSeconds(resident);
    full.requests_per_second = of.Replicas() * resident / seconds;
    full.tpot_seconds = of.PerToken(of.main.DecodeSeconds(resident));
    return full;
  }
  double seconds = 0;
  const double decoding = of.main.DecodingOf(resident, seconds);
  if (seconds <= 0) {  // prefill replicas do everything
    full.requests_per_second = kNoLimit;
    return full;
  }
  full.requests_per_second = of.Replicas() / seconds;
  if (of.main.output_tokens() > 0) full.tpot_seconds = seconds * decoding / of.main.output_tokens();
  const bool is_chunked = of.system.main.limits.policy == BatchPolicy::kChunkedPrefill && !of.system.prefill;
  if (is_chunked && of.main.PrefillBound() < decoding * (1 + kTolerance)) full.limit = ServingLimit::kPrefill;
  return full;
}

// Wait for a place in the batch: as many servers as places, at the pace that they have when all are taken.
double PlaceWait(const System& of, double rate, double burstiness, double places_per_replica, double full_rate) {
  const double places = std::max(1.0, std::round(places_per_replica)) * of.Replicas();
  const double offered = places * rate / full_rate;
  if (offered + kFar * std::sqrt(offered) < places) return 0;
  return GGcWaiting(rate, burstiness, offered / rate, of.mix.output.SquaredVariation(), static_cast<int64_t>(places))
      .mean_seconds;
}

// What a request goes through on a decoding replica.
struct Passage {
  double batch_size = 0;
  double wait_seconds = 0;  // for the step in progress and the prompts before
  double read_seconds = 0;
  double pause_seconds = 0;  // before the first decode step
  double step_seconds = 0;   // of a decode step
};

// Batches of those that came during the last one.
Passage PassStatic(const System& of, double rate) {
  double resident = 1;
  for (int i = 0; i < kIterations; ++i) {
    const double next = std::clamp(rate * of.main.StaticBatchSeconds(resident), 1.0, of.main.resident_limit());
    const bool is_close = std::abs(next - resident) <= kTolerance * resident;
    resident = next;
    if (is_close) break;
  }
  const double seconds = of.main.StaticBatchSeconds(resident);
  const double busy = std::min(1.0, rate * seconds / resident);
  Passage passage;
  passage.batch_size = busy * resident;
  passage.wait_seconds = busy * seconds / 2;
  passage.read_seconds = of.main.StaticReadSeconds(resident);
  passage.step_seconds = of.main.DecodeSeconds(resident);
  return passage;
}

// When so many others decode.
Passage PassAmong(const System& of, double rate, double burstiness, double others) {
  Passage passage;
  passage.step_seconds = of.main.StepSeconds(rate, others);
  if (of.system.prefill) return passage;
  const PromptReading reading = of.main.Read(1 + others);
  passage.read_seconds = reading.residence_seconds;
  passage.wait_seconds =
      of.main.ResidualSeconds(rate, others) + GGcWaiting(rate * of.Replicas(), burstiness, reading.server_seconds,
                                                         of.mix.prompt.SquaredVariation(), of.system.main.replica_count)
                                                  .mean_seconds;
  // Whole prompts that came meanwhile are read first, unless they went into the same step, and those that come while
  // they are.
  const double busy = std::min(1.0, rate * reading.server_seconds);
  if (of.system.main.limits.policy == BatchPolicy::kWholePrefill && busy < 1) {
    const double left = std::max(0.0, InSystem(rate, passage.wait_seconds) - of.main.PromptsBeside()) +
                        InSystem(rate, passage.read_seconds);
    passage.pause_seconds = left * reading.server_seconds / (1 - busy);
  }
  return passage;
}

// A decoding sequence meets itself and others: as many as there are in the mean, if their number is Poisson.
Passage PassContinuous(const System& of, double rate, double burstiness) {
  const double most = std::max(0.0, of.main.resident_limit() - 1);
  const auto decoding = [&of, rate](const Passage& passage) {
    return of.main.decode_steps() > 0
               ? InSystem(rate, of.main.decode_steps() * passage.step_seconds + passage.pause_seconds)
               : 0;
  };
  double others = 0;
  Passage passage = PassAmong(of, rate, burstiness, others);
  for (int i = 0; i < kIterations; ++i) {
    const double next = std::min(most, decoding(passage));
    const bool is_close = std::abs(next - others) <= kTolerance * (1 + others);
    others = next;
    passage = PassAmong(of, rate, burstiness, others);
    if (is_close) break;
  }
  passage.batch_size = std::min(decoding(passage) + InSystem(rate, passage.read_seconds), of.main.resident_limit());
  return passage;
}

}  // namespace

Saturation SaturationOf(const ServingSystem& system, const RequestMix& mix) {
  const System of(system, mix);
  Saturation saturation = Full(of, of.main.resident_limit());
  const double prefill_rate = of.PrefillRate();
  if (prefill_rate < saturation.requests_per_second) {
    saturation.requests_per_second = prefill_rate;
    saturation.limit = ServingLimit::kPrefill;
  }
  return saturation;
}

MeanField OpenLoopMeanField(const ServingSystem& system, const RequestMix& mix, double requests_per_second,
                            double arrival_burstiness) {
  const System of(system, mix);
  const Saturation saturation = SaturationOf(system, mix);
  MeanField field;
  field.requests_per_second = requests_per_second;
  if (requests_per_second >= saturation.requests_per_second) {
    field.is_stable = false;
    field.requests_per_second = saturation.requests_per_second;
    field.batch_size = saturation.batch_size;
    field.tpot_seconds = saturation.tpot_seconds;
    field.ttft_seconds = field.queueing_seconds = field.end_to_end_seconds = kNoLimit;
    return field;
  }
  if (requests_per_second <= 0) return field;
  const double rate = requests_per_second / of.Replicas();
  Passage passage = of.IsStatic() ? PassStatic(of, rate) : PassContinuous(of, rate, arrival_burstiness);
  const Saturation full = Full(of, of.main.resident_limit());
  if (full.limit != ServingLimit::kPrefill) {
    passage.wait_seconds +=
        PlaceWait(of, requests_per_second, arrival_burstiness, of.main.resident_limit(), full.requests_per_second);
  }
  if (system.prefill) {
    // The first token is out before the sequence waits to decode.
    passage.pause_seconds = of.main.output_tokens() > 0 ? passage.wait_seconds : 0;
    const double service_seconds = static_cast<double>(system.prefill->replica_count) / of.PrefillRate();
    passage.wait_seconds = GGcWaiting(requests_per_second, arrival_burstiness, service_seconds,
                                      mix.prompt.SquaredVariation(), system.prefill->replica_count)
                               .mean_seconds;
    passage.read_seconds = of.PrefillSeconds();
  }
  field.batch_size = passage.batch_size;
  field.tpot_seconds = of.PerToken(passage.step_seconds) + passage.pause_seconds * of.main.TokenShare();
  field.queueing_seconds = passage.wait_seconds;
  field.ttft_seconds = passage.wait_seconds + passage.read_seconds + of.TransferSeconds();
  field.end_to_end_seconds = field.ttft_seconds + passage.pause_seconds + passage.step_seconds * of.main.decode_steps();
  return field;
}

MeanField ClosedLoopMeanField(const ServingSystem& system, const RequestMix& mix, int64_t users) {
  const System of(system, mix);
  MeanField field;
  const double per_replica = static_cast<double>(users) / of.Replicas();
  if (of.main.resident_limit() <= 0) return field;
  // Fewer users than replicas: each is alone.
  const double resident = std::clamp(per_replica, 1.0, of.main.resident_limit());
  Saturation full = Full(of, resident);
  const double busy_replicas = std::min(1.0, per_replica);
  const double decoding_seconds = full.tpot_seconds * of.main.output_tokens();
  double read_seconds = 0;
  double each_seconds = 0;  // per prompt when many are read one after the other
  if (system.prefill) {
    each_seconds = 1 / of.PrefillRate();
    read_seconds = of.PrefillSeconds() + of.TransferSeconds();
    // Users whose prompts are being read do not decode.
    full.requests_per_second = std::min(
        {full.requests_per_second, of.PrefillRate(), static_cast<double>(users) / (read_seconds + decoding_seconds)});
  } else if (of.IsStatic()) {
    read_seconds = of.main.StaticReadSeconds(resident);
    each_seconds = read_seconds / resident / of.Replicas();
  } else {
    const PromptReading reading = of.main.Read(resident);
    read_seconds = reading.residence_seconds;
    each_seconds = reading.server_seconds / of.Replicas();
  }
  field.requests_per_second = full.requests_per_second * busy_replicas;
  field.batch_size = resident * busy_replicas;
  field.tpot_seconds = full.tpot_seconds;
  field.end_to_end_seconds = static_cast<double>(users) / field.requests_per_second;
  // What reading and decoding leave of the round trip is queueing: for prompts to be read, or, with prefill replicas
  // that are not the bottleneck, for a place among the decodes.
  const double waiting = std::max(0.0, field.end_to_end_seconds - read_seconds - decoding_seconds);
  const bool waits_to_decode = system.prefill && full.requests_per_second < of.PrefillRate();
  if (waits_to_decode && of.main.output_tokens() > 0) {
    field.tpot_seconds += waiting * of.main.TokenShare();
  } else {
    field.queueing_seconds = waiting;
  }
  field.ttft_seconds = field.queueing_seconds + read_seconds;
  const double first = std::min(static_cast<double>(users), of.main.resident_limit() * of.Replicas());
  field.startup_ttft_seconds = std::max(read_seconds, (first + 1) / 2 * each_seconds);
  return field;
}

}  // namespace sliceplan::planner
