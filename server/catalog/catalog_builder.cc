#include "server/catalog/catalog_builder.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"
#include "server/catalog/accelerator_spec.h"
#include "server/catalog/content_hash.h"
#include "server/catalog/near_names.h"
#include "server/catalog/slice_record.h"
#include "server/hardware/price_table.h"

namespace sliceplan::catalog {
namespace {

constexpr absl::string_view kKindLine = "# proto-message:";
constexpr absl::string_view kPackage = "sliceplan.catalog.v1.";
constexpr absl::string_view kTextSuffix = ".textproto";
constexpr double kMaxUsdPerChipHour = 1e6;
constexpr int32_t kMaxGpusPerMachine = 1024;

// The message named in the comments before the first field, without its package; empty when there is none.
absl::string_view KindOf(absl::string_view text) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (absl::ConsumePrefix(&line, kKindLine)) {
      line = absl::StripAsciiWhitespace(line);
      absl::ConsumePrefix(&line, kPackage);
      return line;
    }
    if (!line.empty() && line[0] != '#') break;
  }
  return {};
}

// What a prediction depends on, to be compared.
std::string FiguresOf(const v1::AcceleratorRecord& record) {
  std::vector<std::string> chosen;
  for (const v1::Figure& figure : record.figures()) {
    v1::Figure bare;
    bare.set_field(figure.field());
    bare.set_value(figure.value());
    if (figure.chosen()) chosen.push_back(bare.SerializeAsString());
  }
  std::sort(chosen.begin(), chosen.end());
  v1::Interconnect interconnect = record.interconnect();
  interconnect.clear_source();
  interconnect.clear_as_of();
  return absl::StrCat(absl::StrJoin(chosen, ";"), "|", interconnect.SerializeAsString());
}

class ParseErrors : public google::protobuf::io::ErrorCollector {
 public:
  ParseErrors(absl::string_view file, Problems& problems) : file_(file), problems_(problems) {}
  // Lines and columns count from 0.
  void AddError(int line, int column, const std::string& message) override {
    problems_.Add(file_, absl::StrCat("line ", line + 1, ", column ", column + 1), "", message);
  }

 private:
  absl::string_view file_;
  Problems& problems_;
};

std::string DirectoryOf(absl::string_view name) {
  const size_t slash = name.rfind('/');
  return slash == absl::string_view::npos ? "" : std::string(name.substr(0, slash + 1));
}

hardware::PriceModel ToPriceModel(v1::PriceModel model) {
  switch (model) {
    case v1::PRICE_MODEL_SPOT: return hardware::PriceModel::kSpot;
    case v1::PRICE_MODEL_COMMITTED_1Y: return hardware::PriceModel::kCommitted1Y;
    case v1::PRICE_MODEL_COMMITTED_3Y: return hardware::PriceModel::kCommitted3Y;
    case v1::PRICE_MODEL_FLEX_START: return hardware::PriceModel::kFlexStart;
    case v1::PRICE_MODEL_CALENDAR: return hardware::PriceModel::kCalendar;
    default: return hardware::PriceModel::kOnDemand;
  }
}

}  // namespace

void CatalogBuilder::AddLayer(absl::Span<const SourceFile> files) {
  absl::flat_hash_map<absl::string_view, absl::string_view> texts;
  for (const SourceFile& file : files) texts.emplace(file.name, file.text);
  for (const SourceFile& file : files) {
    if (absl::EndsWith(file.name, kTextSuffix)) AddFile(file, texts);
  }
  ++layer_;
}

template <typename Message>
bool CatalogBuilder::Parse(const SourceFile& file, Message& message) {
  google::protobuf::TextFormat::Parser parser;
  ParseErrors errors(file.name, problems_);
  parser.RecordErrorsTo(&errors);
  google::protobuf::io::ArrayInputStream stream(file.text.data(), static_cast<int>(file.text.size()));
  return parser.Parse(&stream, &message);
}

