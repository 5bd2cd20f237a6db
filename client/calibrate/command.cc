#include "client/calibrate/command.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/calibrate/accuracy.h"
#include "client/calibrate/default_fit_plan.h"
#include "client/calibrate/fit_plan.h"
#include "client/calibrate/folds.h"
#include "client/calibrate/inputs.h"
#include "client/calibrate/plots.h"
#include "client/calibrate/predictor.h"
#include "client/calibrate/profile_fit.h"
#include "client/calibrate/profile_text.h"
#include "client/calibrate/regret.h"

namespace sliceplan::calibrate {
namespace {

constexpr char kDate[] = "%Y-%m-%d";

constexpr char kDescription[] =
    "Holds measured runs against what the service says of them, and fits calibration profiles to them.\n"
    "Predictions come from the handlers that a server has, in this process.";

constexpr char kFooter[] =
    R"(client/calibrate/README.md lists the columns of every table.
Exit status: 0 done; 1 the arguments or a file cannot be read or written; 2 no row could be
predicted, or none by a profile that is to be fitted.
Examples:
  sliceplan-calibrate errors --training runs.csv --figures figures.csv
  sliceplan-calibrate fit --training runs.csv --leave-out row --out catalog/ours.textproto
  sliceplan-server --catalog_dir catalog)";

struct Flags {
  MeasuredFiles files;
  std::string catalog_dir;
  std::string folds;    // read
  std::string figures;  // written
  std::string out;
  std::string regret_out;
  // Of `fit`.
  std::string plan;
  std::vector<std::string> profiles;
  std::string leave_out;
  std::string priors = "catalog";
  std::string folds_out;
  calibration::FitOptions options;
  Provenance provenance;
};

// What every subcommand starts from. Not movable: `answered` points into `cases`.
struct Session {
  CaseTable cases;
  std::unique_ptr<Predictor> predictor;
  std::vector<AnsweredCase> answered;
  std::vector<std::vector<AnsweredCase>> left_out;  // of AnswerLeftOut; empty without folds

  // By the first way of leaving out; empty without folds.
  std::vector<AnsweredCase> FirstLeftOut() const {
    return left_out.empty() ? std::vector<AnsweredCase>() : left_out.front();
  }

  absl::Status Open(const Flags& flags) {
    absl::StatusOr<std::unique_ptr<Predictor>> created = Predictor::Create(flags.catalog_dir);
    if (!created.ok()) return created.status();
    predictor = *std::move(created);
    absl::StatusOr<CaseTable> read = ReadCases(flags.files, predictor->catalog());
    if (!read.ok()) return read.status();
    cases = *std::move(read);
    answered = AnswerAll(*predictor, cases.cases);
    if (flags.folds.empty()) return absl::OkStatus();
    const absl::StatusOr<Table> table = ReadTable(flags.folds);
    if (!table.ok()) return table.status();
    const auto folds = ToFolds(*table, predictor->catalog().calibration_profiles());
    if (!folds.ok()) return absl::InvalidArgumentError(absl::StrCat(flags.folds, ": ", folds.status().message()));
    left_out = AnswerLeftOut(*predictor, answered, *folds);
    return absl::OkStatus();
  }

