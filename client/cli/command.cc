#include "client/cli/command.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "client/cli/backend.h"
#include "client/cli/call.h"
#include "client/cli/errors.h"
#include "client/cli/flags.h"
#include "client/cli/model_flag.h"
#include "client/cli/progress.h"
#include "client/cli/quantity.h"
#include "client/cli/replay.h"
#include "client/cli/subcommands.h"
#include "client/cli/text.h"
#include "proto/sliceplan/v1/catalog.pb.h"
#include "server/rpc/json.h"
#include "server/rpc/version.h"

namespace sliceplan::cli {
namespace {

constexpr size_t kHelpColumn = 34;
constexpr char kProgram[] = "sliceplan";

constexpr char kDescription[] =
    "How long a transformer takes to train and how fast it serves on a TPU or GPU slice, what that costs,\n"
    "whether it fits, and what holds it back. Answers come from this program itself, or from a server with\n"
    "--server.";

constexpr char kFooter[] =
    R"(Numbers: 4096, 4Ki (x 1024), 15T (x 10^12), 1.5e13. Times: 30d, 12h, 90s, 250ms.
Names: any case, - or _. A subcommand's --help has examples; so has `help SUBCOMMAND`.
Exit status: 0 answered, also when the job does not fit; 1 the arguments cannot be read; 2 the
service refused the request or could not be reached; 3 `replay` found another reply.)";

constexpr char kCallExamples[] =
    R"(Reads proto3 JSON with names in either spelling and writes it in lowerCamel. On an error the exit
status is 2 and standard error has google.rpc.Status in JSON, with every violation.
Examples:
  sliceplan call CatalogService/ListModels
  sliceplan call AnalysisService/DescribeModel --request=request.json
  jq -n --rawfile c config.json '{model: {huggingFaceConfig: $c}}' \
    | sliceplan call AnalysisService/DescribeModel --request=- --server localhost:8080)";

constexpr char kReplayExamples[] =
    R"(Reads a file that sliceplan-server wrote with --request_log, asks everything again and compares digests
of the replies. Calls that need not end in the same way (the server was full, time ran out) are skipped.
Examples:
  sliceplan replay requests.jsonl                            # against this program's engine
  cat requests.jsonl* | sliceplan replay - --server localhost:8080 --token-file token)";

class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(kHelpColumn); }
  std::string make_option_desc(const CLI::Option* option) const override {
    return absl::StrJoin(Wrap(option->get_description(), kMaxColumns - kHelpColumn), "\n");
  }
  // One empty line between groups, not two.
  std::string make_group(std::string group, bool positional, std::vector<const CLI::Option*> options) const override {
    const std::string text = CLI::Formatter::make_group(group, positional, options);
    return group == "Options" || positional ? text : std::string(absl::StripPrefix(text, "\n"));
  }
};

// Options of every subcommand that asks something.
struct CommonOptions {
  BackendOptions backend;
  std::string format = "table";
  std::string timeout;
};

void AddBackendOptions(CLI::App* app, CommonOptions* common) {
  const std::string group = "Who answers";
  app->add_option("--server", common->backend.server, "a server, instead of this program itself")
      ->type_name("HOST:PORT")
      ->group(group);
  app->add_flag("--tls", common->backend.tls, "the server speaks TLS; default: plaintext")->group(group);
  app->add_option("--ca-file", common->backend.ca_file, "TLS, with certificates signed by these authorities (PEM)")
      ->type_name("FILE")
      ->group(group);
  app->add_option("--cert-file", common->backend.cert_file, "TLS, with this certificate of one's own (PEM)")
      ->type_name("FILE")
      ->group(group);
  app->add_option("--key-file", common->backend.key_file, "the key of --cert-file (PEM)")
      ->type_name("FILE")
      ->group(group);
  app->add_option("--token-file", common->backend.token_file,
                  "file with a bearer token; it goes over plaintext on this machine only")
      ->type_name("FILE")
      ->group(group);
  app->add_option("--timeout", common->timeout, "most time for the answer: 30s")->type_name("TIME")->group(group);
  app->add_option("--catalog-dir", common->backend.catalog_dir,
                  "files that replace or add to the built-in catalog, without --server")
      ->type_name("DIR")
      ->group(group);
}

