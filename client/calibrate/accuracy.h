// Every case predicted, and the errors by source, chip, metric and group.
#ifndef SLICEPLAN_CLIENT_CALIBRATE_ACCURACY_H_
#define SLICEPLAN_CLIENT_CALIBRATE_ACCURACY_H_

#include <string>
#include <vector>

#include "client/calibrate/case.h"
#include "client/calibrate/predictor.h"

namespace sliceplan::calibrate {

struct AnsweredCase {
  const Case* asked = nullptr;
  Answer answer;
};

// In the order of `cases`, which must outlive the result.
std::vector<AnsweredCase> AnswerAll(const Predictor& predictor, const std::vector<Case>& cases);

// One line per figure: id, source, model, accelerator, profile, standing, metric, measured, predicted, error, interval,
// outcome, remark. Comma-separated with a header.
std::string FiguresCsv(const std::vector<AnsweredCase>& answered);

// The error table: one line per scored group, and per source, chip and metric. Readable text.
std::string ErrorTable(const std::vector<AnsweredCase>& answered);

// Rows that were not predicted: id and reason, and how often each reason occurs.
std::string NotPredicted(const std::vector<Unmapped>& unmapped, const std::vector<AnsweredCase>& answered);

}  // namespace sliceplan::calibrate

#endif  // SLICEPLAN_CLIENT_CALIBRATE_ACCURACY_H_
