// One subcommand: a request filled in from flags, an RPC, and a table of its reply.
#ifndef SLICEPLAN_CLIENT_CLI_QUESTION_H_
#define SLICEPLAN_CLIENT_CLI_QUESTION_H_

#include <string>

#include "client/cli/backend.h"
#include "client/cli/flags.h"
#include "client/cli/report.h"
#include "google/protobuf/message.h"
#include "proto/google/rpc/status.pb.h"

namespace sliceplan::cli {

class Question {
 public:
  virtual ~Question() = default;

  // "sliceplan.v1.PlannerService/EstimateTraining".
  virtual std::string method() const = 0;
  virtual google::protobuf::Message* request() = 0;
  virtual google::protobuf::Message* response() = 0;

  virtual void AddFlags(Flags& flags) = 0;
  // Whether arguments that no flag reads are let pass.
  virtual bool TakesAnyArguments() const { return false; }
  // Completes the request where that takes a call of its own. OK: code 0.
  virtual google::rpc::Status Complete(Backend&) { return google::rpc::Status(); }
  // What the reply lacks of what was asked for; an error of the command then. OK: code 0.
  virtual google::rpc::Status Missing() const { return google::rpc::Status(); }
  // Text of the reply that is printed alone, as it is; empty: Print.
  virtual std::string Verbatim() const { return ""; }
  // What --format csv holds, for the help; empty: there is no such format.
  virtual std::string CsvHelp() const { return ""; }
  virtual std::string Csv() const { return ""; }
  // Whether the answer may take long enough to show that it is on its way.
  virtual bool MayTakeLong() const { return false; }
  // The reply for people; `flags` turns fields into flags.
  virtual void Print(const Flags& flags, Report& report) const = 0;
};

// A question with the messages of its RPC.
template <typename Request, typename Response>
class TypedQuestion : public Question {
 public:
  Request* request() override { return &request_; }
  Response* response() override { return &response_; }

 protected:
  Request request_;
  Response response_;
};

}  // namespace sliceplan::cli

#endif  // SLICEPLAN_CLIENT_CLI_QUESTION_H_