// One question with its flags in place, before and after parsing.
struct Prepared {
  std::string program;  // "sliceplan op matmul"
  CLI::App* app = nullptr;
  std::unique_ptr<Question> question;
  std::unique_ptr<Flags> flags;
  CommonOptions common;
};

class Command {
 public:
  explicit Command(const Surroundings& surroundings)
      : in_(*surroundings.in),
        out_(*surroundings.out),
        err_(*surroundings.err),
        style_(surroundings.style),
        shows_progress_(surroundings.shows_progress),
        root_(kDescription, kProgram) {
    root_.formatter(std::make_shared<HelpFormatter>());
    root_.footer(kFooter);
    root_.set_help_flag("-h,--help", "print this help and end");
    root_.set_version_flag("--version", rpc::EngineVersion(), "print the version and end");
    AddQuestions();
    AddCall();
    AddReplay();
    AddVersion();
  }

  int Run(std::vector<std::string> arguments) {
    if (arguments.empty()) {
      out_ << root_.help();
      return kUsageError;
    }
    if (arguments.front() == "help" && !AskForHelp(arguments)) return kUsageError;
    // CLI11 wants the last argument first.
    std::reverse(arguments.begin(), arguments.end());
    try {
      root_.parse(std::move(arguments));
    } catch (const CLI::Success& wish) {
      return root_.exit(wish, out_, err_);
    } catch (const CLI::ParseError& error) {
      return Misused(error);
    }
    if (call_->parsed()) return RunCall();
    if (replay_->parsed()) return RunReplay();
    if (version_->parsed()) return RunVersion();
    for (const auto& prepared : questions_) {
      if (prepared->app->parsed()) return Ask(*prepared);
    }
    return kUsageError;
  }

 private:
  void AddQuestions() {
    std::map<std::string, CLI::App*> groups;
    for (Subcommand& subcommand : AllSubcommands()) {
      auto prepared = std::make_unique<Prepared>();
      CLI::App* parent = &root_;
      prepared->program = kProgram;
      if (!subcommand.group.empty()) {
        CLI::App*& group = groups[subcommand.group];
        if (group == nullptr) {
          group = root_.add_subcommand(subcommand.group, GroupDescription(subcommand.group));
          group->require_subcommand(1);
        }
        parent = group;
        absl::StrAppend(&prepared->program, " ", subcommand.group);
      }
      absl::StrAppend(&prepared->program, " ", subcommand.name);
      prepared->app = parent->add_subcommand(subcommand.name, subcommand.description);
      prepared->app->footer(subcommand.examples);
      prepared->question = subcommand.make();
      prepared->flags = std::make_unique<Flags>(prepared->app, prepared->question->request(), &in_);
      prepared->question->AddFlags(*prepared->flags);
      prepared->app->allow_extras(prepared->question->TakesAnyArguments());
      AddBackendOptions(prepared->app, &prepared->common);
      AddFormat(*prepared);
      questions_.push_back(std::move(prepared));
    }
  }

  static void AddFormat(Prepared& prepared) {
    std::vector<std::string> formats = {"table", "json"};
    std::string help = "table (default) or json: the reply as it is";
    if (const std::string csv = prepared.question->CsvHelp(); !csv.empty()) {
      formats.emplace_back("csv");
      help = absl::StrCat("table (default), json: the reply as it is, or csv: ", csv);
    }
    prepared.app->add_option("--format", prepared.common.format, help)
        ->type_name("NAME")
        ->check(CLI::IsMember(formats).description(""))
        ->group("Output");
  }

  void AddCall() {
    call_ = root_.add_subcommand("call", "Any RPC, in proto3 JSON");
    call_->footer(kCallExamples);
    call_->add_option("method", call_method_, "SERVICE/METHOD: PlannerService/EstimateTraining; the package may lead")
        ->type_name("")
        ->required();
    call_->add_option("--request", call_request_, "file with the request, - for standard input; default: an empty one")
        ->type_name("FILE");
    AddBackendOptions(call_, &call_options_);
  }

