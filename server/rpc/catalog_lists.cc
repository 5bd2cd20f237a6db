#include "server/rpc/catalog_lists.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "server/rpc/convert/catalog_items.h"
#include "server/rpc/convert/model.h"
#include "server/rpc/convert/pricing.h"
#include "server/rpc/convert/slice.h"
#include "server/rpc/violations.h"

namespace sliceplan::rpc {

const std::vector<v1::Accelerator>& CatalogLists::Accelerators() const {
  std::call_once(accelerators_once_, [this] {
    for (const catalog::Accelerator& accelerator : catalog_->accelerators()) {
      ToProto(accelerator, &accelerators_.emplace_back());
    }
  });
  return accelerators_;
}

const std::vector<v1::SliceInfo>& CatalogLists::Slices() const {
  std::call_once(slices_once_, [this] {
    for (const catalog::v1::SliceRecord& record : catalog_->slices()) ToProto(record, &slices_.emplace_back());
    for (const catalog::v1::GpuMachineRecord& record : catalog_->gpu_machines()) {
      ToProto(record, &slices_.emplace_back());
    }
    const auto key = [](const v1::SliceInfo& slice) {
      return std::tie(slice.accelerator(), slice.provider(), slice.topology(), slice.machine_type());
    };
    std::stable_sort(slices_.begin(), slices_.end(), [&](const v1::SliceInfo& a, const v1::SliceInfo& b) {
      if (a.accelerator() != b.accelerator()) return a.accelerator() < b.accelerator();
      if (a.chip_count() != b.chip_count()) return a.chip_count() < b.chip_count();
      return key(a) < key(b);
    });
  });
  return slices_;
}

const std::vector<v1::Price>& CatalogLists::Prices() const {
  std::call_once(prices_once_, [this] {
    for (const hardware::PriceRow& row : catalog_->prices().rows()) ToProto(row, &prices_.emplace_back());
  });
  return prices_;
}

const std::vector<v1::ModelPreset>& CatalogLists::Models(ModelCache& models) const {
  std::call_once(models_once_, [this, &models] {
    for (const catalog::v1::ModelRecord& record : catalog_->models()) {
      v1::ModelSpec spec;
      spec.set_preset(record.preset());
      Violations ignored;
      const ModelHandle model = ToModel(spec, *catalog_, models, FieldPath(), ignored);
      ToProto(record, model.get(), &models_.emplace_back());
    }
  });
  return models_;
}

std::shared_ptr<const CatalogLists> CatalogListsHolder::Of(std::shared_ptr<const catalog::Catalog> catalog) {
  std::lock_guard lock(mutex_);
  if (lists_ == nullptr || &lists_->catalog() != catalog.get()) {
    lists_ = std::make_shared<const CatalogLists>(std::move(catalog));
  }
  return lists_;
}

}  // namespace sliceplan::rpc
