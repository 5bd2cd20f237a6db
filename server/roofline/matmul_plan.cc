#include "server/roofline/matmul_plan.h"

#include <algorithm>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace sliceplan::roofline {
namespace {

using hardware::BytesPerElement;

bool Splits(int dim) { return dim != kWholeDim; }

// A whole copy can be cut for free; anything else must be sent.
bool IsFree(int from, int to) { return from == to || !Splits(from); }

bool IsPartial(const AxisChoice& choice, const MatmulDims& dims) { return choice.lhs == dims.K(); }

// What the axis splits in the product; kWholeDim also for partial sums.
int Produced(const AxisChoice& choice, const MatmulDims& dims) {
  if (IsPartial(choice, dims)) return kWholeDim;
  return Splits(choice.lhs) ? choice.lhs : choice.rhs;
}

bool NeedsNoCommunication(const AxisRole& role, const AxisChoice& choice, const MatmulDims& dims) {
  if (!IsFree(role.lhs, choice.lhs) || !IsFree(role.rhs, choice.rhs) || IsPartial(choice, dims)) return false;
  return role.output_is_free || IsFree(Produced(choice, dims), role.output);
}

absl::string_view CollectiveWords(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllGather: return "all-gather";
    case CollectiveKind::kReduceScatter: return "reduce-scatter";
    case CollectiveKind::kAllReduce: return "all-reduce";
    case CollectiveKind::kAllToAll: return "all-to-all";
    case CollectiveKind::kCollectivePermute: return "permute";
  }
  return "";
}

absl::string_view OperandWords(MatmulOperand operand) {
  switch (operand) {
    case MatmulOperand::kLhs: return "lhs";
    case MatmulOperand::kRhs: return "rhs";
    case MatmulOperand::kOutput: return "output";
  }
  return "";
}

void AddSeconds(Tier tier, double seconds, ResourceSeconds& resources) {
  switch (tier) {
    case Tier::kNone: return;
    case Tier::kIci: resources.ici += seconds; return;
    case Tier::kScaleUp: resources.scale_up += seconds; return;
    case Tier::kScaleOut: resources.scale_out += seconds; return;
    case Tier::kDcn: resources.dcn += seconds; return;
  }
}

}  // namespace

// One collective of an operand, before it is timed.
struct MatmulPlanner::Move {
  CollectiveKind kind;
  MatmulOperand operand;
  AxisSet axes;
  double bytes;
};

int CaseOf(const AxisRole& role, const MatmulDims& dims) {
  const bool lhs_contracts = role.lhs == dims.K();
  const bool rhs_contracts = role.rhs == dims.K();
  if (lhs_contracts && rhs_contracts) return 3;
  if (lhs_contracts || rhs_contracts) return 2;
  if (Splits(role.lhs) && Splits(role.rhs)) return role.lhs == role.rhs ? 1 : 4;
  return Splits(role.lhs) || Splits(role.rhs) ? 1 : 0;
}

std::vector<AxisChoice> ChoicesOf(const AxisRole& role, const MatmulDims& dims) {
  std::vector<AxisChoice> choices;
  for (int batch = 0; batch < dims.BatchCount(); ++batch) {
    if (role.lhs == batch || role.rhs == batch || role.output == batch) choices.push_back({batch, batch});
  }
  if (role.lhs == dims.M() || role.output == dims.M()) choices.push_back({dims.M(), kWholeDim});
  if (role.rhs == dims.N() || role.output == dims.N()) choices.push_back({kWholeDim, dims.N()});
  if (role.lhs == dims.K() || role.rhs == dims.K()) choices.push_back({dims.K(), dims.K()});
  choices.push_back({kWholeDim, kWholeDim});
  for (const AxisChoice& choice : choices) {
    if (NeedsNoCommunication(role, choice, dims)) return {choice};
  }
  return choices;
}

