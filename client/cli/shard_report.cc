// The table of training, and what both tables share.
#include "client/cli/shard_report.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/cli/choices.h"
#include "client/cli/estimate_text.h"
#include "client/cli/text.h"
#include "client/cli/train.h"

namespace sliceplan::cli {
namespace {

constexpr double kSecondsPerDay = 86400;

std::string ObjectiveText(v1::Objective objective) {
  switch (objective) {
    case v1::OBJECTIVE_MIN_COST: return "cheapest first";
    case v1::OBJECTIVE_MAX_THROUGHPUT_PER_CHIP: return "most tokens per chip first";
    case v1::OBJECTIVE_MIN_CHIPS: return "fewest chips first";
    case v1::OBJECTIVE_MIN_TIME_TO_TRAIN: return "earliest end first";
    default: return "shortest step first";
  }
}

std::string DaysText(double seconds) {
  return seconds < kSecondsPerDay ? Seconds(seconds) : absl::StrCat(Significant(seconds / kSecondsPerDay), " days");
}

// Columns that nobody fills are left out: of offload, and those of a job of unknown length or without prices.
struct LastCells {
  std::string on_host;
  std::string days;
  std::string dollars;
  std::string dollars_per_million;
};

class ProposalTable {
 public:
  void Add(std::vector<std::string> cells, LastCells last) {
    rows_.push_back(std::move(cells));
    last_.push_back(std::move(last));
  }
  void Print(std::vector<Column> columns, Report& report) {
    AddColumn(columns, {"on host", false}, &LastCells::on_host);
    AddColumn(columns, {"training", true}, &LastCells::days);
    AddColumn(columns, {"cost", true}, &LastCells::dollars);
    const bool has_total = columns.back().heading == "cost";
    if (!has_total) AddColumn(columns, {"per M tokens", true}, &LastCells::dollars_per_million);
    report.Table(columns, rows_);
  }

 private:
  void AddColumn(std::vector<Column>& columns, Column column, std::string LastCells::*text) {
    if (std::all_of(last_.begin(), last_.end(), [&](const LastCells& last) { return (last.*text).empty(); })) return;
    columns.push_back(std::move(column));
    for (size_t i = 0; i < rows_.size(); ++i) rows_[i].push_back(last_[i].*text);
  }

