// Models that were asked for, read and counted once. Schedulers ask about the same model thousands of times; reading
// its config.json costs more than the estimate.
#ifndef SLICEPLAN_SERVER_RPC_MODEL_CACHE_H_
#define SLICEPLAN_SERVER_RPC_MODEL_CACHE_H_

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "server/transformer/architecture.h"
#include "server/transformer/hugging_face/import.h"
#include "server/transformer/operations.h"
#include "server/transformer/parameter_count.h"

namespace sliceplan::rpc {

// Immutable once made.
struct ParsedModel {
  std::string name;  // of the architecture, or the config's family
  transformer::Architecture architecture;
  transformer::ModelOperations operations;
  transformer::ParameterCount parameters;
  std::vector<std::string> group_names;              // of layer_groups, for breakdowns
  std::vector<transformer::ImportWarning> warnings;  // of the import
};

// What the caller may have of a model: nothing until Find or Insert.
using ModelHandle = std::shared_ptr<const ParsedModel>;

// Thread-safe. Forgets what was not used for longest.
class ModelCache {
 public:
  // Bounds of what is remembered: models, and bytes of the texts that describe them.
  explicit ModelCache(size_t max_models = 256, size_t max_key_bytes = size_t{16} << 20)
      : max_models_(max_models), max_key_bytes_(max_key_bytes) {}

  // The model described by exactly `key`; nullptr when it is not remembered.
  ModelHandle Find(absl::string_view key);
  // Whether Find would find it, without counting as a use.
  bool Contains(absl::string_view key) const;
  void Insert(std::string key, ModelHandle model);

  size_t size() const;

 private:
  struct Entry {
    std::string key;
    ModelHandle model;
  };

  const size_t max_models_;
  const size_t max_key_bytes_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // most recently used first; nodes do not move
  absl::flat_hash_map<absl::string_view, std::list<Entry>::iterator> by_key_;  // views of the entries' keys
  size_t key_bytes_ = 0;
};

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_MODEL_CACHE_H_
