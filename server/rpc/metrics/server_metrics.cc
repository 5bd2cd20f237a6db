#include "server/rpc/metrics/server_metrics.h"

#include <utility>

#include "absl/strings/match.h"
#include "prometheus/metric_family.h"
#include "prometheus/text_serializer.h"
#include "proto/sliceplan/v1/serving.pb.h"
#include "proto/sliceplan/v1/sharding.pb.h"
#include "proto/sliceplan/v1/training.pb.h"
#include "server/rpc/metrics/process_metrics.h"
#include "server/rpc/version.h"

namespace sliceplan::rpc {
namespace {

std::array<const char*, kShedReasonCount> ShedReasonNames() {
  std::array<const char*, kShedReasonCount> names;
  for (const ShedReason reason : kShedReasons) names[static_cast<size_t>(reason)] = ShedReasonName(reason);
  return names;
}

prometheus::Counter* AddCounter(prometheus::Registry& registry, const char* name, const char* help) {
  return &prometheus::BuildCounter().Name(name).Help(help).Register(registry).Add({});
}

template <size_t size>
std::array<prometheus::Counter*, size> AddCounters(prometheus::Registry& registry, const char* name, const char* help,
                                                   const char* label, const std::array<const char*, size>& values) {
  auto& family = prometheus::BuildCounter().Name(name).Help(help).Register(registry);
  std::array<prometheus::Counter*, size> counters;
  for (size_t i = 0; i < size; ++i) counters[i] = &family.Add({{label, values[i]}});
  return counters;
}

prometheus::MetricFamily GaugeFamily(std::string name, std::string help, double value,
                                     std::vector<prometheus::ClientMetric::Label> labels = {}) {
  prometheus::MetricFamily family{std::move(name), std::move(help), prometheus::MetricType::Gauge, {}};
  family.metric.resize(1);
  family.metric[0].label = std::move(labels);
  family.metric[0].gauge.value = value;
  return family;
}

}  // namespace

ServerMetrics::ServerMetrics(const MethodTable& methods, std::function<absl::Time()> now)
    : now_(std::move(now)),
      calls_(&registry_, methods),
      queue_wait_seconds_(&prometheus::BuildHistogram()
                               .Name("sliceplan_queue_wait_seconds")
                               .Help("Time that work waited for a worker.")
                               .Register(registry_)
                               .Add({}, LatencyBuckets())),
      shed_(
          AddCounters(registry_, "sliceplan_shed_total",
                      "Calls that were not worked on: the queue was full, or full of work of the same client, or when "
                      "their turn came the deadline had passed or the caller had left, or the server was ending.",
                      "reason", ShedReasonNames())),
      unauthorized_(AddCounters(registry_, "sliceplan_token_refusals_total",
                                "Calls that were refused because of their token: missing or unknown, not for this "
                                "method, or above its rate.",
                                "reason", std::array<const char*, 3>{"unauthenticated", "method", "rate"})),
      engine_errors_(AddCounter(registry_, "sliceplan_engine_errors_total",
                                "Handlers that failed on a request: calls that ended INTERNAL by a bug.")),
      searches_(AddCounter(registry_, "sliceplan_searches_total", "Searches by ProposeSharding that were answered.")),
      searches_cut_(AddCounter(registry_, "sliceplan_searches_truncated_total",
                               "Searches that answered with what they had because time ran out.")),
      evaluated_plans_(AddCounter(registry_, "sliceplan_candidates_evaluated_total",
                                  "Plans that searches and estimates evaluated in full.")),
      reloads_(AddCounters(registry_, "sliceplan_catalog_reloads_total",
                           "Times that the catalog was read again; failed: the old one stayed.", "result",
                           std::array<const char*, 2>{"failed", "ok"})),
      catalog_time_(now_()) {
  prometheus::BuildGauge()
      .Name("sliceplan_build_info")
      .Help("1; the labels say what runs.")
      .Register(registry_)
      .Add({{"version", EngineVersion()}, {"compiler", __VERSION__}})
      .Set(1);
}

void ServerMetrics::Dequeued(absl::Duration wait) const { queue_wait_seconds_->Observe(absl::ToDoubleSeconds(wait)); }

void ServerMetrics::Shed(ShedReason reason) const { shed_[static_cast<size_t>(reason)]->Increment(); }

void ServerMetrics::Unauthorized(absl::StatusCode code) const {
  const size_t reason = code == absl::StatusCode::kUnauthenticated    ? 0
                        : code == absl::StatusCode::kPermissionDenied ? 1
                                                                      : 2;
  unauthorized_[reason]->Increment();
}

void ServerMetrics::Answered(const Result& result, const google::protobuf::Message& response,
                             const CallContext& context) const {
  if (!result.ok()) {
    if (!result.log_text().empty()) engine_errors_->Increment();
    return;
  }
  const auto* const type = response.GetDescriptor();
  if (type == v1::ProposeShardingResponse::descriptor()) {
    searches_->Increment();
    if (context.search_truncated) searches_cut_->Increment();
    const auto& reply = static_cast<const v1::ProposeShardingResponse&>(response);
    evaluated_plans_->Increment(static_cast<double>(reply.search().evaluated_count()));
  } else if (type == v1::EstimateTrainingResponse::descriptor()) {
    const auto& reply = static_cast<const v1::EstimateTrainingResponse&>(response);
    evaluated_plans_->Increment(reply.estimate().evaluated_plan_count());
  }
}

void ServerMetrics::CatalogLoaded(absl::string_view version) {
  const std::lock_guard lock(mutex_);
  catalog_version_ = std::string(version);
  catalog_time_ = now_();
}

void ServerMetrics::CatalogReloaded(bool ok) const { reloads_[ok ? 1 : 0]->Increment(); }

void ServerMetrics::AddGauge(std::string name, std::string help, std::function<double()> value) {
  const std::lock_guard lock(mutex_);
  scraped_gauges_.push_back({std::move(name), std::move(help), std::move(value)});
}

std::string ServerMetrics::Text() const {
  std::vector<prometheus::MetricFamily> families = registry_.Collect();
  {
    const std::lock_guard lock(mutex_);
    families.push_back(GaugeFamily("sliceplan_catalog_info", "1; the label says which catalog answers.", 1,
                                   {{"version", catalog_version_}}));
    families.push_back(GaugeFamily("sliceplan_catalog_age_seconds",
                                   "Time since the catalog in use was read; the data in it may be older.",
                                   absl::ToDoubleSeconds(now_() - catalog_time_)));
    for (const ScrapedGauge& gauge : scraped_gauges_) {
      families.push_back(GaugeFamily(gauge.name, gauge.help, gauge.value()));
      if (absl::EndsWith(gauge.name, "_total")) {
        families.back().type = prometheus::MetricType::Counter;
        families.back().metric[0].counter.value = gauge.value();
      }
    }
  }
  for (prometheus::MetricFamily& family : ProcessMetrics()) families.push_back(std::move(family));
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace sliceplan::rpc