  bool HasPredictions() const {
    return std::any_of(answered.begin(), answered.end(),
                       [](const AnsweredCase& answer) { return !answer.answer.predictions.empty(); });
  }
};

// 0, or 1 with the error printed.
int Report(const absl::Status& status, std::ostream& err) {
  if (status.ok()) return kDone;
  err << "sliceplan-calibrate: " << status.message() << '\n';
  return kUsageError;
}

void PrintTables(const std::vector<AnsweredCase>& answered, const std::vector<std::vector<AnsweredCase>>& left_out,
                 std::ostream& out) {
  out << "As the profiles are:\n" << ErrorTable(answered);
  for (size_t way = 0; way < left_out.size(); ++way) {
    std::set<std::string> kinds;
    for (const AnsweredCase& one : left_out[way]) kinds.insert(one.left_out);
    kinds.erase("");
    out << "\nWith the constants fitted without each row's group (" << absl::StrJoin(kinds, ", ") << "):\n"
        << ErrorTable(left_out[way]);
  }
}

int Errors(const Flags& flags, Session& session, std::ostream& out, std::ostream& err) {
  PrintTables(session.answered, session.left_out, out);
  const std::string missing = NotPredicted(session.cases.unmapped, session.answered);
  if (!missing.empty()) out << "\nNot predicted:\n" << missing;
  if (!flags.figures.empty()) {
    if (const int failed = Report(WriteText(flags.figures, FiguresCsv(session.answered)), err)) return failed;
  }
  return session.HasPredictions() ? kDone : kNothingToDo;
}

int Accuracy(const Flags& flags, Session& session, std::ostream& out, std::ostream& err) {
  if (!flags.regret_out.empty()) {
    const std::string regret = RegretCsv(session.answered, session.FirstLeftOut());
    if (const int failed = Report(WriteText(flags.regret_out, regret), err)) return failed;
  }
  const std::string csv = AccuracyCsv(session.answered, session.left_out);
  if (flags.out.empty()) {
    out << csv;
  } else if (const int failed = Report(WriteText(flags.out, csv), err)) {
    return failed;
  }
  return session.HasPredictions() ? kDone : kNothingToDo;
}

int Plots(const Flags& flags, Session& session, std::ostream& out, std::ostream& err) {
  for (const Picture& picture : PicturesOf(session.answered, session.FirstLeftOut(), session.predictor->catalog())) {
    const std::string file = absl::StrCat(flags.out, "/", picture.file);
    if (const int failed = Report(WriteText(file, picture.svg), err)) return failed;
    out << file << '\n';
  }
  return session.HasPredictions() ? kDone : kNothingToDo;
}

absl::StatusOr<std::vector<FitPlan>> ReadPlan(const Flags& flags, const catalog::Catalog& catalog) {
  const absl::StatusOr<Table> table = flags.plan.empty() ? Table::Parse(DefaultFitPlan()) : ReadTable(flags.plan);
  if (!table.ok()) return table.status();
  absl::StatusOr<std::vector<FitPlan>> plans = ToFitPlan(*table, catalog.calibration_profiles());
  if (!plans.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(flags.plan.empty() ? "the built-in plan" : flags.plan, ": ", plans.status().message()));
  }
  for (FitPlan& plan : *plans) {
    if (!flags.leave_out.empty()) plan.leave_outs = {*ToLeaveOut(flags.leave_out)};
    if (flags.priors == "plan") continue;
    for (calibration::FreeConstant& constant : plan.constants) constant.prior = constant.start;
  }
  for (const std::string& name : flags.profiles) {
    if (absl::c_none_of(*plans, [&](const auto& plan) { return absl::c_linear_search(plan.profiles, name); }))
      return absl::InvalidArgumentError(absl::StrCat("The plan has no profile ", name, "."));
  }
  return plans;
}

// What was fitted, with a line for each constant that moved.
void PrintFit(const FittedPlan& fitted, std::ostream& out) {
  const FitPlan& plan = fitted.plan;
  for (const FittedProfile& profile : fitted.profiles) {
    if (profile.figures == 0) continue;
    out << profile.name << ": " << profile.figures << " figures of " << profile.sources.size() << " sources\n";
  }
  for (size_t way = 0; way < fitted.fits.size(); ++way)
    out << "  " << fitted.fits[way].folds.size() << " folds (" << NameOf(plan.leave_outs[way]) << ")\n";
  for (size_t c = 0; c < plan.names.size(); ++c) {
    out << "  " << plan.constants[c].name;
    if (fitted.Moves(c)) {
      out << " " << plan.constants[c].start << " -> " << fitted.all().constants[c] << '\n';
    } else {
      out << " stays " << plan.constants[c].start << ": no figure depends on it\n";
    }
  }
  out << std::flush;  // a fit takes minutes: each shows when it is done
}

absl::Status CheckOutputs(const Flags& flags) {
  for (const std::string& file : {flags.out, flags.folds_out, flags.figures, flags.regret_out}) {
    if (const absl::Status status = CheckWritable(file); !status.ok()) return status;
  }
  return absl::OkStatus();
}

int FitAction(const Flags& flags, Session& session, std::ostream& out, std::ostream& err) {
  const absl::StatusOr<std::vector<FitPlan>> plans = ReadPlan(flags, session.predictor->catalog());
  if (!plans.ok()) return Report(plans.status(), err);
  Provenance provenance = flags.provenance;
  if (provenance.as_of.empty()) provenance.as_of = absl::FormatTime(kDate, absl::Now(), absl::UTCTimeZone());
  absl::Time day;
  if (std::string wrong; !absl::ParseTime(kDate, provenance.as_of, &day, &wrong)) {
    return Report(absl::InvalidArgumentError(absl::StrCat("--as-of ", provenance.as_of, ": ", wrong)), err);
  }
  std::vector<catalog::v1::CalibrationProfile> records;
  std::vector<ProfileFolds> folds;
  for (const FitPlan& plan : *plans) {
    const auto wanted = [&](const std::string& name) { return absl::c_linear_search(flags.profiles, name); };
    if (!flags.profiles.empty() && absl::c_none_of(plan.profiles, wanted)) continue;
    const FittedPlan fitted = FitProfiles(*session.predictor, plan, session.answered, flags.options);
    if (fitted.figures == 0) continue;
    for (size_t i = 0; i < plan.profiles.size(); ++i) {
      if (fitted.profiles[i].figures == 0) continue;
      records.push_back(FittedRecord(session.predictor->Profile(plan.profiles[i]), fitted, i, provenance));
    }
    const std::vector<ProfileFolds> own = FoldsOf(fitted);
    folds.insert(folds.end(), own.begin(), own.end());
    PrintFit(fitted, out);
  }
  if (records.empty()) {
    err << "sliceplan-calibrate: no scored row was predicted by a profile that is to be fitted\n";
    for (const AnsweredCase& one : session.answered) {
      if (one.asked->standing != Standing::kScored) err << "  " << one.asked->id << ": " << one.asked->remark << '\n';
    }
    return kNothingToDo;
  }
  for (const catalog::v1::CalibrationProfile& record : records) session.predictor->Try(record);
  const std::vector<AnsweredCase> after = AnswerAll(*session.predictor, session.cases.cases);
  out << "\nBefore the fit:\n" << ErrorTable(session.answered) << '\n';
  PrintTables(after, AnswerLeftOut(*session.predictor, after, folds), out);
  if (folds.empty()) out << "\nNothing is left out: all rows are of one group. With --leave-out row each run is one.\n";
  if (!flags.out.empty()) {
    if (const int failed = Report(WriteText(flags.out, ProfileText(records)), err)) return failed;
  }
  if (!flags.folds_out.empty()) return Report(WriteText(flags.folds_out, FoldsCsv(folds)), err);
  return kDone;
}

