#include "server/rpc/model_cache.h"

#include <utility>

namespace sliceplan::rpc {

ModelHandle ModelCache::Find(absl::string_view key) {
  std::lock_guard lock(mutex_);
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->model;
}

bool ModelCache::Contains(absl::string_view key) const {
  std::lock_guard lock(mutex_);
  return by_key_.contains(key);
}

void ModelCache::Insert(std::string key, ModelHandle model) {
  std::lock_guard lock(mutex_);
  if (key.size() > max_key_bytes_ || by_key_.contains(key)) return;
  key_bytes_ += key.size();
  entries_.push_front({std::move(key), std::move(model)});
  by_key_.emplace(entries_.front().key, entries_.begin());
  while (entries_.size() > max_models_ || key_bytes_ > max_key_bytes_) {
    key_bytes_ -= entries_.back().key.size();
    by_key_.erase(entries_.back().key);
    entries_.pop_back();
  }
}

size_t ModelCache::size() const {
  std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace sliceplan::rpc
