// A serving system and the load on it, as the replay (replay.h) and the mean field (saturation.h) take them.
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_SERVING_LOAD_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_SERVING_LOAD_H_

#include <cstdint>
#include <optional>

#include "server/planner/serving/random.h"
#include "server/planner/serving/step_shape.h"
#include "server/planner/serving/token_lengths.h"

namespace sliceplan::planner {

// How an engine fills its steps. Requests are taken in order of arrival; none overtakes one that does not fit.
enum class BatchPolicy {
  // An idle engine takes what waits, reads all prompts in one step and decodes until the longest output is written;
  // finished sequences keep their place, their cache and their share of the step's work. Cache is set aside for whole
  // outputs.
  kStatic,
  // Sequences join and leave at every step (Yu et al., "Orca", OSDI 2022). Prompts go first, whole, in steps of their
  // own: decodes pause.
  kWholePrefill,
  // Decodes go first; what they leave of the step's token budget reads prompts in chunks (Agrawal et al.,
  // "Sarathi-Serve", OSDI 2024).
  kChunkedPrefill,
};

// One replica's scheduler. Defaults are vLLM's, whose names are given; all counts at least 1.
struct EngineLimits {
  BatchPolicy policy = BatchPolicy::kChunkedPrefill;
  int64_t max_batch_size = 256;  // sequences resident; max_num_seqs
  // Chunked: tokens of one step, decodes and chunks together; sequences resident never need more. Whole: prompt tokens
  // that one step reads, but at least one prompt. max_num_batched_tokens.
  int64_t step_token_budget = 2048;
  int64_t kv_capacity_tokens = int64_t{1} << 53;  // of the cache; used in whole blocks; num_gpu_blocks x block_size
  int64_t kv_block_tokens = 16;                   // block_size; at most kv_capacity_tokens
  // Share of the blocks that an admission leaves free for growth, unless nothing is resident; 0 to 1. watermark.
  double admission_reserve_ratio = 0.01;
};

inline constexpr int64_t kMaxStationReplicas = int64_t{1} << 20;

// Replicas of one kind.
struct Station {
  int64_t replica_count = 1;         // 1 to kMaxStationReplicas
  const StepTimer* timer = nullptr;  // of one replica; required, outlives the call
  EngineLimits limits;
};

// Which replica takes the next request. Ties go to the lowest index.
enum class Router {
  kLeastLoaded,  // the one with the fewest requests, waiting and resident
  kRoundRobin,   // each in turn
};

// With `prefill`, those replicas read prompts and hand caches over, each after its own transfer time (transfers do not
// share a link), and `main` decodes; else `main` does both. A prompt's cache leaves the prefill replica when its
// transfer begins.
struct ServingSystem {
  Station main;
  std::optional<Station> prefill;
  double transfer_seconds_per_prompt = 0;
  double transfer_seconds_per_token = 0;  // of the prompt, cached prefix included
  Router router = Router::kLeastLoaded;
};

// What requests ask for.
struct RequestMix {
  TokenLengths prompt = TokenLengths::Constant(1024);
  TokenLengths output = TokenLengths::Constant(256);
  // Share of prompt tokens that need no prefill; they take cache all the same. At least one token is always computed.
  // 0 to 1.
  double prefix_cache_hit_ratio = 0;
  // Tokens drafted per step, 0 to 64, and the chance that one is accepted given those before it, 0 to 1. A step writes
  // 1 + the accepted ones (Leviathan et al., "Fast inference from transformers via speculative decoding", ICML 2023).
  int64_t draft_tokens = 0;
  double acceptance_ratio = 0;

  // Mean tokens that one step writes per sequence: 1 + a + ... + a^k.
  double TokensPerStep() const;
  // Mean steps until `tokens` are written, 0 or more: renewal theory, exact for one token per step.
  double MeanDecodeSteps(double tokens) const;
  // Steps until `tokens` are written by one request: geometric acceptance step by step; above a few hundred tokens as
  // the normal limit of the same renewal process (Smith, "Renewal theory and its ramifications", JRSS B 20, 1958).
  int64_t DecodeSteps(int64_t tokens, Random& random) const;
};

// How requests come.
enum class LoadKind {
  kOpenLoop,       // at a rate, whatever the system does
  kClosedLoop,     // `users`, each sends its next request when the last is finished; all start at once
  kResidentBatch,  // as kClosedLoop, but the first requests are resident from the start, evenly spread over their lives
};

struct Load {
  LoadKind kind = LoadKind::kOpenLoop;
  double requests_per_second = 1;  // open loop; 1e-9 to 1e9
  // Open loop: squared coefficient of variation of the time between arrivals. 0 steady, 1 Poisson, else gamma. 0 to
  // 1e3.
  double arrival_burstiness = 1;
  int64_t users = 1;  // the other two; 1 to 2^20 over all replicas
};

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SERVING_SERVING_LOAD_H_
