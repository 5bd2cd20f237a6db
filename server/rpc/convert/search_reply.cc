#include "server/rpc/convert/search_reply.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "google/protobuf/descriptor.h"
#include "server/rpc/convert/enums.h"

namespace sliceplan::rpc {

void AddPruned(const std::array<int64_t, planner::kPruneReasonCount>& counts, v1::SearchReport* report) {
  std::map<absl::string_view, int64_t> pruned;
  for (int i = 0; i < planner::kPruneReasonCount; ++i) {
    const int64_t count = counts[static_cast<size_t>(i)];
    if (count > 0) pruned[planner::PruneReasonName(static_cast<planner::PruneReason>(i))] = count;
  }
  for (const auto& [reason, count] : pruned) {
    v1::PrunedCount* const entry = report->add_pruned();
    entry->set_reason(reason.data(), reason.size());
    entry->set_count(count);
  }
}

bool IsFieldOfSearch(absl::string_view field) {
  const google::protobuf::Descriptor* message = v1::ProposeShardingRequest::descriptor();
  for (absl::string_view name : absl::StrSplit(field, '.')) {
    if (message == nullptr) return false;
    name = name.substr(0, name.find('['));
    const google::protobuf::FieldDescriptor* const found = message->FindFieldByName(std::string(name));
    if (found == nullptr) return false;
    message = found->message_type();
  }
  return true;
}

void KeepFieldsOfSearch(v1::Fix* fix) {
  const bool all_known = std::all_of(fix->changes().begin(), fix->changes().end(),
                                     [](const v1::FieldChange& change) { return IsFieldOfSearch(change.field()); });
  if (!all_known) fix->clear_changes();
}

void AddClosedForm(const planner::ClosedFormOptimum& ours, v1::ProposeShardingResponse* response) {
  v1::ClosedFormOptimum* const optimum = response->add_closed_forms();
  optimum->set_name(ours.name);
  for (const planner::LogicalAxis axis : planner::kLogicalAxes) {
    const double degree = ours.degrees[static_cast<size_t>(axis)];
    if (degree <= 0) continue;
    v1::ClosedFormDegree* const entry = optimum->add_degrees();
    entry->set_axis(ToProto(kParallelismAxes, axis));
    entry->set_degree(degree);
  }
  if (ours.network_seconds.has_value()) optimum->set_network_seconds(*ours.network_seconds);
  optimum->set_sentence(AsSentence(ours.sentence));
}

void AddSearchWarning(absl::string_view code, absl::string_view sentence, absl::string_view field,
                      v1::ProposeShardingResponse* response) {
  v1::Warning* const warning = response->add_warnings();
  warning->set_code(code.data(), code.size());
  warning->set_sentence(AsSentence(sentence));
  warning->set_field(field.data(), field.size());
}

void AddSearchWarnings(const SearchBase& question, bool needs_price, const Unwritten& unwritten,
                       v1::ProposeShardingResponse* response) {
  if (!question.unpriced_accelerators.empty()) {
    AddSearchWarning(
        "NO_PUBLIC_PRICE",
        absl::StrCat("no public price on these terms for ", absl::StrJoin(question.unpriced_accelerators, ", "),
                     needs_price ? ": left out, because the search needs one" : ": their plans have no cost"),
        "pricing", response);
  }
  if (question.candidates.empty()) {
    AddSearchWarning("NO_CANDIDATES", "no slice is free, so that nothing was searched", "capacity", response);
  }
  const v1::SearchReport& search = response->search();
  if (!question.candidates.empty() && search.exhaustive() && response->proposals().empty() &&
      search.considered_count() == 0 && search.pruned().empty()) {
    AddSearchWarning("NO_LEGAL_PLAN", "no plan of these slices is legal with the degrees that are fixed or forbidden",
                     "constraints", response);
  }
  for (const auto& [reason, ranks] : unwritten) {
    // The reason stays as it is: it may begin with a name.
    v1::Warning* const warning = response->add_warnings();
    warning->set_code("NOT_RENDERED");
    const bool single = response->proposals_size() == 1;
    warning->set_sentence(
        single ? reason
               : absl::StrCat(absl::StripSuffix(reason, "."), " (proposal ", absl::StrJoin(ranks, ", "), ")."));
    warning->set_field("render");
  }
}

}  // namespace sliceplan::rpc
