// Names of the RPCs against the contract, and the service config.
#include "client/sliceplan/connection.h"

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/sliceplan/methods.h"
#include "client/sliceplan/service_config.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "grpcpp/support/validate_service_config.h"
#include "gtest/gtest.h"
#include "server/rpc/server_options.h"

namespace sliceplan {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(MethodsTest, AreThoseOfTheContract) {
  std::set<std::string> contract;
  for (const char* service_name : {"PlannerService", "AnalysisService", "CatalogService"}) {
    const auto* const service = google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(
        absl::StrCat("sliceplan.v1.", service_name));
    ASSERT_NE(service, nullptr) << service_name;
    for (int i = 0; i < service->method_count(); ++i) {
      contract.insert(absl::StrCat(service->full_name(), "/", service->method(i)->name()));
    }
  }
  std::set<std::string> known;
  for (const MethodDefaults& method : AllMethods()) known.insert(method.name);
  EXPECT_EQ(known, contract);
}

TEST(MethodsTest, HaveTheDeadlineOfTheirKind) {
  Deadlines deadlines;
  deadlines.estimate = absl::Seconds(4);
  deadlines.search = absl::Seconds(3);
  deadlines.analysis = absl::Seconds(2);
  deadlines.catalog = absl::Seconds(1);
  EXPECT_EQ(DefaultTimeout(kEstimateServing, deadlines), absl::Seconds(4));
  EXPECT_EQ(DefaultTimeout(kProposeSharding, deadlines), absl::Seconds(3));
  EXPECT_EQ(DefaultTimeout(kDescribeModel, deadlines), absl::Seconds(2));
  EXPECT_EQ(DefaultTimeout(kListModels, deadlines), absl::Seconds(1));
  EXPECT_EQ(DefaultTimeout("sliceplan.v1.PlannerService/Other", deadlines), absl::Seconds(1));
}

TEST(ServiceConfigTest, IsOneThatGrpcReads) {
  for (const int attempts : {1, 2, 5}) {
    for (const bool health : {false, true}) {
      ClientOptions options;
      options.retry.max_attempts = attempts;
      options.health_checks = health;
      const std::string json = ServiceConfigJson(options);
      EXPECT_EQ(grpc::experimental::ValidateServiceConfigJSON(json), "") << json;
    }
  }
}

TEST(ServiceConfigTest, SaysWhatTheOptionsSay) {
  ClientOptions options;
  EXPECT_THAT(ServiceConfigJson(options), HasSubstr("round_robin"));
  EXPECT_THAT(ServiceConfigJson(options), HasSubstr("\"serviceName\": \"sliceplan.v1.PlannerService\""));
  EXPECT_THAT(ServiceConfigJson(options), HasSubstr("\"maxAttempts\": 4, \"initialBackoff\": \"0.050000000s\""));
  EXPECT_THAT(ServiceConfigJson(options), HasSubstr("retryThrottling"));
  options.health_checks = false;
  options.retry.max_attempts = 1;
  EXPECT_THAT(ServiceConfigJson(options), Not(HasSubstr("healthCheckConfig")));
  EXPECT_THAT(ServiceConfigJson(options), Not(HasSubstr("retry")));
}

TEST(OptionsTest, DefaultTargetIsADefaultServer) {
  EXPECT_EQ(ClientOptions().target, absl::StrCat("dns:///localhost:", rpc::ServerOptions().port));
}

}  // namespace
}  // namespace sliceplan
