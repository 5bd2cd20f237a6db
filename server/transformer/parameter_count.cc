#include "server/transformer/parameter_count.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/string_view.h"

namespace sliceplan::transformer {
namespace {

int64_t Copies(const WeightMatmul& matmul) { return std::max(matmul.expert_count, 1); }

int64_t WeightElements(const WeightMatmul& matmul) { return matmul.k * matmul.n * Copies(matmul); }

int64_t& At(std::array<int64_t, kComponentCount>& counts, Component component) {
  return counts[static_cast<size_t>(component)];
}

// Elements of one layer that one token touches.
int64_t ActiveElements(const LayerOperations& layer) {
  int64_t count = layer.norm_parameter_count + layer.other_parameter_count;
  for (const WeightMatmul& matmul : layer.matmuls) {
    const int64_t elements = WeightElements(matmul) + matmul.bias_count;
    count += matmul.expert_count > 0 ? elements / matmul.expert_count * layer.experts_per_token : elements;
  }
  return count;
}

int64_t AllElements(const LayerOperations& layer) {
  int64_t count = layer.norm_parameter_count + layer.other_parameter_count;
  for (const WeightMatmul& matmul : layer.matmuls) count += WeightElements(matmul) + matmul.bias_count;
  return count;
}

int64_t CeilDivide(int64_t value, int64_t divisor) { return (value + divisor - 1) / divisor; }

constexpr int32_t kAllLayers = -1;  // UnquantizedWeight::layer

// What a checkpoint holds for one kind of weight.
struct StoredBytes {
  int64_t bytes = 0;
  int64_t scale_bytes = 0;
  int64_t scale_count = 0;

  StoredBytes& operator+=(const StoredBytes& other) {
    bytes += other.bytes;
    scale_bytes += other.scale_bytes;
    scale_count += other.scale_count;
    return *this;
  }
  StoredBytes Times(int64_t count) const { return {bytes * count, scale_bytes * count, scale_count * count}; }
};

// Whole bytes: a packed row of an odd number of 4-bit values is padded.
int64_t Bytes(int64_t elements, hardware::DataType dtype) {
  constexpr int64_t kNibblesPerByte = 2;
  const auto nibbles = static_cast<int64_t>(hardware::BytesPerElement(dtype) * kNibblesPerByte);
  return nibbles == 1 ? CeilDivide(elements, kNibblesPerByte) : elements * (nibbles / kNibblesPerByte);
}

StoredBytes QuantizedBytes(const WeightFormat& format, int64_t rows, int64_t columns, int64_t copies) {
  StoredBytes stored;
  stored.bytes = rows * copies * Bytes(columns, format.dtype);
  const int64_t blocks = (format.block_rows > 0 ? CeilDivide(rows, format.block_rows) : 1) *
                         (format.block_columns > 0 ? CeilDivide(columns, format.block_columns) : 1);
  if (format.scale_bytes > 0) stored.scale_count = blocks * copies;
  stored.scale_bytes = static_cast<int64_t>(std::ceil(
      static_cast<double>(copies) * (static_cast<double>(blocks) * (format.scale_bytes + format.zero_point_bytes) +
                                     static_cast<double>(columns) * format.column_bytes + format.tensor_scalar_bytes)));
  stored.bytes += stored.scale_bytes;
  return stored;
}

bool IsException(const Quantization& quantization, const WeightMatmul& matmul, int32_t layer) {
  const auto [begin, end] = std::equal_range(
      quantization.exceptions.begin(), quantization.exceptions.end(), UnquantizedWeight{WeightClass::kHead, "", layer},
      [](const UnquantizedWeight& a, const UnquantizedWeight& b) { return a.layer < b.layer; });
  return std::any_of(begin, end, [&matmul](const UnquantizedWeight& weight) {
    return weight.weight_class == matmul.weight_class && (weight.name.empty() || weight.name == matmul.name);
  });
}

class CheckpointCounter {
 public:
  explicit CheckpointCounter(const Architecture& architecture)
      : quantization_(architecture.quantization), dtype_(architecture.checkpoint_dtype) {
    for (const UnquantizedWeight& weight : quantization_.exceptions) differs_by_layer_ |= weight.layer >= 0;
  }

