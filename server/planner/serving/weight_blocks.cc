#include "server/planner/serving/weight_blocks.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/planner/words.h"

namespace sliceplan::planner {
namespace {

using transformer::TensorSplit;
using transformer::WeightMatmul;

// Degrees that leave blocks whole, as far as tensor parallelism goes in practice.
std::string WholeDegrees(int64_t blocks) {
  constexpr int64_t kMost = 64;
  std::string words;
  for (int64_t degree = 1; degree <= std::min(blocks, kMost); ++degree) {
    if (blocks % degree == 0) absl::StrAppend(&words, words.empty() ? "" : ", ", CountWords(degree));
  }
  return words;
}

}  // namespace

void DescribeWeightBlocks(const ServedModel& model, int32_t tensor, std::vector<Padding>& paddings) {
  const transformer::Quantization& quantization = model.architecture->quantization;
  if (tensor <= 1 || quantization.method.empty()) return;
  std::vector<std::pair<int64_t, int64_t>> seen;  // width and block
  for (const transformer::LayerOperations& layer : model.operations->layers) {
    for (const WeightMatmul& matmul : layer.matmuls) {
      const bool row = matmul.split == TensorSplit::kRow;
      if (matmul.component != transformer::Component::kFeedForward || matmul.split == TensorSplit::kNone) continue;
      if (!quantization.Quantizes(matmul.weight_class)) continue;
      const transformer::WeightFormat& format = quantization.FormatOf(matmul.weight_class);
      const int64_t width = row ? matmul.k : matmul.n;
      const int64_t block = row ? format.block_columns : format.block_rows;
      if (block <= 1 || width % block != 0 || width % (block * tensor) == 0) continue;
      if (std::find(seen.begin(), seen.end(), std::pair(width, block)) != seen.end()) continue;
      seen.emplace_back(width, block);
      const int64_t blocks = width / block;
      const int64_t padded = (blocks + tensor - 1) / tensor * tensor * block;
      paddings.push_back(
          {"weight blocks", width, padded,
           absl::StrCat("The FFN width of ", CountWords(width), " is ", CountWords(blocks), " blocks of ",
                        CountWords(block), " weights with one scale, and tensor ", CountWords(tensor),
                        " cuts through them: engines refuse that or pad it to ", CountWords(padded), ". Tensor ",
                        WholeDegrees(blocks), " keeps them whole",
                        matmul.expert_count > 0 ? ", and so does spreading experts over the expert axis." : ".")});
    }
  }
}

}  // namespace sliceplan::planner
