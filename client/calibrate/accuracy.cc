#include "client/calibrate/accuracy.h"

#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/calibrate/csv_text.h"
#include "server/calibration/error_summary.h"

namespace sliceplan::calibrate {
namespace {

using calibration::Compared;
using calibration::ErrorSummary;

Compared ComparedOf(const Prediction& said) { return {said.measured, said.expected, said.low, said.high}; }

absl::string_view NameOf(Standing standing) {
  switch (standing) {
    case Standing::kScored: return "scored";
    case Standing::kInconsistent: return "inconsistent";
    case Standing::kInformative: return "informative";
  }
  return "";
}

// A line of the error table.
struct LineKey {
  std::string kind;  // "group" or "source"
  std::string name;
  std::string accelerator;  // empty for groups
  std::string metric;
  std::string standing;

  friend bool operator<(const LineKey& a, const LineKey& b) {
    return std::tie(a.kind, a.name, a.accelerator, a.metric, a.standing) <
           std::tie(b.kind, b.name, b.accelerator, b.metric, b.standing);
  }
};

struct Line {
  std::vector<Compared> figures;
  std::set<std::string> left_out;  // what was, with its cases
  std::map<std::string, std::vector<Compared>> sweeps;
};

// Mean rank correlation of the sweeps that have an order to speak of.
struct Ranks {
  int64_t sweeps = 0;
  double correlation = 0;
};

Ranks RanksOf(const Line& line) {
  constexpr size_t kFewest = 3;
  Ranks ranks;
  for (const auto& [name, figures] : line.sweeps) {
    if (figures.size() < kFewest) continue;
    std::vector<double> measured;
    std::vector<double> predicted;
    for (const Compared& figure : figures) {
      measured.push_back(figure.measured);
      predicted.push_back(figure.predicted);
    }
    ++ranks.sweeps;
    ranks.correlation += calibration::RankCorrelation(measured, predicted);
  }
  if (ranks.sweeps > 0) ranks.correlation /= static_cast<double>(ranks.sweeps);
  return ranks;
}

using Lines = std::map<LineKey, Line>;

Lines LinesOf(const std::vector<AnsweredCase>& answered) {
  Lines lines;
  for (const auto& [asked, answer, left_out] : answered) {
    for (const Prediction& said : answer.predictions) {
      const std::string metric(calibrate::NameOf(said.metric));
      const std::string standing(NameOf(asked->standing));
      const auto add = [&, asked = asked, &left_out = left_out](const LineKey& key) {
        lines[key].figures.push_back(ComparedOf(said));
        if (!left_out.empty()) lines[key].left_out.insert(left_out);
        if (!asked->sweep.empty()) lines[key].sweeps[asked->sweep].push_back(ComparedOf(said));
      };
      add({"source", asked->source, asked->accelerator, metric, standing});
      if (asked->standing != Standing::kScored) continue;
      for (const std::string& group : asked->groups) add({"group", group, "", metric, standing});
    }
  }
  return lines;
}

// Rows, errors, interval and ranks as fields; empty where there are none.
std::string SummaryFields(const Line* line) {
  if (line == nullptr) return ",,,,,,,,,";
  const ErrorSummary summary = calibration::Summarize(line->figures);
  std::string text = absl::StrFormat("%d,%.1f,%.1f,%.1f,%.1f,%.1f", summary.count, 100 * summary.mean,
                                     100 * summary.median, 100 * summary.p90, 100 * summary.worst, 100 * summary.bias);
  if (summary.interval_count > 0) {
    absl::StrAppendFormat(&text, ",%.0f,%.1f", 100 * summary.coverage, 100 * summary.median_half_width);
  } else {
    text += ",,";
  }
  const Ranks ranks = RanksOf(*line);
  return ranks.sweeps > 0 ? absl::StrFormat("%s,%d,%.2f", text, ranks.sweeps, ranks.correlation) : text + ",,";
}

}  // namespace

std::vector<AnsweredCase> AnswerAll(const Predictor& predictor, const std::vector<Case>& cases) {
  std::vector<const Case*> asked;
  for (const Case& one : cases) asked.push_back(&one);
  std::vector<Answer> answers = predictor.PredictAll(asked);
  std::vector<AnsweredCase> answered;
  for (size_t i = 0; i < asked.size(); ++i) answered.push_back({asked[i], std::move(answers[i]), ""});
  return answered;
}

std::string FiguresCsv(const std::vector<AnsweredCase>& answered) {
  std::string csv =
      "id,source,model,accelerator,profile,standing,metric,measured,predicted,error_percent,low,high,outcome,remark\n";
  for (const auto& [asked, answer, left_out] : answered) {
    for (const Prediction& said : answer.predictions) {
      absl::StrAppendFormat(&csv, "%s,%s,%s,%s,%s,%s,%s,%.5g,%.5g,%.1f,%.5g,%.5g,%s,%s\n", CsvField(asked->id),
                            CsvField(asked->source), CsvField(asked->model), asked->accelerator, answer.profile,
                            NameOf(asked->standing), calibrate::NameOf(said.metric), said.measured, said.expected,
                            100 * calibration::ErrorOf(ComparedOf(said)), said.low, said.high, answer.outcome,
                            CsvField(asked->remark));
    }
  }
  return csv;
}

std::string ErrorTable(const std::vector<AnsweredCase>& answered) {
  std::string table = absl::StrFormat("%-64s %5s %6s %6s %6s %6s %6s %6s %6s %6s\n", "percent", "n", "mean", "median",
                                      "p90", "worst", "bias", "in 90%", "+-", "ranks");
  for (const auto& [key, line] : LinesOf(answered)) {
    const ErrorSummary summary = calibration::Summarize(line.figures);
    const std::string standing = key.standing == "scored" ? "" : absl::StrCat(" (", key.standing, ")");
    const std::string accelerator = key.accelerator.empty() ? "" : absl::StrCat(" ", key.accelerator);
    absl::StrAppendFormat(&table, "%-64s %5d %6.1f %6.1f %6.1f %6.1f %+6.1f",
                          absl::StrCat(key.kind, " ", key.name, accelerator, " ", key.metric, standing), summary.count,
                          100 * summary.mean, 100 * summary.median, 100 * summary.p90, 100 * summary.worst,
                          100 * summary.bias);
    const Ranks ranks = RanksOf(line);
    if (summary.interval_count > 0) {
      absl::StrAppendFormat(&table, " %6.0f %6.1f", 100 * summary.coverage, 100 * summary.median_half_width);
    } else if (ranks.sweeps > 0) {
      absl::StrAppendFormat(&table, " %6s %6s", "", "");
    }
    if (ranks.sweeps > 0) absl::StrAppendFormat(&table, " %6.2f", ranks.correlation);
    table += '\n';
  }
  return table;
}

std::string AccuracyCsv(const std::vector<AnsweredCase>& answered,
                        const std::vector<std::vector<AnsweredCase>>& left_out) {
  constexpr absl::string_view kSummaryColumns[] = {
      "rows",         "mean_percent",     "median_percent",     "p90_percent", "worst_percent",
      "bias_percent", "coverage_percent", "half_width_percent", "sweeps",      "rank_correlation"};
  std::string csv = "kind,name,accelerator,metric,standing";
  for (const absl::string_view column : kSummaryColumns) absl::StrAppend(&csv, ",", column);
  csv += ",left_out";
  for (const absl::string_view column : kSummaryColumns) absl::StrAppend(&csv, ",left_out_", column);
  csv += '\n';
  std::vector<Lines> ways;
  for (const std::vector<AnsweredCase>& way : left_out) ways.push_back(LinesOf(way));
  for (const auto& [key, line] : LinesOf(answered)) {
    const auto append = [&, key = key](const Line* as_is, const Line* without) {
      absl::StrAppend(&csv, key.kind, ",", CsvField(key.name), ",", key.accelerator, ",", key.metric, ",", key.standing,
                      ",", SummaryFields(as_is), ",",
                      without == nullptr ? "" : CsvField(absl::StrJoin(without->left_out, " ")), ",",
                      SummaryFields(without), "\n");
    };
    const auto find = [&ways, key = key](size_t way) -> const Line* {
      const auto found = ways[way].find(key);
      return found == ways[way].end() ? nullptr : &found->second;
    };
    append(&line, ways.empty() ? nullptr : find(0));
    for (size_t way = 1; way < ways.size(); ++way) {
      if (const Line* const without = find(way)) append(nullptr, without);
    }
  }
  return csv;
}

std::string NotPredicted(const std::vector<Unmapped>& unmapped, const std::vector<AnsweredCase>& answered) {
  std::map<std::string, std::vector<std::string>> reasons;
  for (const Unmapped& row : unmapped) reasons[absl::StrCat(row.source, ": ", row.reason)].push_back(row.id);
  for (const auto& [asked, answer, left_out] : answered) {
    if (!answer.failure.empty()) reasons[absl::StrCat(asked->source, ": ", answer.failure)].push_back(asked->id);
  }
  std::string text;
  for (const auto& [reason, ids] : reasons) absl::StrAppend(&text, ids.size(), " x ", reason, " (", ids.front(), ")\n");
  return text;
}

}  // namespace sliceplan::calibrate
