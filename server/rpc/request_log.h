// Requests with the digests of their replies, for audits and for `sliceplan replay`: a JSON object a line,
//
//   {"time":"2026-11-30T20:40:54.123456Z","severity":"INFO","message":"request","method":"sliceplan.v1...",
//    "request_id":"...","client":"...","engine_version":"...","catalog_version":"...","request":"<base64>",
//    "reply_sha256":"...","code":"OK","latency_s":0.0123}
//
// `request` is the serialised message, `reply_sha256` that of reply_digest.h. A search that answered with what it had
// when time ran out has "truncated":1. Tokens and other metadata are not in it; requests are, so that the file is
// readable for its owner only.
#ifndef SLICEPLAN_SERVER_RPC_REQUEST_LOG_H_
#define SLICEPLAN_SERVER_RPC_REQUEST_LOG_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/rpc/json_log.h"
#include "server/rpc/method_table.h"
#include "server/rpc/result.h"
#include "server/rpc/rotating_file.h"

namespace sliceplan::rpc {

struct RequestLogOptions {
  std::string path;                       // empty: no request log
  double ratio = 1;                       // of the calls, 0 to 1, chosen at random
  int64_t max_bytes = int64_t{64} << 20;  // of one file
  int file_count = 4;                     // with the one that is written to
};

// Thread-safe. Lines are written by a thread of its own; a disk that is slow or full costs lines, never a call.
class RequestLog {
 public:
  // INVALID_ARGUMENT for options out of range, and the error of the system when the file cannot be opened. `log` gets
  // one line when writing begins to fail and one when it works again; it must outlive this.
  static absl::StatusOr<std::unique_ptr<RequestLog>> Open(const RequestLogOptions& options, const JsonLog* log);
  // Writes what waits.
  ~RequestLog();

  // Notes a call that has ended, if chance wants it. `response` is only read when the result is OK.
  void Add(const Method& method, const google::protobuf::Message& request, const Result& result,
           const google::protobuf::Message& response, const CallContext& call, absl::Duration latency);
  // Returns when everything noted so far was written or given up.
  void Flush();

  struct Counts {
    int64_t written = 0;
    int64_t dropped = 0;  // more came than could be written
    int64_t failed = 0;   // the file could not be written
    int64_t lost() const { return dropped + failed; }
  };
  Counts counts() const;

 private:
  struct Entry {
    absl::Time time;
    std::string method, request_id, client, engine_version, catalog_version, request, reply;
    absl::StatusCode code = absl::StatusCode::kOk;
    bool truncated = false;
    absl::Duration latency;
    size_t bytes() const { return sizeof(Entry) + request.size() + reply.size(); }
  };

  RequestLog(const RequestLogOptions& options, const JsonLog* log);

  void RunThread();
  void WriteOut(const Entry& entry);

  const double ratio_;
  const JsonLog& log_;
  RotatingFile file_;     // of the thread alone, after Open
  bool failing_ = false;  // likewise
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable idle_;
  std::deque<Entry> waiting_;
  size_t waiting_bytes_ = 0;
  bool writing_ = false;
  bool stopping_ = false;
  Counts counts_;
  std::thread thread_;
};

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_REQUEST_LOG_H_
