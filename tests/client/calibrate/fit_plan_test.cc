#include "client/calibrate/fit_plan.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "client/calibrate/default_fit_plan.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/calibrate/synthetic_cases.h"

namespace sliceplan::calibrate {
namespace {

using ::testing::HasSubstr;

constexpr char kHeader[] = "profile,leave_out,family,constant,scale,prior,spread,lower,upper\n";

absl::StatusOr<std::vector<FitPlan>> Read(absl::string_view text) {
  static const std::unique_ptr<Predictor>* const predictor = new std::unique_ptr<Predictor>(BuiltInPredictor());
  const absl::StatusOr<Table> table = Table::Parse(text);
  if (!table.ok()) return table.status();
  return ToFitPlan(*table, (*predictor)->catalog().calibration_profiles());
}

TEST(FitPlan, TheBuiltInPlanHoldsForTheBuiltInProfiles) {
  const absl::StatusOr<std::vector<FitPlan>> plans = Read(DefaultFitPlan());
  ASSERT_TRUE(plans.ok()) << plans.status();
  EXPECT_GT(plans->size(), 1U);
  for (const FitPlan& plan : *plans) {
    EXPECT_EQ(plan.names.size(), plan.constants.size());
    EXPECT_FALSE(plan.names.empty());
  }
}

TEST(FitPlan, AFamilyHasConstantsOfItsOwn) {
  const auto plans = Read(absl::StrCat(kHeader,
                                       "megatron-gpu,model,,matmul_inverse_ratio,log,1.1,0.1,1,2\n"
                                       "megatron-gpu,model,Blackwell,matmul_inverse_ratio,log,,0.2,1,2\n"));
  ASSERT_TRUE(plans.ok()) << plans.status();
  ASSERT_EQ(plans->size(), 1U);
  const FitPlan& plan = (*plans)[0];
  EXPECT_EQ(plan.profiles, std::vector<std::string>{"megatron-gpu"});
  EXPECT_EQ(plan.leave_outs, std::vector<LeaveOut>{LeaveOut::kModel});
  EXPECT_EQ(plan.constants[0].prior, 1.1);
  EXPECT_EQ(plan.constants[1].name, "Blackwell/matmul_inverse_ratio");
  EXPECT_EQ(plan.constants[1].prior, plan.constants[1].start);
  EXPECT_NE(plan.constants[0].start, plan.constants[1].start);
}

TEST(FitPlan, ProfilesThatALineNamesTogetherAreOneFit) {
  const auto plans = Read(absl::StrCat(kHeader,
                                       "vllm-gpu,model accelerator,,seconds_per_layer,log,,0.5,0.000001,0.002\n"
                                       "maxtext-tpu,source,,attention_ratio,log,,0.1,0.1,1\n"
                                       "trtllm-gpu vllm-gpu,model accelerator,,weights_hbm_ratio,log,,0.2,0.2,1\n"));
  ASSERT_TRUE(plans.ok()) << plans.status();
  ASSERT_EQ(plans->size(), 2U);
  const FitPlan& joint = (*plans)[0];
  EXPECT_EQ(joint.profiles, (std::vector<std::string>{"vllm-gpu", "trtllm-gpu"}));
  EXPECT_EQ(joint.leave_outs, (std::vector<LeaveOut>{LeaveOut::kModel, LeaveOut::kAccelerator}));
  EXPECT_EQ(ConstantsOf(joint, 0), (std::vector<size_t>{0, 1}));
  EXPECT_EQ(ConstantsOf(joint, 1), (std::vector<size_t>{1}));
  EXPECT_EQ(joint.constants[0].name, "vllm-gpu seconds_per_layer");
  EXPECT_EQ(joint.constants[1].name, "weights_hbm_ratio");
  EXPECT_EQ((*plans)[1].profiles, std::vector<std::string>{"maxtext-tpu"});
}

struct BrokenPlan {
  const char* name;
  const char* line;
  const char* message;
};

TEST(FitPlan, Broken) {
  const BrokenPlan kCases[] = {
      {"profile", "no-such,source,,matmul_inverse_ratio,log,,0.1,1,2", "no such profile"},
      {"constant", "maxtext-tpu,source,,no_such,log,,0.1,1,2", "is not in the profile"},
      {"family", "maxtext-tpu,source,None,attention_ratio,log,,0.1,0.1,1", "is not in the profile"},
      {"fold", "maxtext-tpu,day,,attention_ratio,log,,0.1,0.1,1", "leave_out must be"},
      {"scale", "maxtext-tpu,source,,attention_ratio,cubic,,0.1,0.1,1", "scale must be"},
      {"no spread", "maxtext-tpu,source,,attention_ratio,log,,,0.1,1", "must be numbers"},
      {"spread", "maxtext-tpu,source,,attention_ratio,log,,-1,0.1,1", "spread must be above 0"},
      {"log of 0", "maxtext-tpu,source,,attention_ratio,log,,0.1,0,1", "above 0 on a log scale"},
      {"bounds", "maxtext-tpu,source,,attention_ratio,log,,0.1,1,0.5", "lower must be below upper"},
      {"prior outside", "maxtext-tpu,source,,attention_ratio,log,0.01,0.1,0.1,1", "between the bounds"},
      {"value outside", "maxtext-tpu,source,,attention_ratio,log,0.3,0.1,0.2,0.4", "between the bounds"},
      {"a share above 1", "maxtext-tpu,source,,attention_ratio,log,,0.1,0.1,1.5", "at most 1"},
      {"twice",
       "maxtext-tpu,source,,attention_ratio,log,,0.1,0.1,1\nmaxtext-tpu,source,,attention_ratio,log,,0.1,0.1,1",
       "is there twice"},
      {"no fold", "maxtext-tpu,,,attention_ratio,log,,0.1,0.1,1", "leave_out must be"},
      {"shared and twice",
       "vllm-gpu trtllm-gpu,model,,kv_hbm_ratio,log,,0.1,0.1,1\nvllm-gpu,model,,kv_hbm_ratio,log,,0.1,0.1,1",
       "is there twice"},
      {"shared and not alike", "vllm-gpu trtllm-gpu,model,,first_token_seconds,log,,0.1,0.001,1",
       "its values in the profiles differ"},
      {"two folds",
       "maxtext-tpu,source,,attention_ratio,log,,0.1,0.1,1\nmaxtext-tpu,row,,collective_ratio,log,,0.1,0.1,1",
       "the same in all lines"},
  };
  for (const BrokenPlan& c : kCases) {
    const auto plans = Read(absl::StrCat(kHeader, c.line, "\n"));
    ASSERT_FALSE(plans.ok()) << c.name;
    EXPECT_THAT(std::string(plans.status().message()), HasSubstr(c.message)) << c.name;
  }
  EXPECT_THAT(std::string(Read("profile,constant\n").status().message()), HasSubstr("column leave_out is missing"));
}

TEST(FoldOf, EachKey) {
  Case asked;
  asked.id = "A-1";
  asked.source = "A";
  asked.model = "small";
  asked.accelerator = "chip";
  std::set<std::string> folds;
  for (const char* name : {"row", "source", "model", "accelerator", "source+model"}) {
    ASSERT_TRUE(ToLeaveOut(name).has_value()) << name;
    EXPECT_EQ(NameOf(*ToLeaveOut(name)), name);
    folds.insert(FoldOf(*ToLeaveOut(name), asked));
  }
  EXPECT_THAT(folds, ::testing::ElementsAre("A", "A small", "A-1", "chip", "small"));
  EXPECT_FALSE(ToLeaveOut("day").has_value());
}

}  // namespace
}  // namespace sliceplan::calibrate