  // `layer` is an index in the stack, or -1 outside it.
  StoredBytes Of(const WeightMatmul& matmul, int32_t layer) const {
    StoredBytes stored;
    if (!quantization_.method.empty() && quantization_.Quantizes(matmul.weight_class) &&
        !IsException(quantization_, matmul, kAllLayers) && (layer < 0 || !IsException(quantization_, matmul, layer))) {
      stored = QuantizedBytes(quantization_.FormatOf(matmul.weight_class), matmul.n, matmul.k, Copies(matmul));
    } else {
      stored.bytes = Bytes(WeightElements(matmul), dtype_);
    }
    stored.bytes += Bytes(matmul.bias_count, dtype_);
    return stored;
  }

  StoredBytes Of(const LayerOperations& operations, int32_t layer) const {
    StoredBytes stored;
    stored.bytes = Bytes(operations.norm_parameter_count + operations.other_parameter_count, dtype_);
    for (const WeightMatmul& matmul : operations.matmuls) stored += Of(matmul, layer);
    return stored;
  }

  StoredBytes OfAllLayersLike(const LayerOperations& operations) const {
    if (!differs_by_layer_) return Of(operations, -1).Times(operations.count);
    StoredBytes stored;
    for (const int32_t layer : operations.positions) stored += Of(operations, layer);
    return stored;
  }

  StoredBytes OfTable(int64_t rows, int64_t columns, WeightClass weight_class) const {
    if (!quantization_.method.empty() && quantization_.Quantizes(weight_class)) {
      return QuantizedBytes(quantization_.FormatOf(weight_class), rows, columns, 1);
    }
    return {Bytes(rows * columns, dtype_), 0, 0};
  }

