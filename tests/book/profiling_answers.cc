// Chapters 9 and 10: profiles and JAX.
#include <string>
#include <vector>

#include "server/roofline/analyze_operation.h"
#include "server/roofline/mesh_network.h"
#include "server/roofline/op_cost.h"
#include "server/roofline/ring_matmul.h"
#include "server/roofline/sharded_matmul.h"
#include "server/roofline/sharding.h"
#include "server/roofline/tile_padding.h"
#include "tests/book/book_case.h"
#include "tests/book/book_constants.h"
#include "tests/book/notation.h"

namespace sliceplan::book {
namespace {

using namespace roofline;  // NOLINT(google-build-using-namespace): this file calls nothing else

Json LocalShapes(const Json& given) {
  const NamedMesh mesh = MeshOf({{"D", given.at("dp")}, {"M", given.at("mp")}});
  const auto local = [&](const Json& shape, const Json& spec) {
    return LocalShape(ArrayOf(shape, spec, mesh, 1), mesh.sizes).value();
  };
  const Json& x = given.at("global_X");
  const Json& w = given.at("global_W");
  return {{"local_X", local(x, {"D", nullptr, nullptr})},
          {"local_W", local(w, {nullptr, "M"})},
          {"local_out", local({x[0], x[1], w[1]}, {"D", nullptr, "M"})}};
}

Json ReduceScatter(const Json& given) {
  // Each chip holds partial sums of the whole local array.
  const NamedMesh mesh = MeshOf({{"X", 2}});
  const Json whole = Json::array({nullptr, nullptr, nullptr});
  const double bytes =
      LocalBytes(ArrayOf(given.at("local_shape_in"), whole, mesh, Number(given, "bytes_per_element")), mesh.sizes)
          .value();
  const LongRingNetwork ring({mesh.axes[0].size}, AxisBytesPerSecond(given), kDefaultHopSeconds);
  const double seconds = ring.LawOver(CollectiveKind::kReduceScatter, 1).value().Seconds(bytes);
  return {{"bytes", bytes}, {"t_s", seconds}, {"measured_over_model", Number(given, "measured_s") / seconds}};
}

Json QueryProjection(const Json& given) {
  const Matmul matmul{.m = Count(given, "batch") * Count(given, "seq"),
                      .k = Count(given, "D"),
                      .n = Count(given, "heads") * Count(given, "head_dim")};
  hardware::AcceleratorSpec core;
  core.bf16_flops_per_second = Number(given, "flops_per_s_per_core");
  OpCost cost;
  cost.MatrixFlops(matmul.Compute()) = MatmulFlops(matmul) / Number(given, "cores");
  return {{"flops", MatmulFlops(matmul)}, {"t_s", SecondsOf(cost, core).value().matrix_unit}};
}

Json Tiling(const Json& given) {
  const std::vector<int64_t> shape = given.at("shape");
  const std::vector<int64_t> tile = given.at("tile");
  const TiledLayout layout = TiledLayoutOf(shape, tile, Number(given, "bytes_per_element"));
  return {{"padded", layout.padded_shape}, {"bytes", layout.bytes}, {"expansion", layout.expansion_ratio}};
}

Json ReplicaGroups(const Json& given) {
  const hardware::GroupPiece piece{0, static_cast<int32_t>(Count(given, "replica_group_size")),
                                   static_cast<int32_t>(Count(given, "replica_group_stride"))};
  const std::vector<int64_t> local = given.at("local_W");
  const std::vector<int64_t> sizes = {piece.factor};
  return {{"model_parallel", piece.factor},
          {"global_W", GlobalShape(local, {{0}, {}}, sizes)},
          {"devices_min", int64_t{piece.factor} * piece.stride}};
}

Json ExplicitOutput(const Json& given) {
  const NamedMesh mesh = MeshOf(given.at("mesh"));
  const hardware::AcceleratorSpec chip = ChipSpec("tpu-v5p");
  const LongRingNetwork network({mesh.axes[0].size, mesh.axes[1].size}, 2 * *chip.ici_link_bytes_per_second,
                                kDefaultHopSeconds);
  ShardedMatmul op;
  op.m = 1024;
  op.k = 65536;
  op.n = 1024;
  op.lhs_sharding = EntriesOfSpec(given.at("lhs_spec"), {"m", "k"});
  op.rhs_sharding = EntriesOfSpec(given.at("rhs_spec"), {"k", "n"});
  const auto analyze = [&](const std::optional<Json>& output) {
    if (output) op.output_sharding = EntriesOfSpec(*output, {"m", "n"});
    std::vector<hardware::Violation> violations;
    return AnalyzeShardedMatmul(op, mesh.axes, network, chip, "matmul", violations).value();
  };
  const bool ambiguous = analyze(std::nullopt).needs_output_sharding;
  const auto collective = [&](const Json& output) { return BookName(analyze(output).plan.collectives.back().kind); };
  return {{"no_out_sharding", ambiguous ? "error" : "none"},
          {"out_X_Y", collective({"X", "Y"})},
          {"out_X_None", collective({"X", nullptr})}};
}

Json LocalShapeOf(const Json& given) {
  const NamedMesh mesh = MeshOf(given.at("mesh"));
  return {{"local_shape", LocalShape(ArrayOf(given.at("shape"), given.at("spec"), mesh, 1), mesh.sizes).value()}};
}

Json CollectiveMatmul(const Json& given) {
  const NamedMesh mesh = MeshOf(given.at("mesh"));
  const auto local = [&](const char* shape, const char* spec) {
    return LocalShape(ArrayOf(given.at(shape), given.at(spec), mesh, 1), mesh.sizes).value();
  };
  const std::vector<int64_t> a = local("A_shape", "A_spec");
  const std::vector<int64_t> w = local("W_shape", "W_spec");
  const int64_t ring_size = mesh.sizes[static_cast<size_t>(mesh.IndexOf('Y'))];
  const Matmul gathered{.m = a[0], .k = w[0], .n = w[1]};
  const RingMatmul ring = RingMatmulOf(gathered, ring_size);
  return {{"A_local", a},
          {"W_local", w},
          {"out_local", {gathered.m, gathered.n}},
          {"matmul_steps", ring.chunk_count},
          {"permutes", ring.permute_count},
          {"chunk_flops", ring.chunk_flops}};
}

Json MeanPerShard(const Json& given) {
  const NamedMesh mesh = MeshOf(given.at("mesh"));
  const ShardedArray array = ArrayOf(given.at("shape"), given.at("spec"), mesh, 2);
  const std::vector<int64_t> counts = ShardCounts(array, mesh.sizes).value();
  OperationQuestion question;
  question.slice = TorusOf(ChipSpec("tpu-v5p"), {mesh.axes[0].size, mesh.axes[1].size}, /*wraps=*/false);
  question.mesh_axes = mesh.axes;
  question.operation = Elementwise{.element_count = array.shape[0] * array.shape[1]};
  std::vector<hardware::Violation> violations;
  const OperationAnalysis analysis = AnalyzeOperation(question, violations).value();
  return {{"local_shape", LocalShape(array, mesh.sizes).value()},
          {"out_shape", counts},
          {"collectives", analysis.plan ? analysis.plan->collectives.size() : 0}};
}

}  // namespace

Answers ProfilingAnswers() {
  return {
      {"profiling.local_shapes", LocalShapes},
      {"profiling.reduce_scatter", ReduceScatter},
      {"profiling.q_proj", QueryProjection},
      {"profiling.tiling_pad", Tiling},
      {"profiling.q1", ReplicaGroups},
      {"jax-stuff.explicit_output", ExplicitOutput},
      {"jax-stuff.explicit_local", LocalShapeOf},
      {"jax-stuff.collective_matmul_shapes", CollectiveMatmul},
      {"jax-stuff.q1_shapes", MeanPerShard},
  };
}

}  // namespace sliceplan::book
