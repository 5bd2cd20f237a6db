#include "client/sliceplan/caching_connection.h"

#include <iterator>
#include <list>
#include <mutex>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/message.h"
#include "proto/sliceplan/v1/sharding.pb.h"

namespace sliceplan {
namespace {

using google::protobuf::Message;

// Bytes that are equal for equal requests.
std::string KeyOf(const std::string& method, const Message& request) {
  std::string key = absl::StrCat(method, "\n");
  google::protobuf::io::StringOutputStream stream(&key);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  request.SerializeToCodedStream(&coded);
  coded.Trim();
  return key;
}

// Engine and catalog; empty for a reply that does not name them.
std::string VersionsOf(const Message& reply) {
  std::string versions;
  for (const char* name : {"engine_version", "catalog_version"}) {
    const auto* const field = reply.GetDescriptor()->FindFieldByName(name);
    if (field == nullptr) return "";
    absl::StrAppend(&versions, reply.GetReflection()->GetString(reply, field), "\n");
  }
  return versions;
}

bool IsRepeatable(const Message& reply) {
  if (reply.GetDescriptor() != v1::ProposeShardingResponse::descriptor()) return true;
  return static_cast<const v1::ProposeShardingResponse&>(reply).search().exhaustive();
}

// Thread-safe.
class Cache {
 public:
  explicit Cache(CacheOptions options) : options_(std::move(options)) {}

  bool Find(const std::string& key, Message* reply) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = index_.find(key);
    if (found == index_.end()) return false;
    if (options_.now() - found->second->since >= options_.max_age) {
      Remove(found->second);
      return false;
    }
    entries_.splice(entries_.begin(), entries_, found->second);
    return reply->ParseFromString(found->second->reply);
  }

  void Keep(const std::string& key, const Message& reply) {
    const std::string versions = VersionsOf(reply);
    if (versions.empty()) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (versions != versions_) {
      while (!entries_.empty()) Remove(entries_.begin());
      versions_ = versions;
    }
    if (!IsRepeatable(reply)) return;
    if (const auto found = index_.find(key); found != index_.end()) Remove(found->second);
    entries_.push_front({key, reply.SerializeAsString(), options_.now()});
    index_[key] = entries_.begin();
    bytes_ += entries_.front().bytes();
    while (bytes_ > options_.max_bytes) Remove(std::prev(entries_.end()));
  }

 private:
  struct Entry {
    std::string key;
    std::string reply;
    absl::Time since;
    size_t bytes() const { return sizeof(Entry) + 2 * key.size() + reply.size(); }
  };

  void Remove(std::list<Entry>::iterator entry) {
    bytes_ -= entry->bytes();
    index_.erase(entry->key);
    entries_.erase(entry);
  }

  const CacheOptions options_;
  std::mutex mutex_;
  std::string versions_;
  std::list<Entry> entries_;  // last used first
  absl::flat_hash_map<std::string, std::list<Entry>::iterator> index_;
  size_t bytes_ = 0;
};

class CachingConnection : public Connection {
 public:
  CachingConnection(std::shared_ptr<Connection> connection, CacheOptions options)
      : connection_(std::move(connection)), cache_(std::make_shared<Cache>(std::move(options))) {}

  absl::Status Call(const std::string& method, const Message& request, const CallOptions& options,
                    Message* response) override {
    if (options.bearer_token.has_value()) return connection_->Call(method, request, options, response);
    const std::string key = KeyOf(method, request);
    if (cache_->Find(key, response)) return absl::OkStatus();
    absl::Status status = connection_->Call(method, request, options, response);
    if (status.ok()) cache_->Keep(key, *response);
    return status;
  }

  PendingCall Start(const std::string& method, const Message& request, const CallOptions& options, Message* response,
                    std::function<void(absl::Status)> done) override {
    if (options.bearer_token.has_value()) {
      return connection_->Start(method, request, options, response, std::move(done));
    }
    std::string key = KeyOf(method, request);
    if (cache_->Find(key, response)) {
      done(absl::OkStatus());
      return PendingCall();
    }
    return connection_->Start(
        method, request, options, response,
        [cache = cache_, key = std::move(key), response, done = std::move(done)](absl::Status status) {
          if (status.ok()) cache->Keep(key, *response);
          done(std::move(status));
        });
  }

 private:
  const std::shared_ptr<Connection> connection_;
  const std::shared_ptr<Cache> cache_;
};

}  // namespace

std::shared_ptr<Connection> MakeCachingConnection(std::shared_ptr<Connection> connection, CacheOptions options) {
  return std::make_shared<CachingConnection>(std::move(connection), std::move(options));
}

}  // namespace sliceplan