MatmulPlanner::MatmulPlanner(const ShardedMatmul& op, MatmulDims dims, const std::vector<MeshAxis>& mesh,
                             std::vector<AxisRole> roles, const MeshNetwork& network,
                             const hardware::AcceleratorSpec& accelerator)
    : op_(op),
      dims_(std::move(dims)),
      mesh_(mesh),
      roles_(std::move(roles)),
      network_(network),
      accelerator_(accelerator) {
  Matmul global;
  for (int i = 0; i < dims_.BatchCount(); ++i) global.batch *= dims_.sizes[static_cast<size_t>(i)];
  global.m = op_.m;
  global.k = op_.k;
  global.n = op_.n;
  global.lhs = op_.lhs_type;
  global.rhs = op_.rhs_type;
  global.output = op_.output_type;
  global_bytes_ = BytesOf(global);
}

double MatmulPlanner::Product(AxisSet axes) const {
  double product = 1;
  for (size_t i = 0; i < mesh_.size(); ++i) {
    if ((axes >> i & 1U) != 0) product *= mesh_[i].size;
  }
  return product;
}

void MatmulPlanner::MoveOperand(MatmulOperand operand, const std::vector<AxisChoice>& choices,
                                std::vector<Move>& moves) const {
  const bool is_lhs = operand == MatmulOperand::kLhs;
  const double bytes = is_lhs ? global_bytes_.lhs : global_bytes_.rhs;
  AxisSet gathered = 0;
  AxisSet exchanged = 0;
  AxisSet final_axes = 0;
  for (size_t i = 0; i < choices.size(); ++i) {
    const int from = is_lhs ? roles_[i].lhs : roles_[i].rhs;
    const int to = is_lhs ? choices[i].lhs : choices[i].rhs;
    const AxisSet axis = AxisSet{1} << i;
    if (Splits(to)) final_axes |= axis;
    if (Splits(from) && !Splits(to)) gathered |= axis;
    if (Splits(from) && Splits(to) && from != to) exchanged |= axis;
  }
  // Exchanged while still small, gathered last.
  if (exchanged != 0) {
    moves.push_back({CollectiveKind::kAllToAll, operand, exchanged,
                     bytes / (Product(final_axes & ~exchanged) * Product(gathered))});
  }
  if (gathered != 0) {
    moves.push_back({CollectiveKind::kAllGather, operand, gathered, bytes / Product(final_axes)});
  }
}

void MatmulPlanner::MoveOutput(const std::vector<AxisChoice>& choices, std::vector<Move>& moves) const {
  AxisSet split = 0;  // with what is cut for free
  AxisSet scattered = 0;
  AxisSet reduced = 0;
  AxisSet exchanged = 0;
  AxisSet gathered = 0;
  for (size_t i = 0; i < choices.size(); ++i) {
    const AxisRole& role = roles_[i];
    const AxisSet axis = AxisSet{1} << i;
    const int wanted = role.output_is_free ? kWholeDim : role.output;
    if (IsPartial(choices[i], dims_)) {
      (Splits(wanted) ? scattered : reduced) |= axis;
      continue;
    }
    const int produced = Produced(choices[i], dims_);
    if (Splits(produced) || Splits(wanted)) split |= axis;
    if (role.output_is_free || !Splits(produced)) continue;
    if (!Splits(wanted)) gathered |= axis;
    if (Splits(wanted) && produced != wanted) exchanged |= axis;
  }
  // Shrinking moves first.
  const double bytes = global_bytes_.output;
  if (scattered != 0) {
    moves.push_back({CollectiveKind::kReduceScatter, MatmulOperand::kOutput, scattered, bytes / Product(split)});
  }
  if (reduced != 0) {
    moves.push_back(
        {CollectiveKind::kAllReduce, MatmulOperand::kOutput, reduced, bytes / (Product(split) * Product(scattered))});
  }
  if (exchanged != 0) {
    moves.push_back({CollectiveKind::kAllToAll, MatmulOperand::kOutput, exchanged,
                     bytes / (Product(split & ~exchanged) * Product(scattered))});
  }
  if (gathered != 0) {
    moves.push_back({CollectiveKind::kAllGather, MatmulOperand::kOutput, gathered,
                     bytes / (Product(split & ~gathered) * Product(scattered))});
  }
}

