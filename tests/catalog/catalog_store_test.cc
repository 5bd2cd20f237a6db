#include "server/catalog/catalog_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"

namespace sliceplan::catalog {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class CatalogStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::path(testing::TempDir()) /
                 absl::StrCat("catalog-", getpid(), "-", testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }

  void Write(const std::string& name, const std::string& text) {
    fs::create_directories((directory_ / name).parent_path());
    std::ofstream(directory_ / name, std::ios::binary) << text;
  }
  static std::string Price(double usd) {
    return absl::StrCat(
        "# proto-message: sliceplan.catalog.v1.Prices\nprices { provider: \"gcp\" accelerator: \"tpu-v5p\" region: "
        "\"us-east5\" "
        "price_model: PRICE_MODEL_ON_DEMAND usd_per_chip_hour: ",
        usd, " as_of: \"2026-11-29\" source: \"contract\" }\n");
  }
  static double PriceOf(const Catalog& catalog) {
    hardware::PriceQuery query;
    query.accelerator = "tpu-v5p";
    query.region = "us-east5";
    return catalog.prices().Resolve(query).row->usd_per_chip_hour;
  }

  fs::path directory_;
};

TEST_F(CatalogStoreTest, WithoutADirectoryItIsTheBuiltInCatalog) {
  const auto store = CatalogStore::Create("");
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ((*store)->Snapshot()->version(), (*BuiltInCatalog())->version());
  EXPECT_TRUE((*store)->Reload().ok());
}

TEST_F(CatalogStoreTest, ReadsTheDirectoryAgainAndKeepsOldSnapshotsAlive) {
  Write("prices/ours.textproto", Price(3));
  const auto store = CatalogStore::Create(directory_);
  ASSERT_TRUE(store.ok()) << store.status();
  const std::shared_ptr<const Catalog> first = (*store)->Snapshot();
  EXPECT_EQ(PriceOf(*first), 3);
  Write("prices/ours.textproto", Price(2));
  EXPECT_EQ(PriceOf(*(*store)->Snapshot()), 3) << "nothing changes by itself";
  ASSERT_TRUE((*store)->Reload().ok());
  EXPECT_EQ(PriceOf(*(*store)->Snapshot()), 2);
  EXPECT_EQ(PriceOf(*first), 3);
  EXPECT_NE(first->version(), (*store)->Snapshot()->version());
}

TEST_F(CatalogStoreTest, ABadDirectoryLeavesTheOldCatalog) {
  Write("ours.textproto", Price(3));
  const auto store = CatalogStore::Create(directory_);
  ASSERT_TRUE(store.ok()) << store.status();
  Write("ours.textproto", Price(-1));
  Write("more.textproto", "# proto-message: Prices\nprices {");
  const absl::Status status = (*store)->Reload();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("ours.textproto: prices gcp tpu-v5p us-east5"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("more.textproto: line 2"));
  EXPECT_EQ(PriceOf(*(*store)->Snapshot()), 3);
  fs::remove_all(directory_);
  EXPECT_EQ((*store)->Reload().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(PriceOf(*(*store)->Snapshot()), 3);
}

TEST_F(CatalogStoreTest, ABadDirectoryAtStartIsAnError) {
  EXPECT_EQ(CatalogStore::Create(directory_ / "missing").status().code(), absl::StatusCode::kNotFound);
  Write("bad.textproto", "nothing");
  EXPECT_EQ(CatalogStore::Create(directory_).status().code(), absl::StatusCode::kInvalidArgument);
}

// Kubernetes mounts a ConfigMap as links into a directory "..data", itself a link to a dated one.
TEST_F(CatalogStoreTest, ReadsAMountedConfigMapOnce) {
  Write("..2026_11_29/ours.textproto", Price(3));
  fs::create_directory_symlink("..2026_11_29", directory_ / "..data");
  fs::create_symlink("..data/ours.textproto", directory_ / "ours.textproto");
  const auto store = CatalogStore::Create(directory_);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ(PriceOf(*(*store)->Snapshot()), 3);
}

TEST_F(CatalogStoreTest, SnapshotsWhileReloading) {
  Write("ours.textproto", Price(3));
  const auto store = CatalogStore::Create(directory_);
  ASSERT_TRUE(store.ok()) << store.status();
  std::atomic<bool> done = false;
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      while (!done) EXPECT_EQ(PriceOf(*(*store)->Snapshot()), 3);
    });
  }
  for (int i = 0; i < 3; ++i) EXPECT_TRUE((*store)->Reload().ok());
  done = true;
  for (std::thread& reader : readers) reader.join();
}

}  // namespace
}  // namespace sliceplan::catalog
