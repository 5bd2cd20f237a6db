// Reads textproto files into a catalog: parse, overlay, check, derive, index.
#ifndef SLICEPLAN_SERVER_CATALOG_CATALOG_BUILDER_H_
#define SLICEPLAN_SERVER_CATALOG_CATALOG_BUILDER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "proto/sliceplan/catalog/v1/catalog.pb.h"
#include "server/catalog/catalog.h"
#include "server/catalog/problems.h"

namespace sliceplan::catalog {

// A record and where it came from.
template <typename Record>
struct Located {
  Record record;
  std::string file;
  int layer = 0;
  int64_t arrival = 0;  // the order in which keys first came
};

class CatalogBuilder {
 public:
  // Adds the files of one layer; later layers replace records of the same key.
  void AddLayer(absl::Span<const SourceFile> files);

  // The problems of all layers, or the catalog.
  absl::StatusOr<std::shared_ptr<const Catalog>> Build();

 private:
  // By key. Sorted, so that everything that follows is the same whatever the order of the files.
  template <typename Record>
  using Records = absl::btree_map<std::string, Located<Record>>;

  void AddFile(const SourceFile& file, const absl::flat_hash_map<absl::string_view, absl::string_view>& layer_texts);
  template <typename Message>
  bool Parse(const SourceFile& file, Message& message);
  // Moves from `record`.
  template <typename Record>
  void AddRecord(const SourceFile& file, absl::string_view kind, std::string key, Record& record,
                 Records<Record>& records);
  void AddSlices(const SourceFile& file, v1::Slices slices);
  void AddModels(const SourceFile& file, v1::Models models,
                 const absl::flat_hash_map<absl::string_view, absl::string_view>& layer_texts);

  void BuildAccelerators(Catalog& catalog);
  void BuildSlices(Catalog& catalog);
  void BuildGpuMachines(Catalog& catalog);
  void BuildPrices(Catalog& catalog);
  void BuildModels(Catalog& catalog);
  void BuildProfiles(Catalog& catalog);
  // Reports the reference when there is no such accelerator.
  bool CheckAccelerator(absl::string_view id, RecordProblems& problems) const;

  Problems problems_;
  int layer_ = 0;
  size_t sequence_ = 0;
  Records<v1::AcceleratorRecord> accelerators_;
  absl::btree_set<std::string> changed_chips_;  // whose figures an overlay changed
  Records<v1::SliceRecord> slices_;
  Records<v1::SliceRule> slice_rules_;
  Records<v1::GpuMachineRecord> gpu_machines_;
  Records<v1::PriceRecord> prices_;
  Records<v1::ModelRecord> models_;
  Records<v1::CalibrationProfile> profiles_;
};

}  // namespace sliceplan::catalog

#endif  // SLICEPLAN_SERVER_CATALOG_CATALOG_BUILDER_H_
