// A measurement and the question whose answer it is: what every measured table is turned into.
#ifndef SLICEPLAN_CLIENT_CALIBRATE_CASE_H_
#define SLICEPLAN_CLIENT_CALIBRATE_CASE_H_

#include <string>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/sliceplan/v1/serving.pb.h"
#include "proto/sliceplan/v1/training.pb.h"

namespace sliceplan::calibrate {

// What was measured. Seconds, bytes, or tokens per second of all chips together.
enum class Metric {
  kStepSeconds,            // of an optimizer step
  kPeakMemoryBytes,        // of the fullest chip
  kAllocatedMemoryBytes,   // of the fullest chip, without what the runtime keeps for itself
  kPrefillSeconds,         // of one batch of prompts
  kDecodeStepSeconds,      // of one step of a fixed batch
  kBatchLatencySeconds,    // prefill and all decode steps of a fixed batch
  kTimeToFirstToken,       // mean, queueing included
  kTimePerOutputToken,     // mean, without the first token
  kOutputTokensPerSecond,  // of all chips
};

// "step_seconds", as the tables print it.
absl::string_view NameOf(Metric metric);

struct Measured {
  Metric metric = Metric::kStepSeconds;
  double value = 0;  // above 0
  // Follows from the others of its case: compared, not fitted to.
  bool derived = false;
};

// How a case counts.
enum class Standing {
  kScored,
  // Its source contradicts itself, says its notes: in a table of its own.
  kInconsistent,
  // Something that the time depends on was not published (batch, microbatch, lengths): in a table of its own.
  kInformative,
};

struct Case {
  std::string id;            // "MOS-001"
  std::string source;        // what is left out together: "MOS"
  std::string model;         // as the table has it
  std::string architecture;  // of the model, where the table has several names for one; empty: `model`
  std::string accelerator;   // catalog id
  // Rows of the error table that this case is counted in, besides those of its source, chip and metric: "tpu-dense",
  // "gpu-vendor-dense", "gpu-all".
  std::vector<std::string> groups;
  Standing standing = Standing::kScored;
  std::string remark;  // why it is not scored, or what was taken for what its row does not say
  // Cases of one sweep differ in plan or load alone; ranks are compared within it. Empty: in none.
  std::string sweep;
  // Cases of one job differ in plan alone: the same model, work, chips and software. Empty: of none.
  std::string job;
  std::variant<v1::EstimateTrainingRequest, v1::EstimateServingRequest> question;
  std::vector<Measured> measured;  // one per metric, at least one
};

// A row that asks no question that can be answered, and why.
struct Unmapped {
  std::string id;
  std::string source;
  std::string reason;
};

struct CaseTable {
  std::vector<Case> cases;
  std::vector<Unmapped> unmapped;
};

}  // namespace sliceplan::calibrate

#endif  // SLICEPLAN_CLIENT_CALIBRATE_CASE_H_
