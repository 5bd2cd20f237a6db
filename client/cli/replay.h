// sliceplan replay: asks again what a server's request log says was asked, and compares the replies by their digests.
#ifndef SLICEPLAN_CLIENT_CLI_REPLAY_H_
#define SLICEPLAN_CLIENT_CLI_REPLAY_H_

#include <cstdint>
#include <istream>
#include <map>
#include <string>
#include <vector>

#include "client/cli/backend.h"
#include "client/cli/report.h"

namespace sliceplan::cli {

struct ReplayCounts {
  int64_t equal = 0;
  int64_t different = 0;
  // Calls that need not end in the same way: the server was full, the caller left, time ran out.
  int64_t skipped = 0;
};

struct ReplayDifference {
  int64_t line = 0;  // of the log, from 1
  std::string method;
  std::string request_id;
  std::string what;  // "OK, now NOT_FOUND"; "other reply; catalog 2026-10, now 2026-11"
};

struct ReplayResult {
  std::map<std::string, ReplayCounts> methods;
  std::vector<ReplayDifference> differences;  // the first kMaxListedDifferences
  int64_t unreadable_lines = 0;

  ReplayCounts Total() const;
};

inline constexpr size_t kMaxListedDifferences = 100;

// Reads the log (server/rpc/request_log.h), one call after the other, to the end that it has at the start: the server
// asked may be the one that writes it.
ReplayResult Replay(std::istream& log, Backend& backend);

void PrintReplay(const ReplayResult& result, Report& report);

}  // namespace sliceplan::cli

#endif  // SLICEPLAN_CLIENT_CLI_REPLAY_H_
