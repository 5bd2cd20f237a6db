#include "tests/book/notation.h"

#include <stdexcept>

namespace sliceplan::book {
namespace {

std::vector<std::string> Letters(const std::string& text) {
  std::vector<std::string> letters;
  for (const char c : text) letters.emplace_back(1, c);
  return letters;
}

}  // namespace

int NamedMesh::IndexOf(char name) const {
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].name == std::string(1, name)) return static_cast<int>(i);
  }
  throw std::out_of_range("no mesh axis of that name");
}

NamedMesh MeshOf(const Json& mesh) {
  NamedMesh result;
  for (const auto& [name, size] : mesh.items()) {
    roofline::MeshAxis axis;
    axis.name = name;
    axis.size = size.get<int32_t>();
    result.axes.push_back(axis);
    result.sizes.push_back(axis.size);
  }
  return result;
}

roofline::Sharding ShardingOf(const Json& spec, const NamedMesh& mesh) {
  roofline::Sharding sharding;
  for (const Json& entry : spec) {
    std::vector<int>& axes = sharding.emplace_back();
    if (entry.is_null()) continue;
    for (const char name : entry.get<std::string>()) axes.push_back(mesh.IndexOf(name));
  }
  return sharding;
}

roofline::ShardedArray ArrayOf(const Json& shape, const Json& spec, const NamedMesh& mesh, double bytes_per_element) {
  return {shape.get<std::vector<int64_t>>(), ShardingOf(spec, mesh), bytes_per_element};
}

std::vector<roofline::DimensionSharding> EntriesOf(const Json& operand, const std::vector<std::string>& dimensions) {
  std::vector<roofline::DimensionSharding> entries;
  for (size_t i = 0; i < operand.size(); ++i) {
    const std::string text = operand[i];
    const size_t mark = text.find('_');
    if (mark == std::string::npos) continue;
    entries.push_back({dimensions[i], Letters(text.substr(mark + 1))});
  }
  return entries;
}

std::vector<roofline::DimensionSharding> EntriesOfSpec(const Json& spec, const std::vector<std::string>& dimensions) {
  std::vector<roofline::DimensionSharding> entries;
  for (size_t i = 0; i < spec.size(); ++i) {
    if (!spec[i].is_null()) entries.push_back({dimensions[i], Letters(spec[i])});
  }
  return entries;
}

std::string BookName(roofline::CollectiveKind kind) {
  switch (kind) {
    case roofline::CollectiveKind::kAllGather: return "AllGather";
    case roofline::CollectiveKind::kReduceScatter: return "ReduceScatter";
    case roofline::CollectiveKind::kAllReduce: return "AllReduce";
    case roofline::CollectiveKind::kAllToAll: return "AllToAll";
    case roofline::CollectiveKind::kCollectivePermute: return "CollectivePermute";
  }
  return "";
}

std::string BookName(roofline::MatmulOperand operand) {
  switch (operand) {
    case roofline::MatmulOperand::kLhs: return "A";
    case roofline::MatmulOperand::kRhs: return "B";
    case roofline::MatmulOperand::kOutput: return "C";
  }
  return "";
}

}  // namespace sliceplan::book
