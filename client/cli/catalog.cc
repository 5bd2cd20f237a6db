#include "client/cli/catalog.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/choices.h"
#include "client/cli/estimate_text.h"
#include "client/cli/text.h"
#include "proto/sliceplan/v1/catalog.pb.h"

namespace sliceplan::cli {
namespace {

// More than the catalog has of anything; the service answers as many as it allows in a page.
constexpr int kPageSize = 500;

// A list with the flags that all of them have.
template <typename Request, typename Response>
class ListQuestion : public TypedQuestion<Request, Response> {
 public:
  explicit ListQuestion(const char* method, const char* filter_example)
      : method_(method), filter_example_(filter_example) {
    this->request_.set_page_size(kPageSize);
  }

  std::string method() const override { return absl::StrCat("sliceplan.v1.CatalogService/", method_); }

  void AddFlags(Flags& flags) override {
    flags.Group("Which");
    flags.Field("--filter", "filter", absl::StrCat("only items that match, as in ", filter_example_));
    flags.Field("--page-size", "page_size", "most items; default 500");
    flags.Field("--page-token", "page_token", "the page after another one: its nextPageToken");
  }

  void Print(const Flags& flags, Report& report) const override {
    const Response& response = this->response_;
    const size_t shown = PrintItems(response, report);
    PrintVersions(response.engine_version(), response.catalog_version(), report);
    report.Sentence(absl::StrCat(Grouped(static_cast<int64_t>(shown)), " of ", Grouped(response.total_count()),
                                 "; --format=json shows every field with its source"),
                    Tone::kFaint);
    if (!response.next_page_token().empty()) {
      report.Sentence(absl::StrCat("more: ", flags.FlagFor("page_token"), " ", response.next_page_token()));
    }
  }

 protected:
  // How many items were printed.
  virtual size_t PrintItems(const Response& response, Report& report) const = 0;

 private:
  const char* const method_;
  const char* const filter_example_;
};

// Empty for a constant that is not public.
std::string RateText(bool known, double value, const char* unit) { return known ? WithUnit(value, unit) : ""; }

class ListAcceleratorsQuestion : public ListQuestion<v1::ListAcceleratorsRequest, v1::ListAcceleratorsResponse> {
 public:
  ListAcceleratorsQuestion() : ListQuestion("ListAccelerators", "'spec.hbm_bytes>=64000000000'") {}

 protected:
  size_t PrintItems(const v1::ListAcceleratorsResponse& response, Report& report) const override {
    std::vector<std::vector<std::string>> rows;
    for (const v1::Accelerator& item : response.accelerators()) {
      const v1::AcceleratorSpec& spec = item.spec();
      rows.push_back({item.id(), RateText(spec.has_bf16_flops_per_second(), spec.bf16_flops_per_second(), "FLOP/s"),
                      spec.has_hbm_bytes() ? Bytes(static_cast<double>(spec.hbm_bytes())) : "",
                      RateText(spec.has_hbm_bytes_per_second(), spec.hbm_bytes_per_second(), "B/s"),
                      item.interconnect().kind(), ChoiceName(item.status())});
    }
    report.Table(
        {{"id", false}, {"bf16", true}, {"HBM", true}, {"bandwidth", true}, {"fabric", false}, {"status", false}},
        rows);
    return rows.size();
  }
};

class ListSlicesQuestion : public ListQuestion<v1::ListSlicesRequest, v1::ListSlicesResponse> {
 public:
  ListSlicesQuestion() : ListQuestion("ListSlices", R"('accelerator="tpu-v5p" AND chip_count<=64')") {}

 protected:
  size_t PrintItems(const v1::ListSlicesResponse& response, Report& report) const override {
    std::vector<std::vector<std::string>> rows;
    for (const v1::SliceInfo& item : response.slices()) {
      std::vector<std::string> rings;
      for (const bool wraps : item.axis_wraps()) rings.push_back(wraps ? "ring" : "line");
      rows.push_back({item.accelerator(), item.topology(), Grouped(item.chip_count()), item.slice_name(),
                      item.machine_type(), item.host_count() > 0 ? Grouped(item.host_count()) : "",
                      absl::StrJoin(rings, " ")});
    }
    report.Table({{"accelerator", false},
                  {"topology", false},
                  {"chips", true},
                  {"name", false},
                  {"machine", false},
                  {"hosts", true},
                  {"axes", false}},
                 rows);
    return rows.size();
  }
};

class ListPricesQuestion : public ListQuestion<v1::ListPricesRequest, v1::ListPricesResponse> {
 public:
  ListPricesQuestion() : ListQuestion("ListPrices", R"('accelerator="tpu-v5p" AND price_model=SPOT')") {}

 protected:
  size_t PrintItems(const v1::ListPricesResponse& response, Report& report) const override {
    std::vector<std::vector<std::string>> rows;
    for (const v1::Price& item : response.prices()) {
      rows.push_back({item.accelerator(), item.provider(), item.region(), ChoiceName(item.price_model()),
                      Dollars(item.usd_per_chip_hour()), item.as_of()});
    }
    report.Table({{"accelerator", false},
                  {"cloud", false},
                  {"region", false},
                  {"terms", false},
                  {"per chip-hour", true},
                  {"as of", false}},
                 rows);
    return rows.size();
  }
};

class ListModelsQuestion : public ListQuestion<v1::ListModelsRequest, v1::ListModelsResponse> {
 public:
  ListModelsQuestion() : ListQuestion("ListModels", "'name:llama AND parameter_count<10000000000'") {}

 protected:
  size_t PrintItems(const v1::ListModelsResponse& response, Report& report) const override {
    std::vector<std::vector<std::string>> rows;
    for (const v1::ModelPreset& item : response.models()) {
      rows.push_back({item.name(), Grouped(item.parameter_count()), Grouped(item.active_parameter_count()),
                      item.hugging_face_name()});
    }
    report.Table({{"name", false}, {"parameters", true}, {"per token", true}, {"on Hugging Face", false}}, rows);
    return rows.size();
  }
};

}  // namespace

std::unique_ptr<Question> MakeListAcceleratorsQuestion() { return std::make_unique<ListAcceleratorsQuestion>(); }
std::unique_ptr<Question> MakeListSlicesQuestion() { return std::make_unique<ListSlicesQuestion>(); }
std::unique_ptr<Question> MakeListPricesQuestion() { return std::make_unique<ListPricesQuestion>(); }
std::unique_ptr<Question> MakeListModelsQuestion() { return std::make_unique<ListModelsQuestion>(); }

}  // namespace sliceplan::cli
