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
  // What was left out with the case when the constants were fitted, "source"; empty: nothing.
  std::string left_out;
};

// In the order of `cases`, which must outlive the result.
std::vector<AnsweredCase> AnswerAll(const Predictor& predictor, const std::vector<Case>& cases);

// One line per figure: id, source, model, accelerator, profile, standing, metric, measured, predicted, error, interval,
// outcome, remark. Comma-separated with a header.
std::string FiguresCsv(const std::vector<AnsweredCase>& answered);

// The error table: one line per source, chip and metric, and per group of scored cases. Readable text. Ranks: the mean
// over sweeps of at least three figures of how alike predictions and measurements order them, 1 for the same order.
std::string ErrorTable(const std::vector<AnsweredCase>& answered);

// The same lines as a table (README.md lists its columns): as the profiles are, and with the constants fitted without
// each line's group. `left_out` is what AnswerLeftOut gives; a line has one more below it for each further way.
std::string AccuracyCsv(const std::vector<AnsweredCase>& answered,
                        const std::vector<std::vector<AnsweredCase>>& left_out);

// Rows that were not predicted: id and reason, and how often each reason occurs.
std::string NotPredicted(const std::vector<Unmapped>& unmapped, const std::vector<AnsweredCase>& answered);

}  // namespace sliceplan::calibrate

#endif  // SLICEPLAN_CLIENT_CALIBRATE_ACCURACY_H_
