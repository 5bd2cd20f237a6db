#include "server/rpc/errors.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/google/rpc/error_details.pb.h"
#include "server/rpc/field_path.h"
#include "server/rpc/violations.h"

namespace sliceplan::rpc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

template <typename Detail>
std::vector<Detail> DetailsOf(const Result& result) {
  std::vector<Detail> found;
  for (const auto& any : result.status().details()) {
    Detail detail;
    if (any.Is<Detail>() && any.UnpackTo(&detail)) found.push_back(detail);
  }
  return found;
}

TEST(ErrorsTest, EachSituationHasItsCodeAndDetails) {
  struct Row {
    const char* name;
    Result result;
    absl::StatusCode code;
    std::vector<std::string> details;
  };
  const std::string prefix = "type.googleapis.com/google.rpc.";
  Row rows[] = {
      {"malformed field",
       InvalidArgument({{"slice.topology", "is not a shape.", "MALFORMED_TOPOLOGY"}}),
       absl::StatusCode::kInvalidArgument,
       {"BadRequest", "ErrorInfo"}},
      {"unknown name",
       NotFound("accelerator", "tpu-v9", "There is no such chip.", "UNKNOWN_ACCELERATOR", "slice"),
       absl::StatusCode::kNotFound,
       {"ResourceInfo", "ErrorInfo"}},
      {"later", Unimplemented("a.B/C", "Comes later."), absl::StatusCode::kUnimplemented, {"ErrorInfo"}},
      {"queue full",
       Overloaded(absl::Milliseconds(150)),
       absl::StatusCode::kResourceExhausted,
       {"RetryInfo", "ErrorInfo"}},
      {"over its share",
       OverShare(absl::Milliseconds(150)),
       absl::StatusCode::kResourceExhausted,
       {"RetryInfo", "ErrorInfo"}},
      {"too often",
       RateLimited("dashboard", absl::Milliseconds(150)),
       absl::StatusCode::kResourceExhausted,
       {"RetryInfo", "ErrorInfo"}},
      {"unread",
       RepliesUnread(absl::Milliseconds(150)),
       absl::StatusCode::kResourceExhausted,
       {"RetryInfo", "ErrorInfo"}},
      {"no token", Unauthenticated(true), absl::StatusCode::kUnauthenticated, {"ErrorInfo"}},
      {"unknown token", Unauthenticated(false), absl::StatusCode::kUnauthenticated, {"ErrorInfo"}},
      {"not allowed", PermissionDenied("dashboard", "a.B/C"), absl::StatusCode::kPermissionDenied, {"ErrorInfo"}},
      {"draining", Draining(), absl::StatusCode::kUnavailable, {}},
      {"too late", DeadlineExceeded(), absl::StatusCode::kDeadlineExceeded, {}},
      {"cancelled", Cancelled(), absl::StatusCode::kCancelled, {}},
      {"invariant", Internal("id-7", "secret"), absl::StatusCode::kInternal, {"ErrorInfo"}},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(row.result.code(), row.code) << row.name;
    EXPECT_FALSE(row.result.status().message().empty()) << row.name;
    ASSERT_EQ(row.result.status().details_size(), static_cast<int>(row.details.size())) << row.name;
    for (size_t i = 0; i < row.details.size(); ++i) {
      EXPECT_EQ(row.result.status().details(static_cast<int>(i)).type_url(), prefix + row.details[i]) << row.name;
    }
  }
}

TEST(ErrorsTest, OkHasNoError) {
  const Result ok;
  EXPECT_TRUE(ok.ok());
  EXPECT_EQ(ok.code(), absl::StatusCode::kOk);
  EXPECT_EQ(ok.log_text(), "");
}

TEST(ErrorsTest, RetryDelayIsInDetailsAndMetadata) {
  const Result result = Overloaded(absl::Milliseconds(1250));
  const auto retry = DetailsOf<google::rpc::RetryInfo>(result);
  ASSERT_THAT(retry, SizeIs(1));
  EXPECT_EQ(retry[0].retry_delay().seconds(), 1);
  EXPECT_EQ(retry[0].retry_delay().nanos(), 250'000'000);
  EXPECT_EQ(DetailsOf<google::rpc::ErrorInfo>(result)[0].metadata().at("retry_delay_ms"), "1250");
}

TEST(ErrorsTest, CauseOfInternalErrorStaysInTheLog) {
  const Result result = Internal("id-7", "vector of 12 at 0x7fff");
  EXPECT_THAT(result.status().message(), HasSubstr("id-7"));
  EXPECT_EQ(result.status().SerializeAsString().find("0x7fff"), std::string::npos);
  EXPECT_EQ(result.log_text(), "vector of 12 at 0x7fff");
}

TEST(ErrorsTest, AllViolationsAreListedInOrder) {
  const Result result = InvalidArgument({{"a", "one.", "R"}, {"b[1].c", "two.", "R"}, {"", "three.", "R"}});
  const auto bad = DetailsOf<google::rpc::BadRequest>(result);
  ASSERT_THAT(bad, SizeIs(1));
  std::vector<std::string> fields;
  for (const auto& violation : bad[0].field_violations()) fields.push_back(violation.field());
  EXPECT_THAT(fields, ElementsAre("a", "b[1].c", ""));
  const auto info = DetailsOf<google::rpc::ErrorInfo>(result);
  EXPECT_EQ(info[0].reason(), "R");
  EXPECT_EQ(info[0].domain(), kErrorDomain);
  EXPECT_EQ(info[0].metadata().at("violation_count"), "3");
}

