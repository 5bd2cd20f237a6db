#include "client/calibrate/regret.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/calibrate/csv_text.h"

namespace sliceplan::calibrate {
namespace {

// What a plan is chosen by: the less the better.
struct Cost {
  double measured = 0;
  double predicted = 0;
};

std::optional<Cost> CostOf(const Answer& answer) {
  for (const Prediction& said : answer.predictions) {
    if (said.metric == Metric::kStepSeconds || said.metric == Metric::kBatchLatencySeconds)
      return Cost{said.measured, said.expected};
    if (said.metric == Metric::kOutputTokensPerSecond) return Cost{1 / said.measured, 1 / said.expected};
  }
  return std::nullopt;
}

// One plan, of the runs that ask the same.
struct Plan {
  std::string id;  // of its first run
  double measured = 0;
  double predicted = 0;
  int runs = 0;
};

struct Job {
  std::string source;
  std::set<std::string> groups;
  std::map<std::string, Plan> plans;           // by question
  std::map<std::string, Plan> plans_left_out;  // those of them with left-out predictions
};

std::string QuestionOf(const Case& asked) {
  return std::visit([](const auto& request) { return request.SerializeAsString(); }, asked.question);
}

void Add(const Case& asked, const Cost& cost, std::map<std::string, Plan>& plans) {
  Plan& plan = plans[QuestionOf(asked)];
  if (plan.id.empty()) plan.id = asked.id;
  plan.predicted = cost.predicted;
  plan.measured += cost.measured;
  ++plan.runs;
}

struct Regret {
  std::string first;  // by prediction
  std::string best;   // by measurement
  double regret = 0;
};

// Of at least two plans. Plans that the service cannot tell apart are chosen blindly: their mean counts.
std::optional<Regret> RegretOf(const std::map<std::string, Plan>& plans) {
  constexpr double kSame = 1e-9;
  if (plans.size() < 2) return std::nullopt;
  const Plan* first = nullptr;
  const Plan* best = nullptr;
  const auto measured = [](const Plan& plan) { return plan.measured / plan.runs; };
  for (const auto& [question, plan] : plans) {
    if (first == nullptr || plan.predicted < first->predicted) first = &plan;
    if (best == nullptr || measured(plan) < measured(*best)) best = &plan;
  }
  double sum = 0;
  int ties = 0;
  for (const auto& [question, plan] : plans) {
    if (plan.predicted > first->predicted * (1 + kSame)) continue;
    sum += measured(plan);
    ++ties;
  }
  return Regret{first->id, best->id, sum / ties / measured(*best) - 1};
}

// Of a line: mean and worst.
struct Mean {
  int jobs = 0;
  double sum = 0;
  double worst = 0;

  void Add(const std::optional<Regret>& regret) {
    if (!regret) return;
    ++jobs;
    sum += regret->regret;
    worst = std::max(worst, regret->regret);
  }
  std::string Fields() const {
    return jobs == 0 ? ",," : absl::StrFormat("%d,%.2f,%.2f", jobs, 100 * sum / jobs, 100 * worst);
  }
};

}  // namespace

std::string RegretCsv(const std::vector<AnsweredCase>& answered, const std::vector<AnsweredCase>& left_out) {
  std::map<std::string, Job> jobs;
  for (size_t i = 0; i < answered.size(); ++i) {
    const Case& asked = *answered[i].asked;
    const std::optional<Cost> cost = CostOf(answered[i].answer);
    if (asked.job.empty() || asked.standing != Standing::kScored || !cost) continue;
    Job& job = jobs[asked.job];
    job.source = asked.source;
    job.groups.insert(asked.groups.begin(), asked.groups.end());
    Add(asked, *cost, job.plans);
    const std::optional<Cost> without = i < left_out.size() ? CostOf(left_out[i].answer) : std::nullopt;
    if (without) Add(asked, *without, job.plans_left_out);
  }
  std::map<std::pair<std::string, std::string>, std::pair<Mean, Mean>> means;  // by kind and name
  std::string lines;
  for (const auto& [key, job] : jobs) {
    const std::optional<Regret> regret = RegretOf(job.plans);
    if (!regret) continue;
    const std::optional<Regret> without = RegretOf(job.plans_left_out);
    const auto add = [&](const std::string& kind, const std::string& name) {
      means[{kind, name}].first.Add(regret);
      means[{kind, name}].second.Add(without);
    };
    add("group", "all");
    add("source", job.source);
    for (const std::string& group : job.groups) add("group", group);
    absl::StrAppendFormat(&lines, "job,%s,%d,%s,%s,1,%.2f,%.2f,", CsvField(job.source), job.plans.size(), regret->first,
                          regret->best, 100 * regret->regret, 100 * regret->regret);
    lines += without ? absl::StrFormat("1,%.2f,%.2f\n", 100 * without->regret, 100 * without->regret) : ",,\n";
  }
  std::string csv =
      "kind,name,plans,first,best,jobs,regret_percent,worst_percent,left_out_jobs,left_out_regret_percent,"
      "left_out_worst_percent\n";
  for (const auto& [line, mean] : means) {
    absl::StrAppend(&csv, line.first, ",", CsvField(line.second), ",,,,", mean.first.Fields(), ",",
                    mean.second.Fields(), "\n");
  }
  return absl::StrCat(csv, lines);
}

}  // namespace sliceplan::calibrate
