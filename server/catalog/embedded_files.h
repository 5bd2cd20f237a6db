// The catalog's data files, built into the program.
#ifndef SLICEPLAN_SERVER_CATALOG_EMBEDDED_FILES_H_
#define SLICEPLAN_SERVER_CATALOG_EMBEDDED_FILES_H_

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace sliceplan::catalog {

struct SourceFileText {
  absl::string_view name;  // below server/catalog/data, "prices/gcp.textproto"
  absl::string_view text;
};

absl::Span<const SourceFileText> EmbeddedFiles();

}  // namespace sliceplan::catalog

#endif  // SLICEPLAN_SERVER_CATALOG_EMBEDDED_FILES_H_
