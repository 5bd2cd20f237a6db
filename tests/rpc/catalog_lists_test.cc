// The four lists: filters, pages, order.
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/sliceplan/v1/catalog.pb.h"
#include "tests/rpc/testing.h"

namespace sliceplan::rpc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

template <typename Response, typename Request>
Response List(const char* method, const Request& request) {
  Response response;
  const Result result = Call(method, request, &response);
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.status().DebugString());
  return response;
}

template <typename Request>
Request WithFilter(const std::string& filter, int32_t page_size = 0) {
  Request request;
  request.set_filter(filter);
  request.set_page_size(page_size);
  return request;
}

TEST(ListAcceleratorsTest, FilterByIdAndByConstant) {
  const auto one = List<v1::ListAcceleratorsResponse>("CatalogService/ListAccelerators",
                                                      WithFilter<v1::ListAcceleratorsRequest>("id=\"tpu-v5p\""));
  ASSERT_EQ(one.accelerators_size(), 1);
  EXPECT_EQ(one.accelerators(0).kind(), v1::ACCELERATOR_KIND_TPU);
  EXPECT_GT(one.accelerators(0).spec().bf16_flops_per_second(), 4e14);
  EXPECT_GT(one.accelerators(0).figures_size(), 0);
  EXPECT_THAT(one.accelerators(0).compute_dtypes(), ::testing::Contains(v1::DATA_TYPE_BF16));
  EXPECT_EQ(one.total_count(), 1);
  EXPECT_EQ(one.next_page_token(), "");

  const auto large = List<v1::ListAcceleratorsResponse>(
      "CatalogService/ListAccelerators",
      WithFilter<v1::ListAcceleratorsRequest>("kind=GPU AND spec.hbm_bytes>=150000000000"));
  ASSERT_GT(large.accelerators_size(), 0);
  for (const v1::Accelerator& accelerator : large.accelerators()) {
    EXPECT_EQ(accelerator.kind(), v1::ACCELERATOR_KIND_GPU);
    EXPECT_GE(accelerator.spec().hbm_bytes(), 150'000'000'000);
  }
}

TEST(ListAcceleratorsTest, HasEveryChipOfTheCatalog) {
  const auto all = List<v1::ListAcceleratorsResponse>("CatalogService/ListAccelerators", v1::ListAcceleratorsRequest());
  EXPECT_EQ(all.total_count(), static_cast<int>(TestEngine().catalogs.Snapshot()->accelerators().size()));
  EXPECT_GE(all.total_count(), 28);
}

TEST(ListSlicesTest, CloudNamesOfOneSlice) {
  const auto slices = List<v1::ListSlicesResponse>(
      "CatalogService/ListSlices", WithFilter<v1::ListSlicesRequest>("accelerator=\"tpu-v5p\" AND topology=\"4x4x8\""));
  ASSERT_EQ(slices.slices_size(), 1);
  const v1::SliceInfo& slice = slices.slices(0);
  EXPECT_EQ(slice.chip_count(), 128);
  EXPECT_EQ(slice.accelerator_type(), "v5p-256");
  EXPECT_EQ(slice.host_count(), 32);
  EXPECT_EQ(slice.gke_tpu_topology(), "4x4x8");
  EXPECT_EQ(slice.axis_wraps_size(), 3);
}

// Every item once, in order, whatever the size of the pages.
TEST(ListSlicesTest, PagesCoverTheList) {
  for (const int32_t page_size : {1000, 50, 37}) {
    v1::ListSlicesRequest request;
    request.set_page_size(page_size);
    std::vector<std::string> names;
    int32_t total_count = 0;
    do {
      const auto page = List<v1::ListSlicesResponse>("CatalogService/ListSlices", request);
      EXPECT_LE(page.slices_size(), 500);
      for (const v1::SliceInfo& slice : page.slices()) {
        names.push_back(
            absl::StrCat(slice.accelerator(), " ", slice.provider(), " ", slice.topology(), " ", slice.machine_type()));
      }
      total_count = page.total_count();
      request.set_page_token(page.next_page_token());
    } while (!request.page_token().empty());
    EXPECT_EQ(static_cast<int32_t>(names.size()), total_count) << page_size;
    EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size()) << page_size;
  }
}

TEST(ListPricesTest, FilterByTerms) {
  const auto prices = List<v1::ListPricesResponse>(
      "CatalogService/ListPrices",
      WithFilter<v1::ListPricesRequest>("accelerator=\"tpu-v5p\" AND price_model=SPOT", 500));
  for (const v1::Price& price : prices.prices()) {
    EXPECT_EQ(price.price_model(), v1::PRICE_MODEL_SPOT);
    EXPECT_EQ(price.accelerator(), "tpu-v5p");
    EXPECT_GT(price.usd_per_chip_hour(), 0);
    EXPECT_FALSE(price.as_of().empty());
    EXPECT_FALSE(price.source().empty());
  }
  EXPECT_EQ(prices.total_count(), prices.prices_size());
}

TEST(ListModelsTest, CountsAreThere) {
  const auto models = List<v1::ListModelsResponse>("CatalogService/ListModels",
                                                   WithFilter<v1::ListModelsRequest>("name=\"llama-3-70b\""));
  ASSERT_EQ(models.models_size(), 1);
  EXPECT_EQ(models.models(0).parameter_count(), 70'553'706'496);
  EXPECT_THAT(models.models(0).hugging_face_config(), HasSubstr("\"hidden_size\""));
}

TEST(ListModelsTest, EveryPresetCanBeRead) {
  const auto models =
      List<v1::ListModelsResponse>("CatalogService/ListModels", WithFilter<v1::ListModelsRequest>("", 500));
  EXPECT_EQ(models.total_count(), models.models_size());
  for (const v1::ModelPreset& model : models.models()) EXPECT_GT(model.parameter_count(), 0) << model.name();
}

TEST(ListTest, BadRequestsAreRefusedWhole) {
  v1::ListPricesRequest request;
  request.set_filter("colour=\"red\"");
  request.set_page_size(-1);
  request.set_page_token("made up");
  v1::ListPricesResponse response;
  const Result result = Call("CatalogService/ListPrices", request, &response);
  EXPECT_EQ(result.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(ViolatedFields(result.status()), UnorderedElementsAre("filter", "page_size", "page_token"));
  EXPECT_THAT(result.status().message(), HasSubstr("colour"));
}

TEST(ListTest, TokenOfAnotherFilterIsRefused) {
  const auto first =
      List<v1::ListPricesResponse>("CatalogService/ListPrices", WithFilter<v1::ListPricesRequest>("", 10));
  ASSERT_FALSE(first.next_page_token().empty());
  v1::ListPricesRequest other = WithFilter<v1::ListPricesRequest>("provider=gcp", 10);
  other.set_page_token(first.next_page_token());
  v1::ListPricesResponse response;
  const Result result = Call("CatalogService/ListPrices", other, &response);
  EXPECT_THAT(ViolatedFields(result.status()), ElementsAre("page_token"));
}

}  // namespace
}  // namespace sliceplan::rpc