  void AddReplay() {
    replay_ = root_.add_subcommand("replay", "Calls of a server's request log again; are the replies the same?");
    replay_->footer(kReplayExamples);
    replay_->add_option("file", replay_file_, "the log, - for standard input")->type_name("FILE")->required();
    AddBackendOptions(replay_, &replay_options_);
  }

  void AddVersion() {
    version_ = root_.add_subcommand("version", "Versions of this program, and of the engine and catalog that answer");
    AddBackendOptions(version_, &version_options_);
  }

  // "help op matmul" as "op matmul --help". False after saying that there is no such subcommand.
  bool AskForHelp(std::vector<std::string>& arguments) {
    arguments.erase(arguments.begin());
    CLI::App* app = &root_;
    std::string program = kProgram;
    for (const std::string& name : arguments) {
      CLI::App* next = nullptr;
      for (CLI::App* const sub : app->get_subcommands([](CLI::App*) { return true; })) {
        if (sub->get_name() == name) next = sub;
      }
      if (next == nullptr) {
        Misused(program, {NotUnderstood(name, *app)});
        return false;
      }
      app = next;
      absl::StrAppend(&program, " ", name);
    }
    arguments.push_back("--help");
    return true;
  }

  static std::string NotUnderstood(const std::string& extra, const CLI::App& app) {
    std::vector<std::string> known;
    if (absl::StartsWith(extra, "-")) {
      for (const CLI::Option* option : app.get_options()) known.push_back(option->get_name());
    } else {
      for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
        known.push_back(sub->get_name());
      }
    }
    const std::vector<std::string> near = NearNames(extra.substr(0, extra.find('=')), known);
    const std::string hint = near.empty() ? "" : absl::StrCat("; did you mean ", absl::StrJoin(near, " or "), "?");
    return absl::StrCat("'", extra, "' is not understood", hint);
  }

  // Says what cannot be read, with near names, and where help is.
  int Misused(const CLI::ParseError& error) {
    const CLI::App* app = &root_;
    std::string program = kProgram;
    while (!app->get_subcommands().empty()) {
      app = app->get_subcommands().front();
      absl::StrAppend(&program, " ", app->get_name());
    }
    // CLI11 lists what is left over last one first.
    std::vector<std::string> extras = root_.remaining(/*recurse=*/true);
    std::reverse(extras.begin(), extras.end());
    if (extras.empty()) return Misused(program, {error.what()});
    std::vector<std::string> problems;
    for (const std::string& extra : extras) problems.push_back(NotUnderstood(extra, *app));
    return Misused(program, problems);
  }

  int Misused(const std::string& program, const std::vector<std::string>& problems) {
    for (const std::string& problem : problems) err_ << program << ": " << problem << '\n';
    err_ << "Try: " << program << " --help\n";
    return kUsageError;
  }

  // nullptr after saying why.
  std::unique_ptr<Backend> Connect(const std::string& program, CommonOptions& options) {
    if (!options.timeout.empty()) {
      const absl::StatusOr<double> seconds = ParseSeconds(options.timeout);
      if (!seconds.ok() || *seconds <= 0) {
        Misused(program, {absl::StrCat("--timeout: '", options.timeout, "' is no time above 0; write 30s")});
        return nullptr;
      }
      options.backend.timeout = absl::Seconds(*seconds);
    }
    absl::StatusOr<std::unique_ptr<Backend>> backend = MakeBackend(options.backend);
    if (!backend.ok()) {
      Misused(program, {std::string(backend.status().message())});
      return nullptr;
    }
    return *std::move(backend);
  }

  int Ask(Prepared& prepared) {
    if (const std::vector<std::string> problems = prepared.flags->Problems(); !problems.empty()) {
      return Misused(prepared.program, problems);
    }
    const std::unique_ptr<Backend> backend = Connect(prepared.program, prepared.common);
    if (backend == nullptr) return kUsageError;
    Question& question = *prepared.question;
    const bool json = prepared.common.format == "json";
    google::rpc::Status status = question.Complete(*backend);
    if (status.code() == 0) {
      const Progress progress(shows_progress_ && question.MayTakeLong() ? &err_ : nullptr);
      status = backend->Call(question.method(), *question.request(), question.response());
    }
    if (status.code() == 0 && !json) status = question.Missing();
    if (status.code() != 0) {
      if (json) {
        PrintErrorAsJson(status, err_);
      } else {
        PrintErrorAsText(status, prepared.program, *prepared.flags, err_);
      }
      return kServiceError;
    }
    if (json) {
      out_ << rpc::PrintPrettyJson(*question.response());
    } else if (prepared.common.format == "csv") {
      out_ << question.Csv();
    } else if (const std::string text = question.Verbatim(); !text.empty()) {
      out_ << text;
    } else {
      Report report(&out_, style_);
      question.Print(*prepared.flags, report);
    }
    return kAnswered;
  }

  int RunCall() {
    const std::string program = absl::StrCat(kProgram, " call");
    absl::StatusOr<NamedMethod> method = FindMethod(call_method_);
    if (!method.ok()) return Misused(program, {std::string(method.status().message())});
    std::string json = "{}";
    if (!call_request_.empty()) {
      const absl::Status read = ReadText(call_request_, in_, rpc::kMaxJsonBytes, &json);
      if (!read.ok()) return Misused(program, {absl::StrCat("--request: ", read.message())});
    }
    const std::unique_ptr<Backend> backend = Connect(program, call_options_);
    if (backend == nullptr) return kUsageError;
    const google::rpc::Status status = CallWithJson(json, *backend, *method);
    if (status.code() != 0) {
      PrintErrorAsJson(status, err_);
      return kServiceError;
    }
    out_ << rpc::PrintPrettyJson(*method->response);
    return kAnswered;
  }

  int RunReplay() {
    const std::string program = absl::StrCat(kProgram, " replay");
    std::ifstream file;
    if (replay_file_ != "-") {
      file.open(replay_file_, std::ios::binary);
      if (!file) return Misused(program, {absl::StrCat("cannot read ", replay_file_)});
    }
    const std::unique_ptr<Backend> backend = Connect(program, replay_options_);
    if (backend == nullptr) return kUsageError;
    const ReplayResult result = Replay(replay_file_ == "-" ? in_ : file, *backend);
    if (result.methods.empty()) return Misused(program, {absl::StrCat(replay_file_, " has no line of a request log")});
    Report report(&out_, style_);
    PrintReplay(result, report);
    return result.Total().different == 0 ? kAnswered : kDifferent;
  }

  int RunVersion() {
    const std::string program = absl::StrCat(kProgram, " version");
    out_ << "command " << rpc::EngineVersion() << '\n';
    const std::unique_ptr<Backend> backend = Connect(program, version_options_);
    if (backend == nullptr) return kUsageError;
    v1::ListAcceleratorsRequest request;
    request.set_page_size(1);
    v1::ListAcceleratorsResponse response;
    const google::rpc::Status status =
        backend->Call("sliceplan.v1.CatalogService/ListAccelerators", request, &response);
    if (status.code() != 0) {
      PrintErrorAsText(status, program, Flags(version_, &request, &in_), err_);
      return kServiceError;
    }
    out_ << "engine " << response.engine_version() << "\ncatalog " << response.catalog_version() << '\n';
    return kAnswered;
  }

  std::istream& in_;
  std::ostream& out_;
  std::ostream& err_;
  const Style style_;
  const bool shows_progress_;
  CLI::App root_;
  std::vector<std::unique_ptr<Prepared>> questions_;
  CLI::App* call_ = nullptr;
  std::string call_method_;
  std::string call_request_;
  CommonOptions call_options_;
  CLI::App* replay_ = nullptr;
  std::string replay_file_;
  CommonOptions replay_options_;
  CLI::App* version_ = nullptr;
  CommonOptions version_options_;
};

}  // namespace

int RunCommand(const std::vector<std::string>& arguments, const Surroundings& surroundings) {
  return Command(surroundings).Run(arguments);
}

}  // namespace sliceplan::cli
