// Words about slices and prices: lines of an accelerator, a topology, a type, a machine, a region, a date, a provider
// and a filter, and two numbers. Each is read alone and all of them together.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "server/catalog/catalog_store.h"
#include "server/catalog/filter.h"
#include "server/catalog/message_filter.h"
#include "server/catalog/slice_resolver.h"
#include "server/hardware/price_table.h"
#include "server/hardware/topology.h"
#include "tests/fuzz/fuzz_service.h"

namespace sliceplan::fuzz {
namespace {

void CheckShape(absl::string_view text) {
  const std::optional<hardware::Shape> shape = hardware::ParseShape(text);
  if (!shape.has_value()) return;
  const int64_t chips = hardware::ChipCount(*shape);
  if (chips < 1 || chips > hardware::kMaxChipCount) Fail("a shape out of range");
  if (hardware::ParseShape(hardware::ShapeName(*shape)) != *shape) Fail("the name of a shape reads otherwise");
  const hardware::Shape ordered = hardware::CanonicalOrder(*shape);
  if (hardware::ChipCount(ordered) != chips || hardware::CanonicalOrder(ordered) != ordered) Fail("an order");
}

void CheckFilterText(const catalog::Catalog& catalog, absl::string_view text) {
  const absl::StatusOr<catalog::Filter> filter = catalog::Filter::Parse(text);
  if (!filter.ok()) {
    if (filter.status().message().empty()) Fail("an error without a sentence");
    return;
  }
  const google::protobuf::Descriptor& descriptor = *catalog::v1::SliceRecord::descriptor();
  if (!catalog::CheckFilter(*filter, descriptor).ok()) return;
  constexpr size_t kRecords = 8;
  for (const catalog::v1::SliceRecord& record : catalog.slices().subspan(0, kRecords)) {
    static_cast<void>(catalog::MatchesFilter(*filter, record));
  }
}

void CheckPrice(const catalog::Catalog& catalog, const hardware::PriceQuery& query) {
  if (!query.as_of.empty() && !hardware::IsPriceDate(query.as_of)) return;  // refused at the edge
  const hardware::PriceAnswer answer = catalog.prices().Resolve(query);
  if (answer.sentence.empty()) Fail("a price without a sentence");
  if (answer.alternatives.size() > hardware::kMaxPriceAlternatives) Fail("too many other prices");
  if (answer.row == nullptr) return;
  if (!(answer.row->usd_per_chip_hour > 0)) Fail("a price of nothing");
  if (answer.row->accelerator != query.accelerator) Fail("a price of another chip");
}

void CheckSlice(const catalog::Catalog& catalog, const catalog::SliceQuery& query) {
  const catalog::SliceResolution resolution = catalog::ResolveSlice(catalog, query);
  if (resolution.resolved.has_value() == !resolution.violations.empty()) Fail("neither a slice nor a reason, or both");
  for (const hardware::Violation& violation : resolution.violations) {
    if (violation.field.empty() || violation.description.empty()) Fail("a violation without a field or a sentence");
  }
  if (!resolution.resolved.has_value()) return;
  const hardware::Slice& slice = resolution.resolved->slice;
  if (slice.chip_count < 1 || slice.slice_count < 1 ||
      slice.chip_count > catalog::kMaxTotalChipCount / slice.slice_count)
    Fail("chips out of range");
}

void Run(absl::string_view input) {
  static const auto& catalog = *new std::shared_ptr<const catalog::Catalog>(*catalog::BuiltInCatalog());
  std::vector<absl::string_view> words = absl::StrSplit(input, '\n');
  words.resize(10);
  CheckShape(words[1]);
  catalog::SliceQuery slice;
  slice.accelerator = words[0];
  slice.topology = words[1];
  slice.accelerator_type = words[2];
  slice.machine_type = words[3];
  slice.twisted = input.size() % 2 != 0;
  slice.one_chip_without_shape = input.size() % 3 != 0;
  if (int32_t count = 0; absl::SimpleAtoi(words[8], &count)) slice.chip_count = count;
  if (int32_t count = 0; absl::SimpleAtoi(words[9], &count)) slice.slice_count = count;
  // At the edge a request has one of them.
  if (slice.chip_count.has_value()) {
    slice.topology = slice.accelerator_type = "";
  } else if (!slice.accelerator_type.empty()) {
    slice.topology = "";
  }
  CheckSlice(*catalog, slice);
  const catalog::AcceleratorLookup found = catalog->FindAccelerator(words[0]);
  if ((found.accelerator == nullptr) == !found.violation.has_value()) Fail("neither a chip nor a reason, or both");
  const std::string id = found.accelerator == nullptr ? "tpu-v5e" : found.accelerator->record.id();
  CheckPrice(*catalog, {id, words[6], words[4], static_cast<hardware::PriceModel>(input.size() % 6), words[5]});
  CheckFilterText(*catalog, words[7]);
}

}  // namespace
}  // namespace sliceplan::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  sliceplan::fuzz::Run(absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