void CatalogBuilder::AddFile(const SourceFile& file,
                             const absl::flat_hash_map<absl::string_view, absl::string_view>& layer_texts) {
  const absl::string_view kind = KindOf(file.text);
  if (kind == "Accelerators") {
    v1::Accelerators message;
    if (!Parse(file, message)) return;
    for (v1::AcceleratorRecord& record : *message.mutable_accelerators()) {
      const auto known = accelerators_.find(record.id());
      if (known != accelerators_.end() && known->second.layer < layer_ &&
          FiguresOf(known->second.record) != FiguresOf(record)) {
        changed_chips_.insert(record.id());
      }
      AddRecord(file, "accelerators", record.id(), record, accelerators_);
    }
  } else if (kind == "Slices") {
    v1::Slices message;
    if (Parse(file, message)) AddSlices(file, std::move(message));
  } else if (kind == "Prices") {
    v1::Prices message;
    if (!Parse(file, message)) return;
    for (v1::PriceRecord& record : *message.mutable_prices()) {
      std::string key = absl::StrCat(record.provider(), " ", record.accelerator(), " ", record.region(), " ",
                                     v1::PriceModel_Name(record.price_model()), " ", record.as_of());
      AddRecord(file, "prices", std::move(key), record, prices_);
    }
  } else if (kind == "Models") {
    v1::Models message;
    if (Parse(file, message)) AddModels(file, std::move(message), layer_texts);
  } else if (kind == "CalibrationProfiles") {
    v1::CalibrationProfiles message;
    if (!Parse(file, message)) return;
    for (v1::CalibrationProfile& record : *message.mutable_profiles()) {
      AddRecord(file, "profiles", record.name(), record, profiles_);
    }
  } else {
    problems_.Add(file.name, "", "",
                  absl::StrCat("the comment \"", kKindLine, " ", kPackage,
                               "KIND\" must come first, with KIND one of "
                               "Accelerators, Slices, Prices, Models and CalibrationProfiles",
                               kind.empty() ? "" : "; it says ", kind));
  }
}

template <typename Record>
void CatalogBuilder::AddRecord(const SourceFile& file, absl::string_view kind, std::string key, Record& record,
                               Records<Record>& records) {
  auto [found, is_new] = records.try_emplace(std::move(key));
  Located<Record>& located = found->second;
  if (is_new) {
    located.arrival = sequence_++;
  } else if (located.layer == layer_) {
    problems_.Add(file.name, absl::StrCat(kind, " ", found->first), "", absl::StrCat("is also in ", located.file));
    return;
  }
  located.record = std::move(record);
  located.file = file.name;
  located.layer = layer_;
}

void CatalogBuilder::AddSlices(const SourceFile& file, v1::Slices slices) {
  for (v1::SliceRecord& record : *slices.mutable_slices()) {
    ApplyDefaults(slices.defaults(), record);
    std::string key = absl::StrCat(record.accelerator(), " ", record.topology(), " ", record.machine_type());
    AddRecord(file, "slices", std::move(key), record, slices_);
  }
  for (v1::SliceRule& record : *slices.mutable_rules()) {
    AddRecord(file, "rules", record.accelerator(), record, slice_rules_);
  }
  for (v1::GpuMachineRecord& record : *slices.mutable_gpu_machines()) {
    std::string key = absl::StrCat(record.accelerator(), " ", record.provider(), " ", record.machine_type());
    AddRecord(file, "gpu_machines", std::move(key), record, gpu_machines_);
  }
}

void CatalogBuilder::AddModels(const SourceFile& file, v1::Models models,
                               const absl::flat_hash_map<absl::string_view, absl::string_view>& layer_texts) {
  for (v1::ModelRecord& record : *models.mutable_models()) {
    if (!record.hugging_face_config_file().empty()) {
      RecordProblems problems(problems_, file.name, absl::StrCat("models ", record.preset()));
      const std::string name = absl::StrCat(DirectoryOf(file.name), record.hugging_face_config_file());
      const auto text = layer_texts.find(name);
      if (!record.hugging_face_config().empty()) {
        problems.Add("hugging_face_config_file", "and hugging_face_config exclude each other");
      } else if (text == layer_texts.end()) {
        problems.Add("hugging_face_config_file", absl::StrCat("there is no file ", name));
      } else {
        record.set_hugging_face_config(std::string(text->second));
      }
      record.clear_hugging_face_config_file();
      // Reported above; not again as missing.
      if (record.hugging_face_config().empty()) record.set_hugging_face_config("{}");
    }
    AddRecord(file, "models", record.preset(), record, models_);
  }
}