 private:
  const Quantization& quantization_;
  hardware::DataType dtype_;
  bool differs_by_layer_ = false;
};

void CountComponents(const LayerOperations& layer, ParameterCount& parameters) {
  for (const WeightMatmul& matmul : layer.matmuls) {
    At(parameters.components, matmul.component) += layer.count * (WeightElements(matmul) + matmul.bias_count);
  }
  At(parameters.components, Component::kNorm) += layer.count * layer.norm_parameter_count;
  At(parameters.components, Component::kOther) += layer.count * layer.other_parameter_count;
}

void AddExtra(StoredExtra::Kind kind, std::string name, int64_t count, ParameterCount& parameters) {
  if (count > 0) parameters.extras.push_back({kind, std::move(name), count});
}

void CountCheckpoint(const Architecture& architecture, const ModelOperations& model, ParameterCount& parameters) {
  const CheckpointCounter counter(architecture);
  const int64_t table_rows = model.vocab_size;
  const int64_t table_columns = model.head.k;
  const int64_t table = table_rows * table_columns;
  const bool copies_table = model.tied_embeddings && architecture.stores_tied_table_twice;
  const bool copies_mtp_tables = model.mtp_layer_count > 0 && !architecture.mtp_shares_embeddings;

  StoredBytes stored;
  for (const LayerOperations& layer : model.layers) stored += counter.OfAllLayersLike(layer);
  for (const WeightMatmul& matmul : model.embedding_projections) stored += counter.Of(matmul, -1);
  const StoredBytes embedding = counter.OfTable(table_rows, table_columns, WeightClass::kEmbedding);
  const StoredBytes head = counter.OfTable(table_rows, table_columns, WeightClass::kHead);
  stored += embedding;
  if (copies_table) stored += head;
  if (!model.tied_embeddings && model.head.n > 0) {
    stored += counter.OfTable(model.head.n, table_columns, WeightClass::kHead);
  }
  int64_t plain = model.final_norm_parameter_count + model.head.bias_count;
  plain += model.embedding_parameter_count - table;  // learned positions
  if (model.mtp_layer_count > 0) stored += counter.Of(model.mtp, -1).Times(model.mtp_layer_count);
  if (copies_mtp_tables) {
    stored += embedding.Times(model.mtp_layer_count);
    stored += head.Times(model.mtp_layer_count);
  }

  AddExtra(StoredExtra::Kind::kMtpLayers, "multi-token-prediction layers", parameters.mtp_count, parameters);
  if (copies_mtp_tables) {
    AddExtra(StoredExtra::Kind::kMtpTableCopies, "copies of embedding and output head in multi-token-prediction layers",
             2 * table * model.mtp_layer_count, parameters);
  }
  if (copies_table) AddExtra(StoredExtra::Kind::kTiedTableCopy, "second copy of the tied table", table, parameters);
  AddExtra(StoredExtra::Kind::kQuantizationScales, "quantisation scales", stored.scale_count, parameters);
  for (const StoredBuffer& buffer : architecture.stored_buffers) {
    AddExtra(StoredExtra::Kind::kBuffer, buffer.name, buffer.count, parameters);
    plain += buffer.count;
  }
  parameters.stored_count = parameters.total_count;
  for (const StoredExtra& extra : parameters.extras) parameters.stored_count += extra.count;
  parameters.checkpoint_bytes = stored.bytes + Bytes(plain, architecture.checkpoint_dtype);
  parameters.scale_bytes = stored.scale_bytes;
}

}  // namespace

double ServedWeightBytes(const Architecture& architecture, const WeightMatmul& matmul,
                         const std::vector<int32_t>& positions) {
  const double wide_bytes =
      static_cast<double>(WeightElements(matmul)) * hardware::BytesPerElement(hardware::DataType::kBf16);
  const Quantization& quantization = architecture.quantization;
  if (quantization.method.empty() || !quantization.Quantizes(matmul.weight_class) ||
      IsException(quantization, matmul, kAllLayers)) {
    return wide_bytes;
  }
  const auto stored_bytes = static_cast<double>(
      QuantizedBytes(quantization.FormatOf(matmul.weight_class), matmul.n, matmul.k, Copies(matmul)).bytes);
  const auto wide_layers = std::count_if(positions.begin(), positions.end(),
                                         [&](int32_t layer) { return IsException(quantization, matmul, layer); });
  if (wide_layers == 0) return stored_bytes;
  const double wide_share = static_cast<double>(wide_layers) / static_cast<double>(positions.size());
  return stored_bytes + wide_share * (wide_bytes - stored_bytes);
}

ParameterCount CountParameters(const Architecture& architecture, const ModelOperations& model) {
  ParameterCount parameters;
  At(parameters.components, Component::kEmbedding) = model.embedding_parameter_count;
  At(parameters.components, Component::kOutputHead) = model.head_parameter_count;
  At(parameters.components, Component::kNorm) = model.final_norm_parameter_count;
  for (const WeightMatmul& matmul : model.embedding_projections) {
    At(parameters.components, matmul.component) += WeightElements(matmul) + matmul.bias_count;
  }
  int64_t inactive = 0;
  for (const LayerOperations& layer : model.layers) {
    CountComponents(layer, parameters);
    inactive += layer.count * (AllElements(layer) - ActiveElements(layer));
  }
  for (const int64_t count : parameters.components) parameters.total_count += count;
  parameters.active_count = parameters.total_count - inactive;
  parameters.embedding_count = model.embedding_parameter_count;
  if (model.mtp_layer_count > 0) parameters.mtp_count = model.mtp_layer_count * AllElements(model.mtp);
  CountCheckpoint(architecture, model, parameters);
  return parameters;
}

absl::StatusOr<ParameterCount> CountParameters(const Architecture& architecture) {
  const absl::StatusOr<ModelOperations> model = OperationsOf(architecture);
  if (!model.ok()) return model.status();
  return CountParameters(architecture, *model);
}

double WeightBytes(const ParameterCount& parameters, hardware::DataType dtype) {
  return static_cast<double>(parameters.total_count) * hardware::BytesPerElement(dtype);
}

std::vector<TensorSize> LargestTensors(const ModelOperations& model, size_t limit) {
  std::vector<TensorSize> tensors;
  tensors.push_back({"embed_tokens", model.vocab_size, model.head.k, 1, 0, model.vocab_size * model.head.k});
  if (!model.tied_embeddings && model.head.n > 0) {
    tensors.push_back({model.head.name, model.head.n, model.head.k, 1, 0, model.head.n * model.head.k});
  }
  for (const LayerOperations& layer : model.layers) {
    for (const WeightMatmul& matmul : layer.matmuls) {
      const auto same = std::find_if(tensors.begin(), tensors.end(), [&](const TensorSize& tensor) {
        return tensor.layer_count > 0 && tensor.name == matmul.name && tensor.rows == matmul.n &&
               tensor.columns == matmul.k && tensor.copies == Copies(matmul);
      });
      if (same != tensors.end()) {
        same->layer_count += layer.count;
      } else {
        tensors.push_back({matmul.name, matmul.n, matmul.k, Copies(matmul), layer.count, WeightElements(matmul)});
      }
    }
  }
  std::stable_sort(tensors.begin(), tensors.end(), [](const TensorSize& a, const TensorSize& b) {
    return a.count != b.count ? a.count > b.count : a.name < b.name;
  });
  if (tensors.size() > limit) tensors.resize(limit);
  return tensors;
}

}  // namespace sliceplan::transformer
