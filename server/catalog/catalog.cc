#include "server/catalog/catalog.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/catalog/catalog_builder.h"
#include "server/catalog/near_names.h"

namespace sliceplan::catalog {

using hardware::Violation;

absl::StatusOr<std::shared_ptr<const Catalog>> Catalog::Build(absl::Span<const SourceFile> base,
                                                              absl::Span<const SourceFile> overlay) {
  CatalogBuilder builder;
  builder.AddLayer(base);
  builder.AddLayer(overlay);
  return builder.Build();
}

AcceleratorLookup Catalog::FindAccelerator(absl::string_view name, absl::string_view field) const {
  const auto found = accelerators_by_name_.find(NormalizeName(name));
  if (found != accelerators_by_name_.end() && found->second.size() == 1) return {found->second.front(), std::nullopt};
  if (found != accelerators_by_name_.end()) {
    const std::string ids = absl::StrJoin(found->second, " or ", [](std::string* out, const Accelerator* accelerator) {
      absl::StrAppend(out, "\"", accelerator->record.id(), "\"");
    });
    return {nullptr,
            Violation{std::string(field), absl::StrCat(Quoted(name), " could mean ", ids, "; name one of them."),
                      "AMBIGUOUS_ACCELERATOR", Violation::Kind::kInvalid}};
  }
  // Ids come first, so that of equally near names the id is offered.
  std::vector<absl::string_view> names;
  for (const Accelerator& accelerator : accelerators_) names.push_back(accelerator.record.id());
  for (const Accelerator& accelerator : accelerators_) {
    names.insert(names.end(), accelerator.record.aliases().begin(), accelerator.record.aliases().end());
  }
  const std::string hint = DidYouMean(NearNames(name, names));
  return {nullptr, Violation{std::string(field),
                             absl::StrCat("There is no accelerator ", Quoted(name), hint.empty() ? "." : hint),
                             "UNKNOWN_ACCELERATOR", Violation::Kind::kNotFound}};
}

ModelLookup Catalog::FindModel(absl::string_view name, absl::string_view field) const {
  const auto found = models_by_name_.find(NormalizeName(name));
  if (found != models_by_name_.end()) return {found->second, std::nullopt};
  std::vector<absl::string_view> names;
  for (const v1::ModelRecord& model : models_) names.push_back(model.preset());
  for (const v1::ModelRecord& model : models_) {
    if (!model.hugging_face_name().empty()) names.push_back(model.hugging_face_name());
  }
  const std::string hint = DidYouMean(NearNames(name, names));
  return {nullptr, Violation{std::string(field),
                             absl::StrCat("There is no model preset ", Quoted(name), hint.empty() ? "." : hint),
                             "UNKNOWN_MODEL", Violation::Kind::kNotFound}};
}

absl::Span<const v1::SliceRecord* const> Catalog::FindSlices(absl::string_view slice_name) const {
  const auto found = slices_by_name_.find(NormalizeName(slice_name));
  if (found == slices_by_name_.end()) return {};
  return found->second;
}

}  // namespace sliceplan::catalog
