// Every enum value of the contract has its engine value, and back.
#include "server/rpc/convert/enums.h"

#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sliceplan::rpc {
namespace {

using ::testing::HasSubstr;

// Values of the contract that the engine does not have yet, by name.
const std::set<std::string> kNotYet = {
    "OUTCOME_MISSES_SLO",    "OUTCOME_UNSTABLE",  // serving
    "PHASE_PREFILL",         "PHASE_DECODE",     "PHASE_HOST",
    "RESOURCE_HBM_CAPACITY", "RESOURCE_VMEM",    "RESOURCE_PIPELINE_BUBBLE",
    "RESOURCE_HOST",
};

template <typename Proto, typename Engine, size_t N>
void ExpectWhole(const EnumPair<Proto, Engine> (&table)[N]) {
  const google::protobuf::EnumDescriptor& type = *google::protobuf::GetEnumDescriptor<Proto>();
  std::set<int> listed;
  std::set<int> engine_values;
  for (const auto& pair : table) {
    EXPECT_TRUE(listed.insert(pair.proto).second) << type.name() << " lists " << pair.proto << " twice";
    engine_values.insert(static_cast<int>(pair.engine));
    EXPECT_EQ(ToProto(table, pair.engine), pair.proto) << type.name();
  }
  // The engine's enums count from 0 without gaps.
  EXPECT_EQ(engine_values.size(), N) << type.name();
  EXPECT_EQ(*engine_values.begin(), 0) << type.name();
  EXPECT_EQ(*engine_values.rbegin(), static_cast<int>(N) - 1) << type.name();
  for (int i = 0; i < type.value_count(); ++i) {
    if (type.value(i)->number() == 0 || kNotYet.contains(type.value(i)->name())) continue;
    EXPECT_TRUE(listed.contains(type.value(i)->number())) << type.value(i)->name();
  }
}

TEST(EnumsTest, TablesAreWhole) {
  ExpectWhole(kDataTypes);
  ExpectWhole(kEstimationModes);
  ExpectWhole(kOptimizers);
  ExpectWhole(kRematPolicies);
  ExpectWhole(kAttentionKernels);
  ExpectWhole(kAttentionMasks);
  ExpectWhole(kZeroStages);
  ExpectWhole(kPipelineSchedules);
  ExpectWhole(kParallelismAxes);
  ExpectWhole(kPriceModels);
  ExpectWhole(kCollectiveKinds);
  ExpectWhole(kComponents);
  ExpectWhole(kWeightClasses);
  ExpectWhole(kQkNorms);
  ExpectWhole(kLinearAttentionKinds);
  ExpectWhole(kStoredExtraKinds);
  ExpectWhole(kStepResources);
  ExpectWhole(kResources);
  ExpectWhole(kPhases);
  ExpectWhole(kOutcomes);
  ExpectWhole(kFabricTiers);
  ExpectWhole(kObjectives);
  ExpectWhole(kRenderTargets);
}

TEST(EnumsTest, UnspecifiedIsNoValueAndNoViolation) {
  Violations violations;
  const FieldPath request;
  EXPECT_EQ(FromProto(kDataTypes, v1::DATA_TYPE_UNSPECIFIED, FieldPath(request, "dtype"), violations), std::nullopt);
  EXPECT_TRUE(violations.empty());
}

TEST(EnumsTest, UnknownNumberIsAnsweredWithTheLegalNames) {
  Violations violations;
  const FieldPath request;
  EXPECT_EQ(FromProto(kDataTypes, static_cast<v1::DataType>(99), FieldPath(request, "dtype"), violations),
            std::nullopt);
  ASSERT_EQ(violations.size(), 1u);
  EXPECT_EQ(violations.errors()[0].field, "dtype");
  EXPECT_THAT(violations.errors()[0].description, HasSubstr("99 is no DataType"));
  EXPECT_THAT(violations.errors()[0].description, HasSubstr("DATA_TYPE_BF16, DATA_TYPE_FP16"));
}

}  // namespace
}  // namespace sliceplan::rpc