bool MatmulPlanner::SetLocalShape(const std::vector<AxisChoice>& choices, MatmulPlan& plan) const {
  std::vector<int64_t> local = dims_.sizes;
  for (size_t i = 0; i < choices.size(); ++i) {
    const int dim = Splits(choices[i].lhs) ? choices[i].lhs : choices[i].rhs;
    if (!Splits(dim)) continue;
    int64_t& size = local[static_cast<size_t>(dim)];
    if (size % mesh_[i].size != 0) return false;
    size /= mesh_[i].size;
  }
  plan.local_batch_dims.assign(local.begin(), local.end() - 3);
  plan.local.batch = 1;
  for (const int64_t size : plan.local_batch_dims) plan.local.batch *= size;
  plan.local.m = local[static_cast<size_t>(dims_.M())];
  plan.local.k = local[static_cast<size_t>(dims_.K())];
  plan.local.n = local[static_cast<size_t>(dims_.N())];
  plan.local.lhs = op_.lhs_type;
  plan.local.rhs = op_.rhs_type;
  plan.local.output = op_.output_type;
  plan.local.compute = op_.compute;
  return true;
}

absl::Status MatmulPlanner::Add(const Move& move, MatmulPlan& plan) {
  auto found = laws_.find({move.kind, move.axes});
  if (found == laws_.end()) {
    absl::StatusOr<CollectiveLaw> law = network_.LawOver(move.kind, move.axes);
    if (!law.ok()) return law.status();
    found = laws_.emplace(std::make_pair(move.kind, move.axes), *law).first;
  }
  InsertedCollective collective;
  collective.kind = move.kind;
  collective.operand = move.operand;
  for (size_t i = 0; i < mesh_.size(); ++i) {
    if ((move.axes >> i & 1U) != 0) collective.axes.push_back(static_cast<int>(i));
  }
  collective.bytes = move.bytes;
  collective.seconds = found->second.Seconds(move.bytes);
  AddSeconds(found->second.slowest_tier, collective.seconds, plan.seconds);
  plan.network_seconds += collective.seconds;
  plan.collectives.push_back(std::move(collective));
  return absl::OkStatus();
}

std::string MatmulPlanner::Sentence(const MatmulPlan& plan) const {
  std::vector<std::string> before;
  std::vector<std::string> after = {"multiply"};
  for (const InsertedCollective& collective : plan.collectives) {
    const std::string axes = absl::StrJoin(collective.axes, ", ", [this](std::string* out, int axis) {
      absl::StrAppend(out, mesh_[static_cast<size_t>(axis)].name);
    });
    const std::string words =
        absl::StrCat(CollectiveWords(collective.kind), " ", OperandWords(collective.operand), " over ", axes);
    (collective.operand == MatmulOperand::kOutput ? after : before).push_back(words);
  }
  before.insert(before.end(), after.begin(), after.end());
  return absl::StrJoin(before, ", then ");
}

absl::StatusOr<std::optional<MatmulPlan>> MatmulPlanner::PlanOf(const std::vector<AxisChoice>& choices) {
  MatmulPlan plan;
  if (!SetLocalShape(choices, plan)) return std::nullopt;
  absl::StatusOr<ResourceSeconds> seconds = SecondsOf(CostOf(plan.local), accelerator_);
  if (!seconds.ok()) return seconds.status();
  plan.seconds = *seconds;

  std::vector<Move> moves;
  MoveOperand(MatmulOperand::kLhs, choices, moves);
  MoveOperand(MatmulOperand::kRhs, choices, moves);
  MoveOutput(choices, moves);
  for (const Move& move : moves) {
    if (absl::Status status = Add(move, plan); !status.ok()) return status;
  }
  plan.bound = BoundOf(plan.seconds);
  plan.sentence = Sentence(plan);
  return plan;
}

}  // namespace sliceplan::roofline
