// What the server knows: chips, slices, prices, model presets. One immutable snapshot, built from textproto files.
#ifndef SLICEPLAN_SERVER_CATALOG_CATALOG_H_
#define SLICEPLAN_SERVER_CATALOG_CATALOG_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "proto/sliceplan/catalog/v1/catalog.pb.h"
#include "server/hardware/accelerator.h"
#include "server/hardware/price_table.h"
#include "server/hardware/topology.h"
#include "server/hardware/violation.h"

namespace sliceplan::catalog {

// One chip: its record with every reading and source, what the engine plans with, and the slices that it comes in.
struct Accelerator {
  v1::AcceleratorRecord record;
  hardware::AcceleratorSpec spec;
  hardware::Shape pod_shape;                              // empty when unknown or not a torus
  const v1::SliceRule* slice_rule = nullptr;              // nullptr: only the listed shapes are legal
  std::vector<const v1::SliceRecord*> slices;             // TPU: ascending by chips
  std::vector<const v1::GpuMachineRecord*> gpu_machines;  // GPU
};

// Exactly one of `accelerator` and `violation` is set.
struct AcceleratorLookup {
  const Accelerator* accelerator = nullptr;
  std::optional<hardware::Violation> violation;  // UNKNOWN_ACCELERATOR with near names, or AMBIGUOUS_ACCELERATOR
};

// Exactly one of `model` and `violation` is set.
struct ModelLookup {
  const v1::ModelRecord* model = nullptr;
  std::optional<hardware::Violation> violation;  // UNKNOWN_MODEL with near names
};

// A file of catalog data. The line "# proto-message: sliceplan.catalog.v1.<Kind>" says which message the text is.
struct SourceFile {
  std::string name;  // for messages; relative names of other files (model configurations) are looked up beside it
  absl::string_view text;
};

class Catalog {
 public:
  // Builds a snapshot from `base` and an operator's `overlay`, whose records replace those of the same key and add to
  // the rest. INVALID_ARGUMENT lists every problem, one per line: file, record, field, what is wrong. Files that are
  // neither .textproto nor referred to by one are ignored.
  static absl::StatusOr<std::shared_ptr<const Catalog>> Build(absl::Span<const SourceFile> base,
                                                              absl::Span<const SourceFile> overlay = {});

  Catalog(const Catalog&) = delete;
  Catalog& operator=(const Catalog&) = delete;

  // Twelve hexadecimal digits that change with the content and with nothing else.
  const std::string& version() const { return version_; }

  // By id.
  absl::Span<const Accelerator> accelerators() const { return accelerators_; }
  // By accelerator, then chips. Fields that follow from others (dims, counts, wraps) are filled in.
  absl::Span<const v1::SliceRecord> slices() const { return slices_; }
  // By accelerator, provider, machine type.
  absl::Span<const v1::GpuMachineRecord> gpu_machines() const { return gpu_machines_; }
  const hardware::PriceTable& prices() const { return prices_; }
  // By preset name. `hugging_face_config` is filled in.
  absl::Span<const v1::ModelRecord> models() const { return models_; }
  // By name.
  absl::Span<const v1::CalibrationProfile> calibration_profiles() const { return calibration_profiles_; }

  // By id or alias, without regard to case; blanks and underscores count as hyphens. `field` goes into the violation.
  AcceleratorLookup FindAccelerator(absl::string_view name, absl::string_view field = "accelerator") const;

  // By preset, alias or Hugging Face name, likewise.
  ModelLookup FindModel(absl::string_view name, absl::string_view field = "preset") const;

  // Listed slices by any of their short names ("v5p-256", "v5litepod-8"); several where one name has several hosts.
  absl::Span<const v1::SliceRecord* const> FindSlices(absl::string_view slice_name) const;

 private:
  friend class CatalogBuilder;
  Catalog() = default;

  std::string version_;
  std::vector<v1::SliceRecord> slices_;
  std::vector<v1::SliceRule> slice_rules_;
  std::vector<v1::GpuMachineRecord> gpu_machines_;
  std::vector<Accelerator> accelerators_;
  hardware::PriceTable prices_;
  std::vector<v1::ModelRecord> models_;
  std::vector<v1::CalibrationProfile> calibration_profiles_;

  // By normalised name.
  absl::flat_hash_map<std::string, std::vector<const Accelerator*>> accelerators_by_name_;
  absl::flat_hash_map<std::string, const v1::ModelRecord*> models_by_name_;
  absl::flat_hash_map<std::string, std::vector<const v1::SliceRecord*>> slices_by_name_;
};

}  // namespace sliceplan::catalog

#endif  // SLICEPLAN_SERVER_CATALOG_CATALOG_H_
