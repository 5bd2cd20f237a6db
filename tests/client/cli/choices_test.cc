// Short names of enum values.
#include "client/cli/choices.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/sliceplan/v1/collective.pb.h"
#include "proto/sliceplan/v1/parallelism.pb.h"
#include "proto/sliceplan/v1/training.pb.h"

namespace sliceplan::cli {
namespace {

using ::testing::HasSubstr;

TEST(ChoicesTest, ReadsAnySpelling) {
  for (const char* text :
       {"save-matmul-outputs", "SAVE_MATMUL_OUTPUTS", "Save_Matmul-Outputs", "REMAT_POLICY_SAVE_MATMUL_OUTPUTS"}) {
    EXPECT_EQ(*ParseChoice(*v1::RematPolicy_descriptor(), text), v1::REMAT_POLICY_SAVE_MATMUL_OUTPUTS) << text;
  }
  EXPECT_EQ(*ParseChoice(*v1::PipelineSchedule_descriptor(), "1f1b"), v1::PIPELINE_SCHEDULE_ONE_F_ONE_B);
  EXPECT_EQ(*ParseChoice(*v1::ZeroStage_descriptor(), "0"), v1::ZERO_STAGE_0);
  EXPECT_EQ(*ParseChoice(*v1::ZeroStage_descriptor(), "3"), v1::ZERO_STAGE_3);
  EXPECT_EQ(*ParseChoice(*v1::CollectiveKind_descriptor(), "permute"), v1::COLLECTIVE_KIND_COLLECTIVE_PERMUTE);
}

TEST(ChoicesTest, ListsWhatThereIs) {
  const absl::Status status = ParseChoice(*v1::AttentionKernel_descriptor(), "fast").status();
  EXPECT_EQ(status.message(), "'fast' is none of flash, materialized, flash-fused-backward; did you mean flash?");
  // The value that stands for "not set" is no choice.
  EXPECT_FALSE(ParseChoice(*v1::AttentionKernel_descriptor(), "unspecified").ok());
}

TEST(ChoicesTest, ShowsWhatItReads) {
  for (const auto* const type :
       {v1::RematPolicy_descriptor(), v1::CollectiveKind_descriptor(), v1::PipelineSchedule_descriptor(),
        v1::Optimizer_descriptor(), v1::ZeroStage_descriptor()}) {
    std::set<std::string> names;
    for (int i = 1; i < type->value_count(); ++i) {
      const std::string name = ChoiceName(*type, type->value(i)->number());
      EXPECT_EQ(*ParseChoice(*type, name), type->value(i)->number()) << name;
      EXPECT_TRUE(names.insert(name).second) << name;
    }
  }
  EXPECT_EQ(ChoiceName(v1::COLLECTIVE_KIND_ALL_GATHER), "all-gather");
  EXPECT_EQ(ChoiceName(v1::COLLECTIVE_KIND_UNSPECIFIED), "unset");
  EXPECT_EQ(ChoiceName(*v1::Optimizer_descriptor(), 99), "number 99");
}

}  // namespace
}  // namespace sliceplan::cli
