// Records of models and of the runtimes that they run on.
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "server/catalog/catalog_builder.h"
#include "server/catalog/efficiency.h"
#include "server/catalog/near_names.h"
#include "server/catalog/serving_efficiency.h"

namespace sliceplan::catalog {
namespace {

constexpr double kMaxIntervalPower = 10;

}  // namespace

void CatalogBuilder::BuildModels(Catalog& catalog) {
  catalog.models_.reserve(models_.size());
  absl::flat_hash_map<std::string, absl::string_view> files;
  for (auto& [key, located] : models_) {
    RecordProblems problems(problems_, located.file, absl::StrCat("models ", key));
    v1::ModelRecord& record = located.record;
    problems.Require("preset", !record.preset().empty());
    if (NormalizeName(record.preset()) != record.preset()) {
      problems.Add("preset", "must be lower case, with hyphens for blanks");
    }
    problems.Require("family", !record.family().empty());
    problems.Require("hugging_face_config", !record.hugging_face_config().empty());
    problems.Require("source", !record.source().empty());
    if (!record.as_of().empty()) problems.RequireDate("as_of", record.as_of());

    catalog.models_.push_back(std::move(record));
    const v1::ModelRecord& model = catalog.models_.back();
    std::vector<absl::string_view> names(model.aliases().begin(), model.aliases().end());
    names.push_back(model.preset());
    if (!model.hugging_face_name().empty()) names.push_back(model.hugging_face_name());
    for (absl::string_view name : names) {
      const auto [other, is_new] = catalog.models_by_name_.emplace(NormalizeName(name), &model);
      if (!is_new && other->second != &model) {
        problems.Add("aliases", absl::StrCat("\"", name, "\" is also a name of ", other->second->preset()));
      }
    }
  }
}

void CatalogBuilder::BuildProfiles(Catalog& catalog) {
  catalog.calibration_profiles_.reserve(profiles_.size());
  for (auto& [key, located] : profiles_) {
    RecordProblems problems(problems_, located.file, absl::StrCat("profiles ", key));
    const v1::CalibrationProfile& record = located.record;
    problems.Require("name", !record.name().empty());
    problems.Require("version", !record.version().empty());
    problems.Require("workload", record.workload() != v1::CALIBRATION_WORKLOAD_UNSPECIFIED);
    problems.Require("source", !record.source().empty());
    problems.RequireDate("as_of", record.as_of());
    // Each workload has a fixed list of constants; each family's are read as its chips would.
    const auto check = [&](const v1::CalibrationProfile& read, absl::string_view accelerator_id) {
      if (record.workload() == v1::CALIBRATION_WORKLOAD_TRAINING) EfficiencyOf(read, accelerator_id, problems);
      if (record.workload() == v1::CALIBRATION_WORKLOAD_SERVING) ServingEfficiencyOf(read, accelerator_id, problems);
    };
    check(record, "");
    for (const std::string& id : record.measured_accelerators()) CheckAccelerator(id, problems);
    const double power = record.has_unmeasured_interval_power() ? record.unmeasured_interval_power() : 1;
    if (!(power >= 1 && power <= kMaxIntervalPower)) problems.Add("unmeasured_interval_power", "must be 1 to 10");
    absl::flat_hash_set<std::string> covered;
    for (const v1::CalibrationFamily& family : record.families()) {
      if (family.accelerators_size() > 0) {
        v1::CalibrationProfile alone;
        *alone.add_families() = family;
        check(alone, family.accelerators(0));
      }
      for (const std::string& id : family.accelerators()) {
        CheckAccelerator(id, problems);
        if (!covered.insert(id).second) problems.Add("families", absl::StrCat(id, " is in two families"));
      }
    }
    // Built-in profiles were measured on the built-in chip. The list keeps an entry, because an empty one means all
    // chips.
    if (located.layer == 0) {
      for (std::string& id : *located.record.mutable_measured_accelerators()) {
        if (changed_chips_.contains(id)) id += " (with the built-in figures)";
      }
    }
    catalog.calibration_profiles_.push_back(std::move(located.record));
  }
}

}  // namespace sliceplan::catalog
