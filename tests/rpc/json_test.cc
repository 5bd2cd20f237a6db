#include "server/rpc/json.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/google/rpc/error_details.pb.h"
#include "proto/sliceplan/v1/training.pb.h"
#include "server/rpc/json_diagnosis.h"

namespace sliceplan::rpc {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::vector<FieldError> Diagnose(const std::string& text) {
  return DiagnoseJson(text, *v1::EstimateTrainingRequest::descriptor());
}

TEST(ParseJsonTest, EitherSpellingOfNames) {
  for (const char* text : {R"({"slice":{"sliceCount":2},"workload":{"globalBatchTokens":"4194304"}})",
                           R"({"slice":{"slice_count":2},"workload":{"global_batch_tokens":4194304}})"}) {
    v1::EstimateTrainingRequest request;
    ASSERT_TRUE(ParseJson(text, &request).ok()) << text;
    EXPECT_EQ(request.slice().slice_count(), 2);
    EXPECT_EQ(request.workload().global_batch_tokens(), 4194304);
  }
}

struct BadCase {
  const char* text;
  const char* field;
  const char* says;
};

const BadCase kBadCases[] = {
    {R"({"workload":{"optimizer":"ADAM"}})", "workload.optimizer", "OPTIMIZER_ADAMW, OPTIMIZER_ADAFACTOR"},
    {R"({"workload":{"remat_policy":"minimal"}})", "workload.remat_policy", "REMAT_POLICY_MINIMAL_FLASH"},
    {R"({"workload":{"sequenceLenght":1}})", "workload", "sequenceLength"},
    {R"({"workload":{"sequence_length":"long"}})", "workload.sequence_length", "whole number of 32 bits"},
    {R"({"workload":{"sequence_length":3000000000}})", "workload.sequence_length", "whole number of 32 bits"},
    {R"({"workload":{"sequence_length":1.5}})", "workload.sequence_length", "whole number"},
    {R"({"slice":"tpu-v5p"})", "slice", "an object (Slice)"},
    {R"({"slice":{"twisted":"maybe"}})", "slice.twisted", "true or false"},
    {R"({"slice":{"topology":8}})", "slice.topology", "text in quotes"},
    {R"({"assumed_mfu_ratio":"forty"})", "assumed_mfu_ratio", "a number"},
    {R"({"parallelism":{"mapping":[{"factor":2},{"factor":"x"}]}})", "parallelism.mapping[1].factor", "whole number"},
    {R"({"workload":{"global_batch_size":1,"global_batch_tokens":2}})", "workload.global_batch_tokens",
     "global_batch_size"},
};

TEST(ParseJsonTest, SaysWhatIsWrong) {
  for (const BadCase& c : kBadCases) {
    v1::EstimateTrainingRequest request;
    const Result result = ParseJson(c.text, &request);
    ASSERT_FALSE(result.ok()) << c.text;
    EXPECT_EQ(result.code(), absl::StatusCode::kInvalidArgument) << c.text;
    const std::vector<FieldError> errors = Diagnose(c.text);
    ASSERT_EQ(errors.size(), 1u) << c.text;
    EXPECT_EQ(errors[0].field, c.field) << c.text;
    EXPECT_THAT(errors[0].description, HasSubstr(c.says)) << c.text;
  }
}

TEST(ParseJsonTest, AllProblemsAtOnce) {
  const std::vector<FieldError> errors = Diagnose(
      R"({"slise":1,"workload":{"optimizer":"ADAM","sequence_length":[]},"parallelism":{"ici":{"tensor":"4x"}}})");
  ASSERT_EQ(errors.size(), 4u);
}

TEST(ParseJsonTest, GoodRequestsHaveNoDiagnosis) {
  for (const char* text : {"{}", R"({"workload":null})", R"({"workload":{"optimizer":1}})",
                           R"({"workload":{"sequence_length":8e3}})", R"({"budget_usd":"1.5"})"}) {
    v1::EstimateTrainingRequest request;
    EXPECT_TRUE(ParseJson(text, &request).ok()) << text;
    EXPECT_THAT(Diagnose(text), IsEmpty()) << text;
  }
}

TEST(ParseJsonTest, RefusesWhatIsNotJson) {
  const std::string deep = std::string(10'000, '[') + std::string(10'000, ']');
  for (const std::string& text :
       {std::string(), std::string("{'slice':{}}"), std::string("{slice:{}}"), std::string("{\"slice\":{}"),
        std::string("{} {}"), std::string("NaN"), std::string("{\"budget_usd\":NaN}"),
        std::string("{\"budget_usd\":1e999}"), std::string("\xFF"), deep}) {
    v1::EstimateTrainingRequest request;
    const Result result = ParseJson(text, &request);
    ASSERT_FALSE(result.ok()) << text.substr(0, 40);
    EXPECT_EQ(result.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(JsonSyntaxProblem(text), Not(IsEmpty())) << text.substr(0, 40);
  }
}

TEST(ParseJsonTest, RefusesWhatIsTooLong) {
  v1::EstimateTrainingRequest request;
  EXPECT_FALSE(ParseJson(absl::StrCat("{}", std::string(kMaxJsonBytes, ' ')), &request).ok());
}

TEST(ParseJsonTest, SyntaxProblemHasItsPlace) {
  EXPECT_THAT(JsonSyntaxProblem("{\"slice\":\n  tpu}"), HasSubstr("line 2"));
  EXPECT_EQ(JsonSyntaxProblem("{\"a\": [1, 2.5e3, \"x\", null]}"), "");
}

TEST(PrintJsonTest, ZerosAreWrittenAndAbsentMeansUnknown) {
  v1::TrainingEstimate estimate;
  estimate.set_outcome(v1::OUTCOME_FEASIBLE);
  estimate.mutable_memory()->set_used_bytes(int64_t{1} << 40);
  estimate.set_mfu_ratio(0);
  const std::string text = PrintJson(estimate);
  EXPECT_THAT(text, HasSubstr("\"outcome\":\"OUTCOME_FEASIBLE\""));
  EXPECT_THAT(text, HasSubstr("\"usedBytes\":\"1099511627776\""));
  EXPECT_THAT(text, HasSubstr("\"headroomBytes\":\"0\""));
  EXPECT_THAT(text, HasSubstr("\"idleChipCount\":0"));
  EXPECT_THAT(text, HasSubstr("\"mfuRatio\":0"));
  EXPECT_THAT(text, Not(HasSubstr("hfuRatio")));
  EXPECT_THAT(text, Not(HasSubstr("timeToTrainSeconds")));
  EXPECT_THAT(text, Not(HasSubstr("\n")));
  EXPECT_THAT(PrintPrettyJson(estimate), HasSubstr("\n"));
}

}  // namespace
}  // namespace sliceplan::rpc
