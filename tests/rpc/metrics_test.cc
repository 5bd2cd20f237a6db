// What /metrics says after events that are known.
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "proto/sliceplan/v1/sharding.pb.h"
#include "server/rpc/errors.h"
#include "server/rpc/metrics/server_metrics.h"

namespace sliceplan::rpc {
namespace {

MethodTable OneMethod() {
  MethodTable table;
  table.Add<v1::ProposeShardingRequest, v1::ProposeShardingResponse>(
      "sliceplan.v1.PlannerService", "ProposeSharding",
      [](const v1::ProposeShardingRequest&, v1::ProposeShardingResponse*, const CallContext&) { return Result(); },
      [](const v1::ProposeShardingRequest&) { return Effort::kLong; });
  return table;
}

constexpr char kMethod[] = "sliceplan.v1.PlannerService/ProposeSharding";
constexpr char kLabels[] =
    R"(grpc_method="ProposeSharding",grpc_service="sliceplan.v1.PlannerService",grpc_type="unary")";

// Values by the text before them: "name{labels}".
std::map<std::string, double> Samples(const ServerMetrics& metrics) {
  std::map<std::string, double> samples;
  const std::string text = metrics.Text();
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    if (absl::StartsWith(line, "#")) continue;
    const size_t space = line.rfind(' ');
    double value = 0;
    EXPECT_TRUE(absl::SimpleAtod(line.substr(space + 1), &value)) << line;
    EXPECT_TRUE(samples.emplace(std::string(line.substr(0, space)), value).second) << "twice: " << line;
  }
  return samples;
}

TEST(MetricsTest, CallsByMethodAndCode) {
  const MethodTable table = OneMethod();
  const ServerMetrics metrics(table);
  const CallMetrics::Method& method = metrics.calls().Of(kMethod);
  for (int i = 0; i < 5; ++i) method.Started();
  method.Handled(absl::StatusCode::kOk, absl::Microseconds(200));
  method.Handled(absl::StatusCode::kOk, absl::Milliseconds(3));
  method.Handled(absl::StatusCode::kDeadlineExceeded, absl::Seconds(20));
  method.Handled(static_cast<absl::StatusCode>(77), absl::ZeroDuration());
  const auto samples = Samples(metrics);
  const auto at = [&](const std::string& name) { return samples.at(name); };
  EXPECT_EQ(at(absl::StrCat("grpc_server_started_total{", kLabels, "}")), 5);
  const auto handled = [&](const char* code) {
    return at(absl::StrCat("grpc_server_handled_total{grpc_code=\"", code, "\",", kLabels, "}"));
  };
  EXPECT_EQ(handled("OK"), 2);
  EXPECT_EQ(handled("DeadlineExceeded"), 1);
  EXPECT_EQ(handled("Unknown"), 1);
  EXPECT_EQ(handled("Internal"), 0);
  EXPECT_EQ(at(absl::StrCat("sliceplan_calls_in_flight{", kLabels, "}")), 1);
  const auto at_most = [&](const char* bound) {
    return at(absl::StrCat("grpc_server_handling_seconds_bucket{", kLabels, ",le=\"", bound, "\"}"));
  };
  EXPECT_EQ(at_most("0.0001"), 1);
  EXPECT_EQ(at_most("0.00025"), 2);
  EXPECT_EQ(at_most("0.005"), 3);
  EXPECT_EQ(at_most("10"), 3);
  EXPECT_EQ(at_most("+Inf"), 4);
  EXPECT_NEAR(at(absl::StrCat("grpc_server_handling_seconds_sum{", kLabels, "}")), 0.0002 + 0.003 + 20, 1e-9);
}

TEST(MetricsTest, WhatDoesNotExistSharesOneSeries) {
  const MethodTable table = OneMethod();
  const ServerMetrics metrics(table);
  const size_t count = Samples(metrics).size();
  for (const char* name : {"", "a/b", "sliceplan.v1.PlannerService/NoMethod"}) {
    EXPECT_EQ(&metrics.calls().Of(name), &metrics.calls().Of("something/else")) << name;
    metrics.calls().Of(name).Started();
  }
  const auto samples = Samples(metrics);
  EXPECT_EQ(samples.size(), count);
  EXPECT_EQ(samples.at(R"(grpc_server_started_total{grpc_method="unknown",grpc_service="unknown",grpc_type="unary"})"),
            3);
}

TEST(MetricsTest, SearchesErrorsAndShedWork) {
  const MethodTable table = OneMethod();
  const ServerMetrics metrics(table);
  v1::ProposeShardingResponse reply;
  reply.mutable_search()->set_evaluated_count(40);
  CallContext context;
  metrics.Answered(Result(), reply, context);
  context.search_truncated = true;
  metrics.Answered(Result(), reply, context);
  metrics.Answered(Internal("id", "the cause"), reply, context);
  metrics.Answered(InvalidArgument({{"", "Wrong.", "REASON"}}), reply, context);
  metrics.Shed(ShedReason::kQueueFull);
  metrics.Shed(ShedReason::kQueueFull);
  metrics.Shed(ShedReason::kDraining);
  metrics.Dequeued(absl::Milliseconds(2));
  const auto samples = Samples(metrics);
  EXPECT_EQ(samples.at("sliceplan_searches_total"), 2);
  EXPECT_EQ(samples.at("sliceplan_searches_truncated_total"), 1);
  EXPECT_EQ(samples.at("sliceplan_candidates_evaluated_total"), 80);
  EXPECT_EQ(samples.at("sliceplan_engine_errors_total"), 1);
  EXPECT_EQ(samples.at(R"(sliceplan_shed_total{reason="queue_full"})"), 2);
  EXPECT_EQ(samples.at(R"(sliceplan_shed_total{reason="expired"})"), 0);
  EXPECT_EQ(samples.at(R"(sliceplan_shed_total{reason="draining"})"), 1);
  EXPECT_EQ(samples.at(R"(sliceplan_queue_wait_seconds_bucket{le="0.001"})"), 0);
  EXPECT_EQ(samples.at(R"(sliceplan_queue_wait_seconds_bucket{le="0.0025"})"), 1);
}

TEST(MetricsTest, RefusedTokens) {
  const MethodTable table = OneMethod();
  const ServerMetrics metrics(table);
  const std::pair<absl::StatusCode, const char*> rows[] = {
      {absl::StatusCode::kUnauthenticated, "unauthenticated"},
      {absl::StatusCode::kPermissionDenied, "method"},
      {absl::StatusCode::kResourceExhausted, "rate"},
  };
  double count = 0;
  for (const auto& [code, reason] : rows) {
    const std::string name = absl::StrCat("sliceplan_token_refusals_total{reason=\"", reason, "\"}");
    EXPECT_EQ(Samples(metrics).at(name), 0);
    ++count;
    for (int i = 0; i < count; ++i) metrics.Unauthorized(code);
    EXPECT_EQ(Samples(metrics).at(name), count);
  }
}

TEST(MetricsTest, CatalogAndGauges) {
  const MethodTable table = OneMethod();
  absl::Time now = absl::FromUnixSeconds(1000);
  ServerMetrics metrics(table, [&] { return now; });
  metrics.CatalogLoaded("v1");
  metrics.CatalogReloaded(false);
  metrics.CatalogReloaded(true);
  metrics.CatalogLoaded("v2");
  now += absl::Seconds(90);
  double level = 3;
  metrics.AddGauge("sliceplan_level", "A level.", [&] { return level; });
  metrics.AddGauge("sliceplan_events_total", "Events.", [] { return 7.0; });
  EXPECT_TRUE(absl::StrContains(metrics.Text(), "# TYPE sliceplan_events_total counter\nsliceplan_events_total 7\n"));
  auto samples = Samples(metrics);
  EXPECT_EQ(samples.count(R"(sliceplan_catalog_info{version="v1"})"), 0u);
  EXPECT_EQ(samples.at(R"(sliceplan_catalog_info{version="v2"})"), 1);
  EXPECT_EQ(samples.at("sliceplan_catalog_age_seconds"), 90);
  EXPECT_EQ(samples.at(R"(sliceplan_catalog_reloads_total{result="ok"})"), 1);
  EXPECT_EQ(samples.at(R"(sliceplan_catalog_reloads_total{result="failed"})"), 1);
  EXPECT_EQ(samples.at("sliceplan_level"), 3);
  level = 4;
  EXPECT_EQ(Samples(metrics).at("sliceplan_level"), 4);
}

}  // namespace
}  // namespace sliceplan::rpc
