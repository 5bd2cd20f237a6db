#include "client/cli/shard.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/cli/choices.h"
#include "client/cli/job_flags.h"
#include "client/cli/model_flag.h"
#include "client/cli/plan_flags.h"
#include "client/cli/quantity.h"
#include "client/cli/serving_flags.h"
#include "client/cli/shard_report.h"
#include "client/cli/slice_flags.h"
#include "client/cli/workload_flags.h"
#include "server/rpc/json.h"

namespace sliceplan::cli {
namespace {

struct ShortName {
  absl::string_view typed;
  absl::string_view value;
};
constexpr ShortName kObjectives[] = {{"step-time", "min-step-time"},
                                     {"cost", "min-cost"},
                                     {"throughput", "max-throughput-per-chip"},
                                     {"chips", "min-chips"},
                                     {"time-to-train", "min-time-to-train"}};
constexpr ShortName kTargets[] = {{"gke", "gke-jobset"}};

template <size_t N>
absl::string_view LongName(const ShortName (&names)[N], absl::string_view typed) {
  for (const ShortName& name : names) {
    if (name.typed == typed) return name.value;
  }
  return typed;
}

absl::StatusOr<int32_t> ReadSmallCount(absl::string_view text) {
  const absl::StatusOr<int64_t> count = ParseCount(text);
  if (!count.ok()) return count.status();
  if (*count > std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError(absl::StrCat(text, " are too many"));
  }
  return static_cast<int32_t>(*count);
}

absl::Status ReadForbidden(const std::string& text, v1::Constraints* constraints) {
  for (const absl::string_view name : absl::StrSplit(text, ',')) {
    const absl::StatusOr<int> axis = ParseChoice(*v1::ParallelismAxis_descriptor(), name);
    if (!axis.ok()) return axis.status();
    constraints->add_forbidden_axes(static_cast<v1::ParallelismAxis>(*axis));
  }
  return absl::OkStatus();
}

absl::Status ReadCapacity(const std::string& path, std::istream& in, v1::CapacityList* capacity) {
  std::string text;
  if (absl::Status status = ReadText(path, in, rpc::kMaxJsonBytes, &text); !status.ok()) return status;
  const rpc::Result result = rpc::ParseJson(text, capacity);
  return result.ok() ? absl::OkStatus() : absl::InvalidArgumentError(result.status().message());
}

google::rpc::Status Failed(const std::string& sentence) {
  google::rpc::Status status;
  status.set_code(static_cast<int>(absl::StatusCode::kFailedPrecondition));
  status.set_message(sentence);
  return status;
}

}  // namespace

absl::Status ReadChipRange(const std::string& text, v1::AcceleratorRange* range) {
  const std::vector<std::string> ends = absl::StrSplit(text, absl::MaxSplits("..", 1));
  const bool exact = ends.size() == 1;
  if (text == ".." || text.empty()) return absl::InvalidArgumentError("write 64..512, 64.., ..512 or 256");
  if (!ends.front().empty()) {
    const absl::StatusOr<int32_t> least = ReadSmallCount(ends.front());
    if (!least.ok()) return least.status();
    range->set_min_chip_count(*least);
    if (exact) range->set_max_chip_count(*least);
  }
  if (!exact && !ends.back().empty()) {
    const absl::StatusOr<int32_t> most = ReadSmallCount(ends.back());
    if (!most.ok()) return most.status();
    range->set_max_chip_count(*most);
  }
  return absl::OkStatus();
}

void ShardQuestion::AddCandidateFlags(Flags& flags) {
  flags.Group("Where it may run; default: every slice of the catalog");
  flags.Repeated(
      "--slice", "slices", "SLICE",
      "a slice, several times for several: tpu-v5p:16x16x16 (chip:topology), h100:64 (chip:count) or v5p-256",
      [this](const std::string& text) { return ReadSlice(text, request_.mutable_slices()->add_slices()); });
  flags.Custom("--slices", "slices.slices.slice_count", "N",
               "identical slices joined over the data-centre network, of every --slice; default 1",
               [this](const std::string& text) -> absl::Status {
                 const absl::StatusOr<int32_t> count = ReadSmallCount(text);
                 if (!count.ok()) return count.status();
                 slice_count_ = *count;
                 return absl::OkStatus();
               });
  flags.Custom("--accelerators", "accelerators", "NAME,...", "chips in any shape that is sold: v5e,v5p",
               [this](const std::string& text) -> absl::Status {
                 for (const absl::string_view name : absl::StrSplit(text, ',')) {
                   request_.mutable_accelerators()->add_names(std::string(absl::StripAsciiWhitespace(name)));
                 }
                 return absl::OkStatus();
               });
  flags.Custom(
      "--chips", "accelerators.max_chip_count", "RANGE",
      "with --accelerators: chips of all slices (with --serve of one replica), 64..512, ..512 or 256; default: up to "
      "the largest slice",
      [this](const std::string& text) -> absl::Status {
        if (!request_.has_accelerators()) return absl::InvalidArgumentError("needs --accelerators");
        return ReadChipRange(text, request_.mutable_accelerators());
      });
  flags.Custom("--slices-max", "accelerators.max_slice_count", "N",
               "with --accelerators: most slices joined over the data-centre network; default 1",
               [this](const std::string& text) -> absl::Status {
                 if (!request_.has_accelerators()) return absl::InvalidArgumentError("needs --accelerators");
                 const absl::StatusOr<int32_t> count = ReadSmallCount(text);
                 if (!count.ok()) return count.status();
                 request_.mutable_accelerators()->set_max_slice_count(*count);
                 return absl::OkStatus();
               });
  flags.Custom(
      "--capacity", "capacity", "FILE",
      "what is free: a CapacityList in JSON, {\"pools\": [{\"accelerator\", \"topology\", \"freeSliceCount\"}]}",
      [this, &flags](const std::string& text) -> absl::Status {
        return ReadCapacity(text, flags.in(), request_.mutable_capacity());
      });
}

void ShardQuestion::AddConstraintFlags(Flags& flags) {
  flags.Group("What a plan must meet");
  flags.Field("--deadline", "constraints.job_deadline_seconds", "latest end of the training, from now: 14d");
  flags.Field("--budget", "constraints.budget_usd", "most that the training may cost, US dollars: 2M");
  flags.Field("--max-chips", "constraints.max_chip_count", "most chips of all slices, with --serve of all replicas");
  flags.Field("--headroom", "constraints.hbm_headroom_ratio", "share of the HBM that stays free: 10%; default 0");
  flags.Custom("--fix", "constraints.fixed_ici", "AXIS=N,...",
               "degrees that are given, within a slice and with dcn. across slices: tensor=8,dcn.data=2",
               [this](const std::string& text) {
                 v1::Parallelism fixed;
                 if (absl::Status status = ReadParallelism(text, &fixed); !status.ok()) return status;
                 if (fixed.has_ici()) *request_.mutable_constraints()->mutable_fixed_ici() = fixed.ici();
                 if (fixed.has_dcn()) *request_.mutable_constraints()->mutable_fixed_dcn() = fixed.dcn();
                 return absl::OkStatus();
               });
  flags.Pairs("--fix", "constraints.fixed_ici", "");
  flags.Pairs("--fix", "constraints.fixed_dcn", "dcn.");
  flags.Custom("--forbid", "constraints.forbidden_axes", "AXIS,...",
               absl::StrCat("axes that are not used: ", AllChoices(*v1::ParallelismAxis_descriptor())),
               [this](const std::string& text) { return ReadForbidden(text, request_.mutable_constraints()); });
  flags.Field("--allow-idle", "constraints.allow_idle_chips", "allow plans that leave chips idle");
  flags.Field("--allow-padding", "constraints.allow_padding", "allow heads or experts that divide unevenly, padded up");
  flags.Field("--allow-offload", "constraints.allow_offload",
              "allow plans that keep optimizer state or saved activations in host memory");
}

void ShardQuestion::AddAnswerFlags(Flags& flags) {
  flags.Group("Answer");
  flags.Custom("--objective", "objective", "NAME",
               "what is best: step-time (default; with --serve the time per output token), cost, throughput (per "
               "chip), chips (the fewest), time-to-train",
               [this](const std::string& text) {
                 return SetField(&request_, "objective", std::string(LongName(kObjectives, text)));
               });
  flags.Field("--top", "top_k", "proposals; default 5");
  flags.Custom(
      "--emit", "render", "TARGET",
      "print the best plan alone, as a text for: jax, maxtext, megatron, vllm (with --serve), xpk, gke, kueue, "
      "cloud-tpu",
      [this](const std::string& text) {
        const absl::StatusOr<int> target = ParseChoice(*v1::RenderTarget_descriptor(), LongName(kTargets, text));
        if (!target.ok()) return target.status();
        only_ = static_cast<v1::RenderTarget>(*target);
        request_.add_render(*only_);
        return absl::OkStatus();
      });
  flags.Custom("--time-limit", "search_time_limit", "TIME", "answer with the best found after this time: 100ms",
               [this](const std::string& text) {
                 const absl::StatusOr<double> seconds = ParseSeconds(text);
                 if (!seconds.ok()) return seconds.status();
                 constexpr double kNanosPerSecond = 1e9;
                 const double whole = static_cast<double>(static_cast<int64_t>(std::min(*seconds, 1e11)));
                 auto* const limit = request_.mutable_search_time_limit();
                 limit->set_seconds(static_cast<int64_t>(whole));
                 limit->set_nanos(static_cast<int32_t>(std::min((*seconds - whole) * kNanosPerSecond, 999'999'999.0)));
                 return absl::OkStatus();
               });
}

void ShardQuestion::AddFlags(Flags& flags) {
  flags_ = &flags;
  const auto training = [this] { return request_.mutable_training(); };
  const auto serving = [this] { return request_.mutable_serving(); };
  flags.Group("Model and job");
  AddModelFlag(flags, "--model", [this] { return request_.mutable_model(); });
  // Before all flags of either job, which look at it.
  flags.Switch("--serve", "the best way to serve, not to train: latency targets and a serving load instead of a job",
               [this] {
                 serves_ = true;
                 request_.mutable_serving();
               });
  AddJobFlags(flags, "training", training);
  flags.Group("Load with --serve");
  AddLoadFlags(flags, "serving", serving);
  AddTargetFlags(flags, "constraints.slo", "with --serve");
  AddCandidateFlags(flags);
  AddAnswerFlags(flags);
  AddConstraintFlags(flags);
  AddArithmeticFlags(flags, "training", training);
  flags.Field("--accumulation", "training.gradient_accumulation",
              "passes whose gradients are added up; default: the least that fits");
  AddEngineFlags(flags, "serving", serving, "with --serve");
  AddModeFlags(flags);
  AddPricingFlags(flags);
  AddReliabilityFlags(flags);
  flags.Check([this] { return JobProblem(); });
}

std::string ShardQuestion::JobProblem() const {
  if (!serves_) {
    const std::vector<std::string> given = flags_->GivenFor({"serving", "constraints.slo"});
    if (given.empty()) return "";
    return absl::StrCat(absl::StrJoin(given, ", "), given.size() > 1 ? " describe" : " describes",
                        " a serving load: add --serve");
  }
  std::vector<std::string> given =
      flags_->GivenFor({"training", "reliability", "constraints.job_deadline_seconds", "constraints.budget_usd"});
  if (request_.objective() == v1::OBJECTIVE_MIN_TIME_TO_TRAIN) given.emplace_back("--objective time-to-train");
  if (given.empty()) return "";
  return absl::StrCat(absl::StrJoin(given, ", "), given.size() > 1 ? " are" : " is", " for training, not for --serve");
}

google::rpc::Status ShardQuestion::Complete(Backend&) {
  if (slice_count_.has_value()) {
    for (v1::Slice& slice : *request_.mutable_slices()->mutable_slices()) slice.set_slice_count(*slice_count_);
  }
  // The first alone is wanted. Of training it is the same whatever comes after it; of serving the proposals that are
  // asked for decide how many plans are estimated in full.
  if (only_.has_value() && !serves_ && !request_.has_top_k()) request_.set_top_k(1);
  return google::rpc::Status();
}

google::rpc::Status ShardQuestion::Missing() const {
  if (!only_.has_value() || !Verbatim().empty()) return google::rpc::Status();
  if (response_.proposals().empty()) return Failed("No plan is feasible, so that there is nothing to emit.");
  std::vector<std::string> reasons;
  for (const v1::Warning& warning : response_.warnings()) {
    if (warning.code() == "NOT_RENDERED") reasons.push_back(warning.sentence());
  }
  return Failed(reasons.empty() ? "The best plan cannot be written so." : absl::StrJoin(reasons, " "));
}

std::string ShardQuestion::Verbatim() const {
  if (!only_.has_value() || response_.proposals().empty()) return "";
  for (const v1::Rendering& rendering : response_.proposals(0).renderings()) {
    if (rendering.target() == *only_) return rendering.text();
  }
  return "";
}

void ShardQuestion::Print(const Flags& flags, Report& report) const {
  const std::string model = ModelLabel(request_.model(), flags);
  if (request_.has_serving()) {
    PrintServingProposals(request_, response_, model, flags, report);
  } else {
    PrintProposals(request_, response_, model, flags, report);
  }
}

}  // namespace sliceplan::cli
