#include "client/cli/serve.h"

#include <cstdint>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/choices.h"
#include "client/cli/estimate_text.h"
#include "client/cli/job_flags.h"
#include "client/cli/model_flag.h"
#include "client/cli/plan_flags.h"
#include "client/cli/serving_flags.h"
#include "client/cli/slice_flags.h"

namespace sliceplan::cli {
namespace {

v1::Pool* In(std::optional<v1::Pool>& pool) {
  if (!pool.has_value()) pool.emplace();
  return &*pool;
}

}  // namespace

void ServeQuestion::AddReplicaFlags(Flags& flags) {
  flags.Group("Replicas (prefill and decode may have slices of their own)");
  flags.Custom("--replicas", "", "N", "replicas of --slice; default 1",
               [this](const std::string& text) { return SetField(&only_, "replica_count", text); });
  flags.Custom("--role", "", "NAME", "decode: prompts arrive with their caches; default both",
               [this](const std::string& text) { return SetField(&only_, "role", text); });
  struct Half {
    const char* name;
    std::optional<v1::Pool>* pool;
  };
  for (const Half& half : {Half{"prefill", &prefill_}, Half{"decode", &decode_}}) {
    std::optional<v1::Pool>* const pool = half.pool;
    const std::string flag = absl::StrCat("--", half.name);
    flags.Custom(absl::StrCat(flag, "-slice"), "", "SLICE",
                 absl::StrCat("chips of a replica that does ", half.name, " alone, as --slice"),
                 [pool](const std::string& text) { return ReadSlice(text, In(*pool)->mutable_slice()); });
    flags.Custom(absl::StrCat(flag, "-replicas"), "", "N", "how many; default 1",
                 [pool](const std::string& text) { return SetField(In(*pool), "replica_count", text); });
    flags.Custom(absl::StrCat(flag, "-parallelism"), "", "AXIS=N,...", "as --parallelism; default: the best found",
                 [pool](const std::string& text) { return ReadParallelism(text, In(*pool)->mutable_parallelism()); });
  }
  flags.Check([this] { return ReplicaProblem(); });
}

std::string ServeQuestion::ReplicaProblem() const {
  const bool apart = prefill_.has_value() || decode_.has_value();
  if (!apart) return request_.has_slice() ? "" : "--slice is missing (or --prefill-slice and --decode-slice)";
  if (request_.has_slice()) return "--slice and --prefill-slice or --decode-slice exclude each other";
  if (request_.has_parallelism()) return "--parallelism is of --slice; write --prefill- and --decode-parallelism";
  if (only_.has_replica_count() || only_.role() != v1::POOL_ROLE_UNSPECIFIED) {
    return "--replicas and --role are of --slice; write --prefill-replicas and --decode-replicas";
  }
  if (!decode_.has_value() || !decode_->has_slice()) return "--decode-slice is missing";
  if (prefill_.has_value() && !prefill_->has_slice()) return "--prefill-slice is missing";
  return "";
}

void ServeQuestion::AddFlags(Flags& flags) {
  flags_ = &flags;
  v1::EstimateServingRequest* const request = this->request();
  const auto workload = [request] { return request->mutable_workload(); };

  flags.Group("Model and chips");
  AddModelFlag(flags, "--model", [request] { return request->mutable_model(); });
  AddSliceFlags(flags, [request] { return request->mutable_slice(); });

  flags.Group("Load");
  AddLoadFlags(flags, "workload", workload);
  AddTargetFlags(flags, "slo");
  AddEngineFlags(flags, "workload", workload);

  flags.Group("Plan of one replica");
  AddPlanFlags(flags, "tensor=8,data=2", [request] { return request->mutable_parallelism(); });
  AddReplicaFlags(flags);

  AddModeFlags(flags);
  AddPricingFlags(flags);
  flags.Custom("--output-price-ratio", "cost_split.output_to_input_price_ratio", "RATIO",
               "an output token costs so many input tokens: 4; default: the bill is split by time",
               [request](const std::string& text) {
                 request->mutable_cost_split()->set_kind(v1::COST_SPLIT_KIND_FIXED_RATIO);
                 return SetField(request, "cost_split.output_to_input_price_ratio", text);
               });
  flags.Field("--cached-price-ratio", "cost_split.cached_to_input_price_ratio",
              "a cached input token costs so much of an input token; default 0, with a fixed ratio 0.1");
}

void ServeQuestion::AddPool(v1::Pool pool, const std::string& prefix) {
  const std::string field = absl::StrCat("pools[", request_.pools_size(), "].");
  for (const char* name : {"slice", "parallelism"}) {
    flags_->Alias(absl::StrCat(field, name), absl::StrCat("--", prefix, name));
  }
  flags_->Alias(absl::StrCat(field, "replica_count"), absl::StrCat("--", prefix, "replicas"));
  flags_->Pairs(absl::StrCat("--", prefix, "parallelism"), absl::StrCat(field, "parallelism.ici"), "");
  flags_->Pairs(absl::StrCat("--", prefix, "parallelism"), absl::StrCat(field, "parallelism.dcn"), "dcn.");
  *request_.add_pools() = std::move(pool);
}

google::rpc::Status ServeQuestion::Complete(Backend&) {
  if (prefill_.has_value()) {
    prefill_->set_role(v1::POOL_ROLE_PREFILL);
    AddPool(*prefill_, "prefill-");
  }
  if (decode_.has_value()) {
    decode_->set_role(v1::POOL_ROLE_DECODE);
    AddPool(*decode_, "decode-");
  }
  // Advice about replicas names a pool though the request has none.
  if (!prefill_.has_value() && !decode_.has_value()) flags_->Alias("pools[0].replica_count", "--replicas");
  const bool special = only_.has_replica_count() || only_.role() != v1::POOL_ROLE_UNSPECIFIED;
  if (special && request_.pools().empty()) {
    only_.mutable_slice()->Swap(request_.mutable_slice());
    if (request_.has_parallelism()) only_.mutable_parallelism()->Swap(request_.mutable_parallelism());
    request_.clear_slice();
    request_.clear_parallelism();
    flags_->Alias("pools[0].role", "--role");
    AddPool(only_, "");
  }
  return google::rpc::Status();
}

std::string ServeQuestion::Csv() const { return FrontierCsv(response_.estimate()); }

void ServeQuestion::Print(const Flags& flags, Report& report) const {
  PrintServing(response_, ModelLabel(request_.model(), flags), flags, report);
}

}  // namespace sliceplan::cli