absl::StatusOr<std::shared_ptr<const Catalog>> CatalogBuilder::Build() {
  // The constructor is private.
  std::shared_ptr<Catalog> catalog(new Catalog());
  ContentHash hash;
  for (const auto& [key, located] : prices_) hash.Add(located.record.SerializeAsString());
  BuildAccelerators(*catalog);
  BuildSlices(*catalog);
  BuildGpuMachines(*catalog);
  BuildPrices(*catalog);
  BuildModels(*catalog);
  BuildProfiles(*catalog);
  if (!problems_.empty()) return problems_.ToStatus();
  // Of what was built, so that stating a derived field changes nothing. The schema has no maps: the bytes of a message
  // are always the same.
  const auto add_all = [&hash](const auto& records) {
    for (const auto& record : records) hash.Add(record.SerializeAsString());
    hash.Add("");
  };
  for (const Accelerator& accelerator : catalog->accelerators_) hash.Add(accelerator.record.SerializeAsString());
  add_all(catalog->slices_);
  add_all(catalog->slice_rules_);
  add_all(catalog->gpu_machines_);
  add_all(catalog->models_);
  add_all(catalog->calibration_profiles_);
  catalog->version_ = hash.Digits();
  return std::shared_ptr<const Catalog>(std::move(catalog));
}

void CatalogBuilder::BuildAccelerators(Catalog& catalog) {
  catalog.accelerators_.reserve(accelerators_.size());
  for (auto& [id, located] : accelerators_) {
    RecordProblems problems(problems_, located.file, absl::StrCat("accelerators ", id));
    Accelerator& accelerator = catalog.accelerators_.emplace_back();
    accelerator.spec = ToAcceleratorSpec(located.record, problems);
    const std::optional<hardware::Shape> pod_shape = hardware::ParseShape(located.record.interconnect().pod_shape());
    if (pod_shape.has_value()) accelerator.pod_shape = *pod_shape;
    if (NormalizeName(id) != id) problems.Add("id", "must be lower case, with hyphens for blanks");
    accelerator.record = std::move(located.record);
  }
  // Ids win over aliases; an alias of two chips stays ambiguous.
  for (const Accelerator& accelerator : catalog.accelerators_) {
    catalog.accelerators_by_name_[accelerator.record.id()] = {&accelerator};
  }
  for (const Accelerator& accelerator : catalog.accelerators_) {
    for (const std::string& alias : accelerator.record.aliases()) {
      std::vector<const Accelerator*>& named = catalog.accelerators_by_name_[NormalizeName(alias)];
      const bool is_id = !named.empty() && named.front()->record.id() == NormalizeName(alias);
      if (!is_id && (named.empty() || named.back() != &accelerator)) named.push_back(&accelerator);
    }
  }
}

bool CatalogBuilder::CheckAccelerator(absl::string_view id, RecordProblems& problems) const {
  if (accelerators_.contains(id)) return true;
  problems.Add("accelerator",
               id.empty() ? "is required" : absl::StrCat("\"", id, "\" is not the id of an accelerator"));
  return false;
}

