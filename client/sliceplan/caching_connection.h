// A connection that remembers replies: equal requests to equal versions of engine and catalog have equal replies.
//
//   absl::StatusOr<std::shared_ptr<sliceplan::Connection>> connection = sliceplan::MakeConnection(options);
//   sliceplan::Client client(sliceplan::MakeCachingConnection(*connection));
//
// For schedulers that ask the same again and again. A reply of other versions than the last ones empties the memory,
// and what is older than `max_age` is asked again, so that is how long a change of versions can go unnoticed. Not
// remembered: errors, searches that could not prove their best, and calls with a token of their own.
#ifndef SLICEPLAN_CLIENT_SLICEPLAN_CACHING_CONNECTION_H_
#define SLICEPLAN_CLIENT_SLICEPLAN_CACHING_CONNECTION_H_

#include <cstddef>
#include <functional>
#include <memory>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/sliceplan/connection.h"

namespace sliceplan {

struct CacheOptions {
  // Of requests and replies together; those that were not used for the longest time go first.
  size_t max_bytes = size_t{64} << 20;
  absl::Duration max_age = absl::Minutes(1);
  std::function<absl::Time()> now = [] { return absl::Now(); };
};

std::shared_ptr<Connection> MakeCachingConnection(std::shared_ptr<Connection> connection, CacheOptions options = {});

}  // namespace sliceplan

#endif  // SLICEPLAN_CLIENT_SLICEPLAN_CACHING_CONNECTION_H_