  std::vector<std::vector<std::string>> rows_;
  std::vector<LastCells> last_;
};

// What a plan keeps in host memory; empty: nothing.
std::string HostText(bool optimizer, bool activations) {
  if (optimizer && activations) return "optimizer, activations";
  return optimizer ? "optimizer" : activations ? "activations" : "";
}

std::string HostText(const v1::TrainingEstimate& estimate) {
  return HostText(estimate.workload().optimizer_offload(), estimate.workload().activation_offload());
}

std::string HostText(const v1::PlanSummary& plan) {
  return HostText(plan.optimizer_offload(), plan.activation_offload());
}

LastCells LastColumns(const v1::TrainingEstimate& estimate) {
  LastCells last;
  last.on_host = HostText(estimate);
  if (estimate.has_time_to_train_seconds()) {
    last.days = DaysText(estimate.has_wall_seconds() ? estimate.wall_seconds() : estimate.time_to_train_seconds());
  }
  if (estimate.cost().has_total_usd()) last.dollars = Dollars(estimate.cost().total_usd());
  if (estimate.cost().has_usd_per_million_tokens()) {
    last.dollars_per_million = Dollars(estimate.cost().usd_per_million_tokens());
  }
  return last;
}

LastCells LastColumns(const v1::PlanSummary& plan) {
  LastCells last;
  last.on_host = HostText(plan);
  if (plan.has_time_to_train_seconds()) last.days = DaysText(plan.time_to_train_seconds());
  if (plan.has_total_usd()) last.dollars = Dollars(plan.total_usd());
  if (plan.has_usd_per_million_tokens()) last.dollars_per_million = Dollars(plan.usd_per_million_tokens());
  return last;
}

// "50%": columns are scarce.
std::string WholePercent(double ratio) { return absl::StrCat(std::lround(100 * ratio), "%"); }

void PrintTable(const v1::ProposeShardingResponse& response, Report& report) {
  ProposalTable table;
  const bool in_pools = InPools(response);
  int rank = 0;
  for (const v1::Proposal& proposal : response.proposals()) {
    const v1::TrainingEstimate& estimate = proposal.training();
    const auto capacity = static_cast<double>(estimate.memory().capacity_bytes());
    const auto used = static_cast<double>(estimate.memory().used_bytes());
    std::vector<std::string> cells = {absl::StrCat(++rank)};
    if (in_pools) cells.push_back(proposal.pools().empty() ? "" : PoolText(proposal.pools(0)));
    cells.insert(cells.end(), {SliceName(estimate.slice()), Grouped(estimate.chip_count()),
                               PlanFlag(estimate.parallelism()), Seconds(estimate.step_time().expected_seconds()),
                               WholePercent(estimate.mfu_ratio()), capacity > 0 ? WholePercent(used / capacity) : ""});
    table.Add(std::move(cells), LastColumns(estimate));
  }
  std::vector<Column> columns = {{"", true}};
  if (in_pools) columns.push_back({"pool", false});
  columns.insert(columns.end(),
                 {{"slice", false}, {"chips", true}, {"plan", false}, {"step", true}, {"MFU", true}, {"memory", true}});
  table.Print(std::move(columns), report);
}

void PrintFirst(const v1::ProposeShardingResponse& response, Report& report) {
  const v1::Proposal& first = response.proposals(0);
  const v1::TrainingEstimate& estimate = first.training();
  report.Section("The first");
  report.Row("plan", PlanText(estimate));
  if (estimate.has_bottleneck()) report.Row("held back by", estimate.bottleneck().sentence());
  if (estimate.cost().price().has_row()) report.Row("price", PriceText(estimate.cost().price().row()));
  PrintWhereAndFor(first, report);
}

void PrintFrontier(const v1::ProposeShardingResponse& response, Report& report) {
  // One plan is no choice.
  if (response.frontier_size() < 2) return;
  report.Section("Faster or cheaper: no other plan is both");
  ProposalTable table;
  const int shown = std::min(response.frontier_size(), kFrontierRows);
  for (int i = 0; i < shown; ++i) {
    const v1::PlanSummary& plan = response.frontier(i);
    table.Add({SliceName(plan.slice()), Grouped(plan.chip_count()), PlanFlag(plan.parallelism()),
               Seconds(plan.expected_seconds())},
              LastColumns(plan));
  }
  table.Print({{"slice", false}, {"chips", true}, {"plan", false}, {"step", true}}, report);
  PrintHiddenRows(response.frontier_size() - shown, report);
}

// "1,541 plans of 12 slices: 93 evaluated, 1,448 left out (out of memory 120, network floor 1,328), 8 ms, proven best".
std::string SearchText(const v1::SearchReport& search, const SearchWords& words) {
  int64_t pruned_count = 0;
  std::vector<std::string> reasons;
  for (const v1::PrunedCount& pruned : search.pruned()) {
    pruned_count += pruned.count();
    const std::string reason = pruned.reason() == "COMPUTE_FLOOR"
                                   ? words.compute_floor
                                   : absl::AsciiStrToLower(absl::StrReplaceAll(pruned.reason(), {{"_", " "}}));
    reasons.push_back(absl::StrCat(reason, " ", Grouped(pruned.count())));
  }
  std::string text =
      absl::StrCat(Plural(search.considered_count(), "plan"), " of ", Plural(search.candidate_slice_count(), "slice"),
                   ": ", Grouped(search.evaluated_count()), " ", words.evaluated);
  if (pruned_count > 0) {
    absl::StrAppend(&text, ", ", Grouped(pruned_count), " left out (", absl::StrJoin(reasons, ", "), ")");
  }
  absl::StrAppend(&text, ", ", Seconds(search.elapsed_seconds()));
  if (search.exhaustive()) {
    absl::StrAppend(&text, ", ", words.exhaustive);
  } else if (search.has_optimality_gap_ratio()) {
    absl::StrAppend(&text, ", not all looked at: another plan could be up to ", Percent(search.optimality_gap_ratio()),
                    " better");
  } else {
    absl::StrAppend(&text, ", not all looked at");
  }
  return text;
}

}  // namespace

std::string SliceName(const v1::SliceUsed& slice) {
  std::string text = slice.slice_count() > 1 ? absl::StrCat(Grouped(slice.slice_count()), " x ") : "";
  absl::StrAppend(&text, slice.slice().accelerator(), " ", slice.slice().topology());
  if (slice.twisted()) absl::StrAppend(&text, " twisted");
  return text;
}

std::string PoolText(const v1::ProposedPool& pool) {
  return pool.capacity_pool().empty() ? pool.zone() : pool.capacity_pool();
}

bool InPools(const v1::ProposeShardingResponse& response) {
  return std::any_of(response.proposals().begin(), response.proposals().end(), [](const v1::Proposal& proposal) {
    return !proposal.pools().empty() && !PoolText(proposal.pools(0)).empty();
  });
}

void PrintReasons(const v1::ProposeShardingResponse& response, Report& report) {
  const bool any = std::any_of(response.proposals().begin(), response.proposals().end(),
                               [](const v1::Proposal& proposal) { return !proposal.beats_next_because().empty(); });
  if (!any) return;
  report.Section("Why in this order");
  int rank = 0;
  for (const v1::Proposal& proposal : response.proposals()) {
    ++rank;
    if (proposal.beats_next_because().empty()) continue;
    report.Item(absl::StrCat(rank, " before ", rank + 1, ": ", proposal.beats_next_because()));
  }
}

void PrintWhereAndFor(const v1::Proposal& proposal, Report& report) {
  if (!proposal.pools().empty() && !proposal.pools(0).zone().empty()) report.Row("zone", proposal.pools(0).zone());
  std::vector<std::string> targets;
  for (const v1::Rendering& rendering : proposal.renderings()) targets.push_back(ChoiceName(rendering.target()));
  if (targets.empty()) return;
  report.Row("written for", absl::StrCat(absl::StrJoin(targets, ", "), ": --emit NAME prints one"));
}

void PrintHiddenRows(int hidden, Report& report) {
  if (hidden > 0) report.Sentence(absl::StrCat("and ", Grouped(hidden), " more"), Tone::kFaint);
}

void PrintNearMisses(const v1::ProposeShardingResponse& response, const std::string& pace, const Flags& flags,
                     Report& report) {
  if (response.near_misses().empty()) return;
  report.Section("Nearly");
  for (const v1::NearMiss& miss : response.near_misses()) {
    const v1::PlanSummary& plan = miss.plan();
    const std::string on_host = HostText(plan);
    std::string text = absl::StrCat(SliceName(plan.slice()), ", ", PlanFlag(plan.parallelism()),
                                    on_host.empty() ? "" : absl::StrCat(", on host: ", on_host), ", ", pace, " ",
                                    Seconds(plan.expected_seconds()), ": ", miss.lacks().sentence());
    if (miss.has_smallest_fix()) {
      std::vector<std::string> changes;
      for (const v1::FieldChange& change : miss.smallest_fix().changes()) {
        // What this request cannot change, the shape of a slice, is in the sentence alone.
        const std::string top = change.field().substr(0, change.field().find('.'));
        if (v1::ProposeShardingRequest::descriptor()->FindFieldByName(top) == nullptr) continue;
        changes.push_back(flags.ChangeAsFlag(change.field(), change.value()));
      }
      absl::StrAppend(&text, " Fix: ", miss.smallest_fix().sentence());
      if (!changes.empty()) absl::StrAppend(&text, " [", absl::StrJoin(changes, ", "), "]");
    }
    report.Item(text);
  }
}

void PrintNoPlan(const v1::ProposeShardingResponse& response, const std::string& job, Report& report) {
  const v1::SearchReport& search = response.search();
  // What runs and is too slow or too dear comes before what does not fit.
  const auto fits = [](const v1::NearMiss& miss) { return miss.plan().outcome() != v1::OUTCOME_OUT_OF_MEMORY; };
  const auto nearest = std::find_if(response.near_misses().begin(), response.near_misses().end(), fits);
  const bool misses = nearest != response.near_misses().end();
  std::string nothing = misses ? ": nothing meets what was asked on " : ": nothing fits on ";
  if (!search.exhaustive())
    nothing = misses ? ": nothing found that meets what was asked on " : ": none found in time on ";
  report.Headline("NO PLAN", Tone::kBad, absl::StrCat(job, nothing, Plural(search.candidate_slice_count(), "slice")));
  if (!misses) return;
  report.Sentence(absl::StrCat("The nearest, ", SliceName(nearest->plan().slice()), ": ", nearest->lacks().sentence()));
}

void PrintSearch(const v1::ProposeShardingResponse& response, const SearchWords& words, const Flags& flags,
                 Report& report) {
  if (!response.closed_forms().empty()) {
    report.Section("Optima by formula");
    for (const v1::ClosedFormOptimum& optimum : response.closed_forms()) {
      report.Item(absl::StrCat(optimum.name(), ": ", optimum.sentence()));
    }
  }
  report.Section("Search");
  report.Sentence(absl::StrCat(SearchText(response.search(), words), "."));
  PrintAssumptions(response.assumptions(), flags, report);
  PrintWarnings(response.warnings(), flags, report);
  PrintVersions(response.engine_version(), response.catalog_version(), report);
}

void PrintProposals(const v1::ProposeShardingRequest& request, const v1::ProposeShardingResponse& response,
                    const std::string& model, const Flags& flags, Report& report) {
  const v1::SearchReport& search = response.search();
  const std::string slices = Plural(search.candidate_slice_count(), "slice");
  if (response.proposals().empty()) {
    PrintNoPlan(response, absl::StrCat("training ", model), report);
  } else {
    report.Headline(
        "", Tone::kPlain,
        absl::StrCat("Training ", model, ": the best of ", slices, ", ", ObjectiveText(request.objective())));
    PrintTable(response, report);
    PrintFirst(response, report);
  }
  PrintReasons(response, report);
  PrintFrontier(response, report);
  PrintNearMisses(response, "step", flags, report);
  PrintSearch(response, {"evaluated", "compute floor", "proven best"}, flags, report);
}

}  // namespace sliceplan::cli
