// Rows of measured tables as questions to the service. The columns of each kind are listed in README.md. Chips and
// models are looked up in `catalog`; what a cell may say is checked before (checked_words.h).
#ifndef SLICEPLAN_CLIENT_CALIBRATE_CASES_H_
#define SLICEPLAN_CLIENT_CALIBRATE_CASES_H_

#include "client/calibrate/case.h"
#include "client/calibrate/table.h"
#include "server/catalog/catalog.h"

namespace sliceplan::calibrate {

// Steps of training runs. Columns: id, accelerator, model or its dimensions, batch, chips, degrees, remat, formats,
// step seconds or tokens per second, memory.
CaseTable TrainingCases(const Table& table, const catalog::Catalog& catalog);

// Prefill, decode and batches on one replica, with and without a scheduler.
CaseTable ServingCases(const Table& table, const catalog::Catalog& catalog);

// End-to-end points of engines under a number of users.
CaseTable EndToEndCases(const Table& table, const catalog::Catalog& catalog);

}  // namespace sliceplan::calibrate

#endif  // SLICEPLAN_CLIENT_CALIBRATE_CASES_H_
