#include "client/calibrate/accuracy.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "server/calibration/error_summary.h"

namespace sliceplan::calibrate {
namespace {

using calibration::Compared;
using calibration::ErrorSummary;

Compared ComparedOf(const Prediction& said) { return {said.measured, said.expected, said.low, said.high}; }

std::string Quoted(const std::string& text) {
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

absl::string_view NameOf(Standing standing) {
  switch (standing) {
    case Standing::kScored: return "scored";
    case Standing::kInconsistent: return "inconsistent";
    case Standing::kInformative: return "informative";
  }
  return "";
}

}  // namespace

std::vector<AnsweredCase> AnswerAll(const Predictor& predictor, const std::vector<Case>& cases) {
  std::vector<AnsweredCase> answered;
  answered.reserve(cases.size());
  for (const Case& asked : cases) answered.push_back({&asked, predictor.Predict(asked)});
  return answered;
}

std::string FiguresCsv(const std::vector<AnsweredCase>& answered) {
  std::string csv =
      "id,source,model,accelerator,profile,standing,metric,measured,predicted,error_percent,low,high,outcome,remark\n";
  for (const auto& [asked, answer] : answered) {
    for (const Prediction& said : answer.predictions) {
      absl::StrAppendFormat(&csv, "%s,%s,%s,%s,%s,%s,%s,%.5g,%.5g,%.1f,%.5g,%.5g,%s,%s\n", asked->id, asked->source,
                            Quoted(asked->model), asked->accelerator, answer.profile, NameOf(asked->standing),
                            calibrate::NameOf(said.metric), said.measured, said.expected,
                            100 * calibration::ErrorOf(ComparedOf(said)), said.low, said.high, answer.outcome,
                            Quoted(asked->remark));
    }
  }
  return csv;
}

std::string ErrorTable(const std::vector<AnsweredCase>& answered) {
  std::map<std::string, std::vector<Compared>> lines;
  for (const auto& [asked, answer] : answered) {
    for (const Prediction& said : answer.predictions) {
      const absl::string_view metric = calibrate::NameOf(said.metric);
      const Compared compared = ComparedOf(said);
      const std::string standing =
          asked->standing == Standing::kScored ? "" : absl::StrCat(" (", NameOf(asked->standing), ")");
      lines[absl::StrCat("source ", asked->source, " ", asked->accelerator, " ", metric, standing)].push_back(compared);
      if (asked->standing != Standing::kScored) continue;
      for (const std::string& group : asked->groups)
        lines[absl::StrCat("group ", group, " ", metric)].push_back(compared);
    }
  }
  std::string table = absl::StrFormat("%-64s %5s %6s %6s %6s %6s %6s %6s %6s\n", "percent", "n", "mean", "median",
                                      "p90", "worst", "bias", "in 90%", "+-");
  for (const auto& [name, figures] : lines) {
    const ErrorSummary summary = calibration::Summarize(figures);
    absl::StrAppendFormat(&table, "%-64s %5d %6.1f %6.1f %6.1f %6.1f %+6.1f", name, summary.count, 100 * summary.mean,
                          100 * summary.median, 100 * summary.p90, 100 * summary.worst, 100 * summary.bias);
    if (summary.interval_count > 0) {
      absl::StrAppendFormat(&table, " %6.0f %6.1f", 100 * summary.coverage, 100 * summary.median_half_width);
    }
    table += '\n';
  }
  return table;
}

std::string NotPredicted(const std::vector<Unmapped>& unmapped, const std::vector<AnsweredCase>& answered) {
  std::map<std::string, std::vector<std::string>> reasons;
  for (const Unmapped& row : unmapped) reasons[absl::StrCat(row.source, ": ", row.reason)].push_back(row.id);
  for (const auto& [asked, answer] : answered) {
    if (!answer.failure.empty()) reasons[absl::StrCat(asked->source, ": ", answer.failure)].push_back(asked->id);
  }
  std::string text;
  for (const auto& [reason, ids] : reasons) absl::StrAppend(&text, ids.size(), " x ", reason, " (", ids.front(), ")\n");
  return text;
}

}  // namespace sliceplan::calibrate
