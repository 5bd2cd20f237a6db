// Questions whose answer comes in a later release: the service says so, and what to use meanwhile.
#ifndef SLICEPLAN_CLIENT_CLI_PENDING_H_
#define SLICEPLAN_CLIENT_CLI_PENDING_H_

#include <string>
#include <utility>

#include "client/cli/question.h"
#include "server/rpc/json.h"

namespace sliceplan::cli {

// Any arguments pass: none is read, since the service looks at none.
template <typename Request, typename Response>
class PendingQuestion : public TypedQuestion<Request, Response> {
 public:
  explicit PendingQuestion(std::string method) : method_(std::move(method)) {}

  std::string method() const override { return method_; }
  void AddFlags(Flags&) override {}
  bool TakesAnyArguments() const override { return true; }
  void Print(const Flags&, Report& report) const override { report.Sentence(rpc::PrintJson(this->response_)); }

 private:
  const std::string method_;
};

}  // namespace sliceplan::cli

#endif  // SLICEPLAN_CLIENT_CLI_PENDING_H_
