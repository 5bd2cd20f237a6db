// The mean field of one replica: what one request takes of its time at a given number of sequences.
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_REPLICA_FIELD_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_REPLICA_FIELD_H_

#include <array>

#include "server/planner/serving/saturation.h"
#include "server/planner/serving/serving_load.h"

namespace sliceplan::planner {

// How prompts are read when so many sequences decode, the prompt's own, later, among them.
struct PromptReading {
  double steps = 0;              // that read prompts, per request
  double seconds = 0;            // of one of them, decodes beside it included
  double residence_seconds = 0;  // from the first such step of a prompt to its end
  double server_seconds = 0;     // that a prompt keeps others from being read
};

class ReplicaField {
 public:
  // `reads`, `decodes`: which parts of a request run here.
  ReplicaField(const Station& station, const RequestMix& mix, bool reads, bool decodes);

  // Most sequences resident in the mean, 0 when not even the mean request fits, and what bounds them.
  double resident_limit() const { return resident_limit_; }
  ServingLimit limit() const { return limit_; }
  double decode_steps() const { return decode_steps_; }    // per request
  double output_tokens() const { return output_tokens_; }  // after the first
  // Time per output token that a second before the second token adds, mean over requests.
  double TokenShare() const;

  // Seconds of a decode step without prompts, of a batch that need not be whole.
  double DecodeSeconds(double sequences) const;
  PromptReading Read(double sequences) const;
  // Seconds of the replica per request when `sequences` decode all the time, above 0. Continuous batching.
  double SecondsPerRequest(double sequences) const;
  // Sequences that decode when `resident` are resident; `seconds` is the replica's time per request then.
  double DecodingOf(double resident, double& seconds) const;
  // Mean seconds of a decoding sequence's step, prompts of `rate` requests a second beside it, when it meets
  // `sequences` others and itself.
  double StepSeconds(double rate, double sequences) const;
  // Mean rest of the step that an arrival finds in progress, when `sequences` decode in the mean.
  double ResidualSeconds(double rate, double sequences) const;
  // Whole prompts that fit into a step beside one.
  double PromptsBeside() const;
  // A static batch of `resident` requests, from the first prompt to the last token.
  double StaticBatchSeconds(double resident) const;
  double StaticReadSeconds(double resident) const;
  // Most sequences that decode before the token budget leaves too little for prompts; chunked prefill only.
  double PrefillBound() const;

 private:
  // Steps that were asked for lately: iterations ask for the same ones again.
  struct Memory {
    StepShape shape;
    double seconds = 0;
  };

  double Seconds(const StepShape& shape) const;
  double PromptSeconds(double prompts, double tokens_each, double sequences, double context) const;

  const Station& station_;
  const RequestMix& mix_;
  bool reads_;
  bool decodes_;
  double computed_ = 0;  // prompt tokens per request
  double cached_ = 0;
  double output_tokens_ = 0;
  double decode_steps_ = 0;
  double decode_context_ = 0;
  double checked_tokens_ = 1;
  double resident_limit_ = 0;
  ServingLimit limit_ = ServingLimit::kBatchSize;
  mutable std::array<Memory, 64> memory_;
};

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SERVING_REPLICA_FIELD_H_