using Action = int (*)(const Flags&, Session&, std::ostream&, std::ostream&);

CLI::App* AddSubcommand(CLI::App& app, const std::string& name, const std::string& description, Flags& flags) {
  CLI::App* const command = app.add_subcommand(name, description);
  command->add_option("--training", flags.files.training, "table of training runs (repeatable)");
  command->add_option("--serving", flags.files.serving, "table of static batches and single pools (repeatable)");
  command->add_option("--end-to-end", flags.files.end_to_end, "table of points under a number of users (repeatable)");
  command->add_option("--catalog-dir,--catalog_dir", flags.catalog_dir,
                      "catalog files that replace or add to the built-in ones");
  return command;
}

void AddFolds(CLI::App* command, Flags& flags) {
  command->add_option("--folds", flags.folds, "constants without each group (fit --folds-out), for left-out errors");
}

}  // namespace

int RunCommand(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err) {
  Flags flags;
  CLI::App app(kDescription, "sliceplan-calibrate");
  app.footer(kFooter);
  app.require_subcommand(1);
  Action action = nullptr;

  CLI::App* const errors = AddSubcommand(app, "errors", "prints how far off predictions are, and what has none", flags);
  AddFolds(errors, flags);
  errors->add_option("--figures", flags.figures, "file for one line per predicted figure (CSV)");
  errors->callback([&] { action = Errors; });

  CLI::App* const fit = AddSubcommand(app, "fit", "fits profiles and writes them as a catalog file", flags);
  fit->add_option("--plan", flags.plan, "table of constants to fit (default: built in, fit_plan.csv)");
  fit->add_option("--profile", flags.profiles, "fit this profile only (repeatable)");
  fit->add_option("--leave-out", flags.leave_out, "what a fold leaves out (default: as the plan says)")
      ->check(CLI::IsMember({"row", "source", "model", "accelerator", "source+model"}));
  fit->add_option("--priors", flags.priors,
                  "what constants are held to: the catalog's values, or the plan's prior column where it has one")
      ->check(CLI::IsMember({"catalog", "plan"}))
      ->capture_default_str();
  fit->add_option("--out", flags.out, "file for the fitted profiles (textproto, for --catalog_dir)");
  fit->add_option("--folds-out", flags.folds_out, "file for the constants without each group (CSV)");
  fit->add_flag("--linear-folds", flags.options.linear_folds,
                "fit each fold to predictions that are linear about the fit of all: minutes in place of hours");
  fit->add_option("--max-iterations", flags.options.max_iterations, "steps of a fit at most")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  fit->add_option("--as-of", flags.provenance.as_of, "date of the measurements, YYYY-MM-DD (default: today)");
  fit->add_option("--profile-version", flags.provenance.version, "version to write (default: the next of the month)");
  fit->callback([&] { action = FitAction; });

  CLI::App* const accuracy = AddSubcommand(app, "accuracy", "writes the error table as CSV", flags);
  AddFolds(accuracy, flags);
  accuracy->add_option("--out", flags.out, "file (default: standard output)");
  accuracy->add_option("--regret-out", flags.regret_out, "file for what the plan ranked first costs, by job (CSV)");
  accuracy->callback([&] { action = Accuracy; });

  CLI::App* const plots = AddSubcommand(app, "plots", "draws predicted against measured, and residuals, as SVG", flags);
  AddFolds(plots, flags);
  plots->add_option("--out", flags.out, "directory, which must exist")->required();
  plots->callback([&] { action = Plots; });

  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    app.parse(std::move(reversed));
  } catch (const CLI::ParseError& error) {
    return app.exit(error, out, err) == 0 ? kDone : kUsageError;
  }
  // Before the predictions, which take a while. Pictures go to a directory.
  if (!plots->parsed()) {
    if (const int failed = Report(CheckOutputs(flags), err)) return failed;
  }
  Session session;
  if (const int failed = Report(session.Open(flags), err)) return failed;
  return action(flags, session, out, err);
}

}  // namespace sliceplan::calibrate
