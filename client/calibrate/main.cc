#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "client/calibrate/accuracy.h"
#include "client/calibrate/cases.h"
#include "client/calibrate/predictor.h"
#include "client/calibrate/table.h"

namespace sliceplan::calibrate {
namespace {

struct Flags {
  std::string training;
  std::string serving;
  std::string end_to_end;
  std::string catalog_dir;
  std::string figures;
};

bool AddCases(const std::string& file, CaseTable (*read)(const Table&), CaseTable& all) {
  if (file.empty()) return true;
  std::ifstream stream(file);
  const std::string text((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  if (!stream.good()) {
    std::cerr << file << ": cannot be read\n";
    return false;
  }
  const absl::StatusOr<Table> table = Table::Parse(text);
  if (!table.ok()) {
    std::cerr << file << ": " << table.status().message() << "\n";
    return false;
  }
  CaseTable cases = read(*table);
  std::move(cases.cases.begin(), cases.cases.end(), std::back_inserter(all.cases));
  std::move(cases.unmapped.begin(), cases.unmapped.end(), std::back_inserter(all.unmapped));
  return true;
}

int Run(const Flags& flags) {
  CaseTable all;
  if (!AddCases(flags.training, TrainingCases, all) || !AddCases(flags.serving, ServingCases, all) ||
      !AddCases(flags.end_to_end, EndToEndCases, all)) {
    return 1;
  }
  const absl::StatusOr<std::unique_ptr<Predictor>> predictor = Predictor::Create(flags.catalog_dir);
  if (!predictor.ok()) {
    std::cerr << predictor.status().message() << "\n";
    return 1;
  }
  const std::vector<AnsweredCase> answered = AnswerAll(**predictor, all.cases);
  std::cout << ErrorTable(answered) << "\nNot predicted:\n" << NotPredicted(all.unmapped, answered);
  if (!flags.figures.empty()) std::ofstream(flags.figures) << FiguresCsv(answered);
  return 0;
}

}  // namespace
}  // namespace sliceplan::calibrate

int main(int argc, char** argv) {
  sliceplan::calibrate::Flags flags;
  CLI::App app("Predicts measured runs through the service's own handlers and prints how far off it is.");
  app.add_option("--training", flags.training, "table of training runs");
  app.add_option("--serving", flags.serving, "table of static batches and single pools");
  app.add_option("--end-to-end", flags.end_to_end, "table of end-to-end points under a number of users");
  app.add_option("--catalog-dir", flags.catalog_dir, "catalog files that replace or add to the built-in ones");
  app.add_option("--figures", flags.figures, "file for one line per predicted figure (CSV)");
  CLI11_PARSE(app, argc, argv);
  return sliceplan::calibrate::Run(flags);
}
