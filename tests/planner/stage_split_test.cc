#include "server/planner/stage_split.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sliceplan::planner {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

transformer::ModelOperations StackOf(std::vector<int32_t> layer_kind) {
  transformer::ModelOperations model;
  const int32_t kinds = *std::max_element(layer_kind.begin(), layer_kind.end()) + 1;
  model.layers.resize(static_cast<size_t>(kinds));
  for (const int32_t kind : layer_kind) ++model.layers[static_cast<size_t>(kind)].count;
  model.layer_kind = std::move(layer_kind);
  return model;
}

transformer::ModelOperations Homogeneous(int32_t layers) {
  return StackOf(std::vector<int32_t>(static_cast<size_t>(layers), 0));
}

Parallelism Pipeline(int32_t stages, int32_t virtual_stages = 1, std::vector<int32_t> layers = {}) {
  Parallelism parallelism;
  parallelism.ici[LogicalAxis::kPipeline] = stages;
  parallelism.virtual_stage_count = virtual_stages;
  parallelism.layers_per_stage = std::move(layers);
  return parallelism;
}

StageSplit Split(const transformer::ModelOperations& model, const Parallelism& parallelism) {
  StageSplit split;
  SplitStages(model, parallelism, split);
  return split;
}

struct DefaultCase {
  const char* name;
  int32_t layers;
  int32_t stages;
  std::vector<int32_t> expected;
};

TEST(StageSplitTest, DefaultIsAsEvenAsItGoesWithFirstAndLastSmallest) {
  const DefaultCase cases[] = {
      {"one_stage", 80, 1, {80}},
      {"even", 80, 8, {10, 10, 10, 10, 10, 10, 10, 10}},
      // Llama 3 405B: 126 layers over 16 stages, one layer less on the first and the last (Llama 3 paper,
      // section 3.3.2).
      {"llama_3_405b", 126, 16, {7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 7}},
      // 80 = 7 x 11 + 3: three stages have twelve, none of them first or last.
      {"seven_stages_of_80", 80, 7, {11, 11, 11, 12, 12, 12, 11}},
      {"all_but_the_last_grow", 11, 4, {3, 3, 3, 2}},
      {"two_stages", 3, 2, {2, 1}},
      {"one_layer_each", 5, 5, {1, 1, 1, 1, 1}},
  };
  for (const DefaultCase& test : cases) {
    SCOPED_TRACE(test.name);
    const StageSplit split = Split(Homogeneous(test.layers), Pipeline(test.stages));
    EXPECT_THAT(split.layers_per_chunk, ElementsAreArray(test.expected));
    EXPECT_THAT(split.layer_counts, ElementsAreArray(test.expected));
  }
}

TEST(StageSplitTest, PropertiesOfTheDefaultHoldForEveryShape) {
  for (int32_t layers = 1; layers <= 130; ++layers) {
    const transformer::ModelOperations model = Homogeneous(layers);
    for (int32_t stages = 1; stages <= layers; ++stages) {
      const StageSplit split = Split(model, Pipeline(stages));
      const auto& chunks = split.layers_per_chunk;
      ASSERT_EQ(chunks.size(), static_cast<size_t>(stages));
      ASSERT_EQ(std::accumulate(chunks.begin(), chunks.end(), 0), layers);
      const auto [smallest, largest] = std::minmax_element(chunks.begin(), chunks.end());
      ASSERT_LE(*largest - *smallest, 1) << layers << " over " << stages;
      ASSERT_EQ(chunks.back(), *smallest) << layers << " over " << stages;
      if (layers % stages != stages - 1) {
        ASSERT_EQ(chunks.front(), *smallest) << layers << " over " << stages;
      }
      ASSERT_EQ(split.IsUneven(), layers % stages != 0);
    }
  }
}

TEST(StageSplitTest, InterleavedChunksGoRoundTheStages) {
  // Eight layers of alternating kinds on two stages of two chunks: layers 0, 1, 4, 5 and 2, 3, 6, 7.
  const StageSplit split = Split(StackOf({0, 1, 0, 0, 1, 1, 0, 1}), Pipeline(2, 2));
  EXPECT_THAT(split.layers_per_chunk, ElementsAre(2, 2, 2, 2));
  EXPECT_THAT(split.OfStage(0), ElementsAre(1, 3));
  EXPECT_THAT(split.OfStage(1), ElementsAre(3, 1));
}

TEST(StageSplitTest, GivenLayersDecide) {
  // Dense first layers, then experts: kinds land where the given chunks put them.
  const StageSplit split = Split(StackOf({0, 0, 0, 1, 1, 1, 1}), Pipeline(3, 1, {4, 2, 1}));
  EXPECT_THAT(split.OfStage(0), ElementsAre(3, 1));
  EXPECT_THAT(split.OfStage(1), ElementsAre(0, 2));
  EXPECT_THAT(split.OfStage(2), ElementsAre(0, 1));
  EXPECT_TRUE(split.IsUneven());
}

TEST(StageSplitTest, StagesOverSlicesMultiply) {
  Parallelism parallelism = Pipeline(2);
  parallelism.dcn[LogicalAxis::kPipeline] = 3;
  const StageSplit split = Split(Homogeneous(12), parallelism);
  EXPECT_EQ(split.stage_count, 6);
  EXPECT_THAT(split.layer_counts, ElementsAre(2, 2, 2, 2, 2, 2));
}

TEST(StageSplitTest, EveryLayerOfEveryKindIsRunOnceAndStorageIsReusable) {
  std::mt19937 random(1);
  StageSplit split;
  for (int round = 0; round < 2000; ++round) {
    const int32_t layers = std::uniform_int_distribution<int32_t>(1, 60)(random);
    const int32_t kinds = std::uniform_int_distribution<int32_t>(1, 4)(random);
    std::vector<int32_t> stack(static_cast<size_t>(layers));
    for (int32_t& kind : stack) kind = std::uniform_int_distribution<int32_t>(0, kinds - 1)(random);
    const transformer::ModelOperations model = StackOf(stack);
    const int32_t stages = std::uniform_int_distribution<int32_t>(1, layers)(random);
    const int32_t virtual_stages = std::uniform_int_distribution<int32_t>(1, layers / stages)(random);
    SplitStages(model, Pipeline(stages, virtual_stages), split);
    ASSERT_EQ(split.layers_per_chunk.size(), static_cast<size_t>(stages * virtual_stages));
    std::vector<int64_t> totals(model.layers.size(), 0);
    for (int32_t stage = 0; stage < stages; ++stage) {
      ASSERT_EQ(split.OfStage(stage).size(), model.layers.size());
      for (size_t kind = 0; kind < totals.size(); ++kind) totals[kind] += split.OfStage(stage)[kind];
    }
    for (size_t kind = 0; kind < totals.size(); ++kind) ASSERT_EQ(totals[kind], model.layers[kind].count);
  }
}

}  // namespace
}  // namespace sliceplan::planner