TEST(ErrorsTest, DifferentReasonsAreNamedTogether) {
  const auto info =
      DetailsOf<google::rpc::ErrorInfo>(InvalidArgument({{"a", "one.", "R2"}, {"b", "two.", "R1"}, {"c", "x.", "R2"}}));
  EXPECT_EQ(info[0].reason(), "INVALID_REQUEST");
  EXPECT_EQ(info[0].metadata().at("reasons"), "R1,R2");
}

// Trailers stop at 8 KiB: whatever a request holds, its error must stay far below.
TEST(ErrorsTest, SizesAreBounded) {
  for (const size_t count : {1u, 2u, 19u, 20u, 21u, 1000u}) {
    for (const size_t length : {1u, 100u, 500u, 100'000u}) {
      std::vector<FieldError> errors;
      for (size_t i = 0; i < count; ++i) {
        errors.push_back({std::string(length, 'f'), std::string(length, 'd'), absl::StrCat("REASON_", i)});
      }
      const Result result = InvalidArgument(errors);
      EXPECT_LE(result.status().message().size(), kMaxMessageBytes) << count << " of " << length;
      EXPECT_LE(result.status().ByteSizeLong(), kMaxStatusBytes) << count << " of " << length;
      const auto bad = DetailsOf<google::rpc::BadRequest>(result);
      ASSERT_THAT(bad, SizeIs(1));
      EXPECT_GE(bad[0].field_violations_size(), 1);
      EXPECT_LE(bad[0].field_violations_size(), static_cast<int>(kMaxViolations));
      const google::rpc::ErrorInfo info = DetailsOf<google::rpc::ErrorInfo>(result)[0];
      const auto& metadata = info.metadata();
      EXPECT_EQ(metadata.at("violation_count"), absl::StrCat(count));
      const bool all = bad[0].field_violations_size() == static_cast<int>(count);
      EXPECT_EQ(metadata.count("listed_violation_count"), all ? 0u : 1u);
    }
  }
}

TEST(ErrorsTest, TwentyUsualViolationsAllFit) {
  std::vector<FieldError> errors;
  for (int i = 0; i < 20; ++i) {
    errors.push_back({absl::StrCat("model.architecture.layer_groups[", i, "].repeat_count"),
                      "must be 1 to 4,096; it is 0, and so on.", "OUT_OF_RANGE"});
  }
  EXPECT_EQ(DetailsOf<google::rpc::BadRequest>(InvalidArgument(errors))[0].field_violations_size(), 20);
}

TEST(ErrorsTest, SameErrorHasSameBytes) {
  const auto make = [] {
    return NotFound("accelerator", "x", "No.", "UNKNOWN_ACCELERATOR", "slice.accelerator").status().SerializeAsString();
  };
  const std::string first = make();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(make(), first);
}

TEST(FieldPathTest, RendersProtoPaths) {
  const FieldPath request;
  const FieldPath model(request, "model");
  const FieldPath architecture(model, "architecture");
  const FieldPath group(architecture, "layer_groups", 2);
  EXPECT_EQ(request.ToString(), "");
  EXPECT_EQ(model.ToString(), "model");
  EXPECT_EQ(FieldPath(group, "repeat_count").ToString(), "model.architecture.layer_groups[2].repeat_count");
}

TEST(ViolationsTest, OneUnknownNameIsNotFound) {
  const FieldPath request;
  const FieldPath path(request, "accelerator");
  Violations one;
  one.AddUnknownName(path, "accelerator", "tpu-v9", "There is no tpu-v9; did you mean tpu-v5p?", "UNKNOWN_ACCELERATOR");
  const Result alone = one.ToResult();
  EXPECT_EQ(alone.code(), absl::StatusCode::kNotFound);
  const auto resource = DetailsOf<google::rpc::ResourceInfo>(alone);
  ASSERT_THAT(resource, SizeIs(1));
  EXPECT_EQ(resource[0].resource_type(), "accelerator");
  EXPECT_EQ(resource[0].resource_name(), "tpu-v9");
  EXPECT_THAT(resource[0].description(), HasSubstr("tpu-v5p"));

  one.Add(FieldPath(request, "bytes"), "must be positive.");
  EXPECT_EQ(one.ToResult().code(), absl::StatusCode::kInvalidArgument);
}

TEST(ViolationsTest, UnknownNameOfTheCatalogKeepsItsType) {
  const FieldPath request;
  Violations violations;
  violations.Add(FieldPath(request, "slice"),
                 {"machine_type", "There is none.", "UNKNOWN_MACHINE_TYPE", hardware::Violation::Kind::kNotFound},
                 "ct9-standard");
  const Result result = violations.ToResult();
  const auto resource = DetailsOf<google::rpc::ResourceInfo>(result);
  ASSERT_THAT(resource, SizeIs(1));
  EXPECT_EQ(resource[0].resource_type(), "machine type");
  EXPECT_EQ(resource[0].resource_name(), "ct9-standard");
  EXPECT_EQ(DetailsOf<google::rpc::ErrorInfo>(result)[0].metadata().at("field"), "slice.machine_type");
}

TEST(ViolationsTest, AddMissingLeavesOutKnownFieldsOnly) {
  const FieldPath request;
  Violations violations;
  violations.Add(FieldPath(request, "a"), "said.");
  violations.AddMissing(request, {{"a", "again.", "R"}, {"b", "first.", "R"}, {"b", "second.", "R"}});
  std::vector<std::string> said;
  for (const FieldError& error : violations.errors()) said.push_back(error.field + ": " + error.description);
  EXPECT_THAT(said, ElementsAre("a: said.", "b: first.", "b: second."));
}

}  // namespace
}  // namespace sliceplan::rpc
