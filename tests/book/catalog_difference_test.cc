// Where the catalog's constants differ from the book's, and why. A constant that is not listed must agree.
#include <cmath>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "server/catalog/catalog.h"
#include "server/catalog/catalog_store.h"
#include "tests/book/book_constants.h"

namespace sliceplan::book {
namespace {

using hardware::AcceleratorSpec;

struct Difference {
  const char* chip;  // the book's name
  const char* field;
  std::optional<double> catalog;  // unset: the catalog has none
  const char* reason;
};

constexpr double kGiB = 1024.0 * 1024 * 1024;
constexpr char kBinary[] = "the book writes GB for what the vendor counts in GiB";
constexpr char kBinaryShared[] = "the book writes kB for KiB";
constexpr char kRounded[] = "the book rounds; the catalog has the vendor's figure";

const Difference kDifferences[] = {
    {"tpu-v3", "hbm_bytes", 32 * kGiB, kBinary},
    {"tpu-v3", "bf16_flops_per_second", 123e12, "the vendor publishes 123 TFLOP/s; the book's table has 140"},
    {"tpu-v3", "int8_ops_per_second", std::nullopt, "no int8 mode: the book repeats the bf16 figure"},
    {"tpu-v4p", "hbm_bytes", 32 * kGiB, kBinary},
    {"tpu-v5p", "hbm_bytes", 96 * kGiB, kBinary},
    {"tpu-v5p", "hbm_bytes_per_second", 2765e9, kRounded},
    {"tpu-v5e", "hbm_bytes", 16 * kGiB, kBinary},
    {"tpu-v5e", "hbm_bytes_per_second", 819e9, kRounded},
    {"tpu-v5e", "int8_ops_per_second", 393e12, "the book doubles bf16; the vendor publishes 393 TOP/s"},
    {"tpu-v6e", "hbm_bytes", 32 * kGiB, kBinary},
    {"tpu-v6e", "hbm_bytes_per_second", 1638e9, kRounded},
    {"tpu-v6e", "bf16_flops_per_second", 918e12, kRounded},
    {"tpu-v6e", "int8_ops_per_second", 1836e12, kRounded},
    {"tpu-7x", "hbm_bytes", 192 * kGiB, kBinary},
    {"tpu-7x", "hbm_bytes_per_second", 7380e9, kRounded},
    {"tpu-7x", "bf16_flops_per_second", 2307e12, kRounded},
    {"tpu-7x", "int8_ops_per_second", std::nullopt, "the vendor publishes no int8 figure"},
    {"a100", "smem_bytes_per_sm", 192.0 * 1024, kBinaryShared},
    {"a100", "hbm_bytes", 80 * kGiB, kBinary},
    {"a100", "hbm_bytes_per_second", 2039e9, kRounded},
    {"a100", "bf16_flops_per_second", 312e12, kRounded},
    {"a100", "int8_ops_per_second", 624e12, kRounded},
    {"h100", "smem_bytes_per_sm", 256.0 * 1024, kBinaryShared},
    {"h100", "hbm_bytes", 80 * kGiB, kBinary},
    {"h100", "bf16_flops_per_second", 989e12, kRounded},
    {"h100", "fp8_flops_per_second", 1979e12, kRounded},
    {"h200", "smem_bytes_per_sm", 256.0 * 1024, kBinaryShared},
    {"h200", "hbm_bytes", 141 * kGiB, kBinary},
    {"h200", "bf16_flops_per_second", 989e12, kRounded},
    {"h200", "fp8_flops_per_second", 1979e12, kRounded},
    {"b200", "smem_bytes_per_sm", 256.0 * 1024, kBinaryShared},
    {"b200", "hbm_bytes", 180 * kGiB, "the vendor's 180 GB product counts GiB; the book has 192 GB"},
};

// Every number of the book's record, read from a chip of the engine.
std::map<std::string, std::optional<double>> FieldsOf(const AcceleratorSpec& chip) {
  const auto number = [](const auto& field) {
    return field ? std::optional<double>(static_cast<double>(*field)) : std::nullopt;
  };
  return {{"bf16_flops_per_second", chip.bf16_flops_per_second},
          {"int8_ops_per_second", chip.int8_ops_per_second},
          {"fp8_flops_per_second", chip.fp8_flops_per_second},
          {"fp4_flops_per_second", chip.fp4_flops_per_second},
          {"hbm_bytes", number(chip.hbm_bytes)},
          {"hbm_bytes_per_second", chip.hbm_bytes_per_second},
          {"vmem_bytes", number(chip.vmem_bytes)},
          {"tensorcore_count", number(chip.tensorcore_count)},
          {"mxus_per_tensorcore", number(chip.mxus_per_tensorcore)},
          {"mxu_dim", number(chip.mxu_dim)},
          {"sm_count", number(chip.sm_count)},
          {"smem_bytes_per_sm", number(chip.smem_bytes_per_sm)},
          {"devices_per_chip", chip.devices_per_chip},
          {"ici_torus_dims", number(chip.ici_torus_dims)},
          {"ici_link_bytes_per_second", chip.ici_link_bytes_per_second},
          {"scale_up_domain_size", number(chip.scale_up_domain_size)},
          {"scale_up_bytes_per_second", chip.scale_up_bytes_per_second},
          {"network_bytes_per_second", chip.network_bytes_per_second},
          {"dcn_bytes_per_second", chip.dcn_bytes_per_second},
          {"pcie_bytes_per_second", chip.pcie_bytes_per_second}};
}

bool Same(const std::optional<double>& a, const std::optional<double>& b) {
  constexpr double kRelative = 1e-9;
  if (a.has_value() != b.has_value()) return false;
  return !a || std::abs(*a - *b) <= kRelative * std::abs(*b);
}

TEST(CatalogDifferenceTest, OnlyWhatIsListedDiffersFromTheBook) {
  const std::shared_ptr<const catalog::Catalog> catalog = catalog::BuiltInCatalog().value();
  std::map<std::pair<std::string, std::string>, const Difference*> listed;
  for (const Difference& difference : kDifferences) listed[{difference.chip, difference.field}] = &difference;
  ASSERT_EQ(listed.size(), std::size(kDifferences));

  for (const char* kind : {"tpus", "gpus"}) {
    for (const Json& record : Constants().at(kind)) {
      const std::string id = record.at("id");
      const std::string catalog_id = record.at("catalog_id");
      const catalog::AcceleratorLookup found = catalog->FindAccelerator(catalog_id);
      ASSERT_NE(found.accelerator, nullptr) << catalog_id;
      EXPECT_EQ(found.accelerator->record.id(), catalog_id);
      const auto catalog_fields = FieldsOf(found.accelerator->spec);
      const auto book_fields = FieldsOf(ChipSpec(id));
      for (const auto& [field, value] : record.at("spec").items()) {
        if (!value.is_number()) continue;  // rules are tests of their own
        SCOPED_TRACE(id + " " + field);
        ASSERT_EQ(book_fields.count(field), 1U);
        const auto difference = listed.find({id, field});
        if (difference == listed.end()) {
          EXPECT_TRUE(Same(catalog_fields.at(field), book_fields.at(field)))
              << "book " << book_fields.at(field).value_or(0) << ", catalog " << catalog_fields.at(field).value_or(0);
          continue;
        }
        EXPECT_TRUE(Same(catalog_fields.at(field), difference->second->catalog))
            << "catalog " << catalog_fields.at(field).value_or(0);
        EXPECT_FALSE(Same(catalog_fields.at(field), book_fields.at(field))) << "no longer differs";
        EXPECT_STRNE(difference->second->reason, "");
        listed.erase(difference);
      }
    }
  }
  for (const auto& [key, difference] : listed) ADD_FAILURE() << key.first << " " << key.second << " is not compared";
}

// The generations' wrap rules are the book's, as far as it states them.
TEST(CatalogDifferenceTest, WrapRulesAgree) {
  const std::shared_ptr<const catalog::Catalog> catalog = catalog::BuiltInCatalog().value();
  for (const char* id : {"tpu-v4p", "tpu-v5p", "tpu-v5e", "tpu-v6e"}) {
    const std::string catalog_id = ChipRecord(id).at("catalog_id");
    EXPECT_EQ(catalog->FindAccelerator(catalog_id).accelerator->spec.wrap_rule, ChipSpec(id).wrap_rule) << id;
  }
}

}  // namespace
}  // namespace sliceplan::book
