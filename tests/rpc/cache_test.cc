// The model cache and the page tokens.
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/rpc/model_cache.h"
#include "server/rpc/page.h"

namespace sliceplan::rpc {
namespace {

ModelHandle Named(const std::string& name) {
  auto model = std::make_shared<ParsedModel>();
  model->name = name;
  return model;
}

TEST(ModelCacheTest, ForgetsWhatWasNotUsedForLongest) {
  ModelCache cache(/*max_models=*/2);
  cache.Insert("a", Named("A"));
  cache.Insert("b", Named("B"));
  ASSERT_NE(cache.Find("a"), nullptr);
  cache.Insert("c", Named("C"));
  EXPECT_NE(cache.Find("a"), nullptr);
  EXPECT_EQ(cache.Find("b"), nullptr);
  EXPECT_EQ(cache.Find("c")->name, "C");
  EXPECT_EQ(cache.size(), 2u);
}

TEST(ModelCacheTest, BoundsTheBytesOfKeys) {
  ModelCache cache(/*max_models=*/100, /*max_key_bytes=*/10);
  cache.Insert("aaaa", Named("A"));
  cache.Insert("bbbb", Named("B"));
  cache.Insert("cccc", Named("C"));
  EXPECT_EQ(cache.Find("aaaa"), nullptr);
  EXPECT_NE(cache.Find("bbbb"), nullptr);
  cache.Insert(std::string(11, 'x'), Named("too long"));
  EXPECT_EQ(cache.Find(std::string(11, 'x')), nullptr);
  EXPECT_NE(cache.Find("cccc"), nullptr);
}

TEST(ModelCacheTest, KeepsTheFirstOfEqualKeys) {
  ModelCache cache;
  const ModelHandle first = Named("first");
  cache.Insert("k", first);
  cache.Insert("k", Named("second"));
  EXPECT_EQ(cache.Find("k"), first);
  EXPECT_EQ(cache.size(), 1u);
}

TEST(ModelCacheTest, ContainsDoesNotCountAsUse) {
  ModelCache cache(/*max_models=*/2);
  cache.Insert("a", Named("A"));
  cache.Insert("b", Named("B"));
  EXPECT_TRUE(cache.Contains("a"));
  cache.Insert("c", Named("C"));
  EXPECT_FALSE(cache.Contains("a"));
}

TEST(ModelCacheTest, ModelsOutliveTheirPlace) {
  ModelCache cache(/*max_models=*/1);
  cache.Insert("a", Named("A"));
  const ModelHandle held = cache.Find("a");
  cache.Insert("b", Named("B"));
  EXPECT_EQ(held->name, "A");
}

TEST(ModelCacheTest, ManyThreads) {
  ModelCache cache(/*max_models=*/8);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&cache, t] {
      for (int i = 0; i < 2000; ++i) {
        const std::string key = absl::StrCat((i * 7 + t) % 20);
        if (const ModelHandle model = cache.Find(key); model != nullptr) {
          EXPECT_EQ(model->name, key);
        } else {
          cache.Insert(key, Named(key));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(cache.size(), 8u);
}

TEST(PageTokenTest, HoldsForItsListFilterAndCatalog) {
  const std::string token = MakePageToken("Price", "region=\"x\"", "v1", 100);
  EXPECT_EQ(ReadPageToken(token, "Price", "region=\"x\"", "v1"), 100u);
  EXPECT_EQ(ReadPageToken(token, "Slice", "region=\"x\"", "v1"), std::nullopt);
  EXPECT_EQ(ReadPageToken(token, "Price", "", "v1"), std::nullopt);
  EXPECT_EQ(ReadPageToken(token, "Price", "region=\"x\"", "v2"), std::nullopt);
}

TEST(PageTokenTest, AnythingElseIsRefused) {
  const std::string token = MakePageToken("Price", "", "v1", 50);
  EXPECT_EQ(token, MakePageToken("Price", "", "v1", 50));
  for (size_t i = 0; i < token.size(); ++i) {
    std::string changed = token;
    changed[i] = changed[i] == 'A' ? 'B' : 'A';
    const auto read = ReadPageToken(changed, "Price", "", "v1");
    // A change that decodes to the same bytes (padding bits) is the same token.
    EXPECT_EQ(read.value_or(50), 50u) << i;
  }
  for (const std::string& text : {std::string("50"), std::string(" "), std::string("!!!"), std::string(5000, 'A')}) {
    EXPECT_EQ(ReadPageToken(text, "Price", "", "v1"), std::nullopt);
  }
}

}  // namespace
}  // namespace sliceplan::rpc
