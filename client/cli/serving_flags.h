// Flags of a serving load: lengths, traffic, formats, engine and targets.
#ifndef SLICEPLAN_CLIENT_CLI_SERVING_FLAGS_H_
#define SLICEPLAN_CLIENT_CLI_SERVING_FLAGS_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "client/cli/flags.h"
#include "proto/sliceplan/v1/serving.pb.h"

namespace sliceplan::cli {

// `name` is the field of the request that holds the workload, "workload", or the targets, "slo".
using ServingWorkloadOf = std::function<v1::ServingWorkload*()>;

// "2048", "2048~0.8" (mean and coefficient of variation) or "512=3,4096=1" (lengths and weights).
absl::Status ReadPrompt(const std::string& text, v1::ServingWorkload* workload);
absl::Status ReadOutput(const std::string& text, v1::ServingWorkload* workload);

// --prompt, --output, --batch, --concurrency, --rate and what belongs to them, in the group that was begun.
void AddLoadFlags(Flags& flags, const std::string& name, const ServingWorkloadOf& workload);

// --ttft-p95 and the like, with a heading; `when`, "with --serve", stands in it.
void AddTargetFlags(Flags& flags, const std::string& name, const std::string& when = "");

// Formats, chunks, blocks, drafts, with a heading.
void AddEngineFlags(Flags& flags, const std::string& name, const ServingWorkloadOf& workload,
                    const std::string& when = "");

}  // namespace sliceplan::cli

#endif  // SLICEPLAN_CLIENT_CLI_SERVING_FLAGS_H_