void CatalogBuilder::BuildSlices(Catalog& catalog) {
  absl::flat_hash_map<absl::string_view, Accelerator*> by_id;
  for (Accelerator& accelerator : catalog.accelerators_) by_id.emplace(accelerator.record.id(), &accelerator);

  std::vector<Located<v1::SliceRecord>*> complete;
  for (auto& [key, located] : slices_) {
    RecordProblems problems(problems_, located.file, absl::StrCat("slices ", key));
    if (!CheckAccelerator(located.record.accelerator(), problems)) continue;
    const Accelerator& accelerator = *by_id.at(located.record.accelerator());
    CompleteSliceRecord(accelerator.spec, accelerator.pod_shape, located.record, problems);
    complete.push_back(&located);
  }
  using Slice = Located<v1::SliceRecord>;
  std::sort(complete.begin(), complete.end(), [](const Slice* a, const Slice* b) {
    const int by_accelerator = a->record.accelerator().compare(b->record.accelerator());
    if (by_accelerator != 0) return by_accelerator < 0;
    if (a->record.chip_count() != b->record.chip_count()) return a->record.chip_count() < b->record.chip_count();
    return a->arrival < b->arrival;
  });
  catalog.slices_.reserve(complete.size());
  for (Slice* located : complete) catalog.slices_.push_back(std::move(located->record));
  for (const v1::SliceRecord& record : catalog.slices_) {
    by_id.at(record.accelerator())->slices.push_back(&record);
    absl::flat_hash_set<std::string> names;
    for (const std::string* name : {&record.slice_name(), &record.cloud_tpu_accelerator_type(),
                                    &record.xpk_device_type(), &record.maxtext_compile_topology()}) {
      if (!name->empty()) names.insert(NormalizeName(*name));
    }
    for (const std::string& name : names) catalog.slices_by_name_[name].push_back(&record);
  }

  catalog.slice_rules_.reserve(slice_rules_.size());
  for (auto& [key, located] : slice_rules_) {
    RecordProblems problems(problems_, located.file, absl::StrCat("rules ", key));
    if (!CheckAccelerator(located.record.accelerator(), problems)) continue;
    problems.Require("shape_rule", located.record.shape_rule() != v1::SHAPE_RULE_UNSPECIFIED);
    problems.Require("source", !located.record.source().empty());
    problems.RequireDate("as_of", located.record.as_of());
    const bool is_open = located.record.shape_rule() == v1::SHAPE_RULE_CUBES_OF_4;
    if (is_open && (located.record.max_chip_count() < 1 || located.record.max_chip_count() > hardware::kMaxChipCount)) {
      problems.Add("max_chip_count", absl::StrCat("must be between 1 and ", hardware::kMaxChipCount));
    }
    if (is_open && by_id.at(located.record.accelerator())->slices.empty()) {
      problems.Add("shape_rule", "needs a listed slice, whose hosts the other shapes share");
    }
    catalog.slice_rules_.push_back(std::move(located.record));
    by_id.at(catalog.slice_rules_.back().accelerator())->slice_rule = &catalog.slice_rules_.back();
  }
}

void CatalogBuilder::BuildGpuMachines(Catalog& catalog) {
  catalog.gpu_machines_.reserve(gpu_machines_.size());
  for (auto& [key, located] : gpu_machines_) {
    RecordProblems problems(problems_, located.file, absl::StrCat("gpu_machines ", key));
    const v1::GpuMachineRecord& record = located.record;
    if (!CheckAccelerator(record.accelerator(), problems)) continue;
    problems.Require("provider", !record.provider().empty());
    problems.Require("machine_type", !record.machine_type().empty());
    problems.Require("source", !record.source().empty());
    problems.RequireDate("as_of", record.as_of());
    if (record.gpu_count() < 1 || record.gpu_count() > kMaxGpusPerMachine) {
      problems.Add("gpu_count", absl::StrCat("must be between 1 and ", kMaxGpusPerMachine));
    }
    catalog.gpu_machines_.push_back(std::move(located.record));
  }
  for (const v1::GpuMachineRecord& record : catalog.gpu_machines_) {
    for (Accelerator& accelerator : catalog.accelerators_) {
      if (accelerator.record.id() == record.accelerator()) accelerator.gpu_machines.push_back(&record);
    }
  }
}

void CatalogBuilder::BuildPrices(Catalog& catalog) {
  std::vector<hardware::PriceRow> rows;
  rows.reserve(prices_.size());
  for (auto& [key, located] : prices_) {
    RecordProblems problems(problems_, located.file, absl::StrCat("prices ", key));
    v1::PriceRecord& record = located.record;
    CheckAccelerator(record.accelerator(), problems);
    problems.Require("provider", !record.provider().empty());
    problems.Require("region", !record.region().empty());
    problems.Require("price_model", record.price_model() != v1::PRICE_MODEL_UNSPECIFIED);
    problems.Require("source", !record.source().empty());
    problems.RequireDate("as_of", record.as_of());
    // Also refuses NaN.
    if (!(record.usd_per_chip_hour() > 0 && record.usd_per_chip_hour() <= kMaxUsdPerChipHour)) {
      problems.Add("usd_per_chip_hour", absl::StrCat(record.usd_per_chip_hour(), " is not above 0 and at most 1e6"));
    }
    rows.push_back({std::move(*record.mutable_provider()), std::move(*record.mutable_accelerator()),
                    std::move(*record.mutable_region()), ToPriceModel(record.price_model()), record.usd_per_chip_hour(),
                    std::move(*record.mutable_as_of()), std::move(*record.mutable_source())});
  }
  catalog.prices_ = hardware::PriceTable(std::move(rows));
}

}  // namespace sliceplan::catalog
