// One call on its way through the dispatcher, whatever carries it.
#ifndef SLICEPLAN_SERVER_RPC_INCOMING_CALL_H_
#define SLICEPLAN_SERVER_RPC_INCOMING_CALL_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "google/protobuf/message.h"
#include "server/rpc/result.h"
#include "server/rpc/unread_replies.h"

namespace sliceplan::rpc {

// Metadata key, gRFC A6: how long a client with a retry policy waits before it tries again.
inline constexpr char kPushbackKey[] = "grpc-retry-pushback-ms";

class IncomingCall {
 public:
  virtual ~IncomingCall() = default;

  virtual const google::protobuf::Message& request() const = 0;
  // Empty; filled by the handler.
  virtual google::protobuf::Message* response() = 0;
  // As the caller set it; InfiniteFuture when it set none.
  virtual absl::Time deadline() const = 0;
  // Whether the caller went away. From any thread, until Finish.
  virtual bool cancelled() const = 0;
  // Of gRPC's metadata or HTTP's headers, by lower-case name: the first value, empty when there is none.
  virtual absl::string_view Metadata(absl::string_view key) const = 0;
  // Where the caller is, as gRPC writes it: "ipv4:127.0.0.1:40000".
  virtual std::string peer() const = 0;

  // Goes with the reply, or with the error. Before Finish.
  virtual void AddReplyMetadata(absl::string_view key, absl::string_view value) = 0;
  // Ends the call: the response when `result` is OK, else the error. `pushback`: when a refused caller may come back.
  // `receipt` is kept until the reply has been sent.
  // Exactly once; request, response and metadata may not be touched afterwards, only the destructor may follow.
  virtual void Finish(const Result& result, std::optional<absl::Duration> pushback, UnreadReplies::Receipt receipt) = 0;
};

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_INCOMING_CALL_H_
