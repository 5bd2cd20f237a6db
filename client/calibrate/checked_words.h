// What the cells of measured tables may say. A word that nobody knows would otherwise count as if it were not there,
// and the question would be another one.
#ifndef SLICEPLAN_CLIENT_CALIBRATE_CHECKED_WORDS_H_
#define SLICEPLAN_CLIENT_CALIBRATE_CHECKED_WORDS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/calibrate/table.h"
#include "server/catalog/catalog.h"

namespace sliceplan::calibrate {

enum class TableKind { kTraining, kServing, kEndToEnd };

// Every cell that makes no sense, "runs.csv:3:phase: "decoed" is none of ...; did you mean "decode"?": a chip, format,
// stack or phase that is not known, a number that is none. Blank cells and columns that are not read are fine.
std::vector<std::string> FaultsOf(const Table& table, TableKind kind, absl::string_view file,
                                  const catalog::Catalog& catalog);

}  // namespace sliceplan::calibrate

#endif  // SLICEPLAN_CLIENT_CALIBRATE_CHECKED_WORDS_H_
