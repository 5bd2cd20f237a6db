// The table of serving.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/choices.h"
#include "client/cli/estimate_text.h"
#include "client/cli/serve.h"
#include "client/cli/shard_report.h"
#include "client/cli/text.h"

namespace sliceplan::cli {
namespace {

constexpr size_t kPlanColumns = 11;

// Of a cost the search takes the bill at a rate, which is given, and else the price of a token.
std::string ObjectiveText(const v1::ProposeShardingRequest& request, const v1::ProposeShardingResponse& response) {
  v1::Objective objective = request.objective();
  for (const v1::Assumption& line : response.assumptions()) {
    if (line.field() == "objective") v1::Objective_Parse(line.value(), &objective);
  }
  switch (objective) {
    case v1::OBJECTIVE_MIN_COST:
      return request.serving().has_requests_per_second() ? "cheapest per hour first" : "cheapest per token first";
    case v1::OBJECTIVE_MAX_THROUGHPUT_PER_CHIP: return "most tokens per chip first";
    case v1::OBJECTIVE_MIN_CHIPS: return "fewest chips first";
    default: return "shortest time per token first";
  }
}

std::string PercentileText(bool known, const v1::LatencyEstimate& latency) {
  return known ? Seconds(latency.p95_seconds()) : "";
}

std::string DollarsText(bool known, double usd) { return known ? Dollars(usd) : ""; }

// "6", or "11 prefill" where roles differ.
std::string ReplicasText(const v1::ProposedPool& pool) {
  const bool apart = pool.role() == v1::POOL_ROLE_PREFILL || pool.role() == v1::POOL_ROLE_DECODE;
  return absl::StrCat(Grouped(pool.replica_count()), apart ? absl::StrCat(" ", ChoiceName(pool.role())) : "");
}

// "dp=8,tp=32," and "cp=32": a long plan takes several rows, so that no slice is cut.
std::vector<std::string> PlanLines(const v1::Parallelism& plan) {
  std::vector<std::string> lines;
  for (const absl::string_view degree : absl::StrSplit(PlanFlag(plan), ',')) {
    if (lines.empty() || lines.back().size() + 1 + degree.size() > kPlanColumns) {
      if (!lines.empty()) lines.back() += ',';
      lines.emplace_back(degree);
    } else {
      absl::StrAppend(&lines.back(), ",", degree);
    }
  }
  return lines;
}

// What the pools of a proposal do together.
std::vector<std::string> JointCells(const v1::ServingEstimate& estimate) {
  const v1::ServingCost& cost = estimate.cost();
  return {Grouped(estimate.chip_count()),
          PercentileText(estimate.has_ttft(), estimate.ttft()),
          PercentileText(estimate.has_tpot(), estimate.tpot()),
          Short(estimate.throughput().output_tokens_per_second_per_chip()),
          DollarsText(cost.has_usd_per_million_output_tokens(), cost.usd_per_million_output_tokens()),
          DollarsText(cost.has_usd_per_hour(), cost.usd_per_hour())};
}

// A row for each pool; what the pools do together stands in the first.
void PrintTable(const v1::ProposeShardingResponse& response, Report& report) {
  const bool in_pools = InPools(response);
  std::vector<Column> columns = {{"", true}};
  if (in_pools) columns.push_back({"pool", false});
  columns.insert(columns.end(), {{"slice", false},
                                 {"plan", false},
                                 {"replicas", true},
                                 {"chips", true},
                                 {"TTFT\np95", true},
                                 {"TPOT\np95", true},
                                 {"tok/s\n/chip", true},
                                 {"$ per\nM out", true},
                                 {"$ per\nhour", true}});
  std::vector<std::vector<std::string>> rows;
  int rank = 0;
  for (const v1::Proposal& proposal : response.proposals()) {
    std::string rank_text = absl::StrCat(++rank);
    std::vector<std::string> together = JointCells(proposal.serving());
    for (const v1::ProposedPool& pool : proposal.pools()) {
      const std::vector<std::string> plan = PlanLines(pool.parallelism());
      std::vector<std::string>& row = rows.emplace_back();
      row.push_back(std::exchange(rank_text, ""));
      if (in_pools) row.push_back(PoolText(pool));
      row.insert(row.end(), {SliceName(pool.slice()), plan.front(), ReplicasText(pool)});
      row.insert(row.end(), together.begin(), together.end());
      together.clear();
      for (size_t i = 1; i < plan.size(); ++i) {
        rows.emplace_back(in_pools ? 3 : 2).push_back(plan[i]);
      }
    }
  }
  report.Table(columns, rows);
}

void PrintFrontier(const v1::ProposeShardingResponse& response, Report& report) {
  // One plan is no choice.
  if (response.frontier_size() < 2) return;
  const bool priced = std::all_of(response.frontier().begin(), response.frontier().end(),
                                  [](const v1::PlanSummary& plan) { return plan.has_usd_per_million_tokens(); });
  report.Section(priced ? "Faster or cheaper: no other plan is both" : "Faster or denser: no other plan is both");
  std::vector<std::vector<std::string>> rows;
  const int shown = std::min(response.frontier_size(), kFrontierRows);
  for (int i = 0; i < shown; ++i) {
    const v1::PlanSummary& plan = response.frontier(i);
    rows.push_back({SliceName(plan.slice()), PlanFlag(plan.parallelism()), Grouped(plan.replica_count()),
                    Grouped(plan.chip_count()), Seconds(plan.expected_seconds()),
                    Short(plan.tokens_per_second_per_chip()),
                    DollarsText(plan.has_usd_per_million_tokens(), plan.usd_per_million_tokens())});
  }
  report.Table({{"slice", false},
                {"plan", false},
                {"replicas", true},
                {"chips", true},
                {"TPOT\nmean", true},
                {"tok/s\n/chip", true},
                {"bill per\nM out", true}},
               rows);
  PrintHiddenRows(response.frontier_size() - shown, report);
  report.Sentence(
      "Judged in the mean, prefill and decode on the same replicas; the bill per million is all of it, input included.",
      Tone::kFaint);
}

}  // namespace

void PrintServingProposals(const v1::ProposeShardingRequest& request, const v1::ProposeShardingResponse& response,
                           const std::string& model, const Flags& flags, Report& report) {
  const v1::SearchReport& search = response.search();
  const std::string slices = Plural(search.candidate_slice_count(), "slice");
  if (response.proposals().empty()) {
    PrintNoPlan(response, absl::StrCat("serving ", model), report);
  } else {
    report.Headline("", Tone::kPlain,
                    absl::StrCat("Serving ", model, ": the best of ", slices, ", ", ObjectiveText(request, response)));
    PrintTable(response, report);
    report.Section("The first");
    PrintServingSummary(response.proposals(0).serving(), report);
    PrintWhereAndFor(response.proposals(0), report);
  }
  PrintReasons(response, report);
  PrintFrontier(response, report);
  PrintNearMisses(response, "a token every", flags, report);
  PrintSearch(response, {"estimated in full", "worse in the mean", "every plan looked at"}, flags, report);
}

}  // namespace sliceplan::cli
