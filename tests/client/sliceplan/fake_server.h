// A PlannerService on a loopback port whose EstimateTraining a test writes.
#ifndef SLICEPLAN_TESTS_CLIENT_SLICEPLAN_FAKE_SERVER_H_
#define SLICEPLAN_TESTS_CLIENT_SLICEPLAN_FAKE_SERVER_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/sliceplan/client.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "proto/sliceplan/v1/planner_service.grpc.pb.h"

namespace sliceplan {

class FakeServer {
 public:
  using Answer = std::function<grpc::Status(grpc::ServerContext&, const v1::EstimateTrainingRequest&,
                                            v1::EstimateTrainingResponse&)>;

  explicit FakeServer(Answer answer) : service_(std::move(answer)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(absl::StrCat(host_, ":0"), grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
  }
  ~FakeServer() { server_->Shutdown(); }

  std::string address() const { return absl::StrCat(host_, ":", port_); }
  grpc::Server& server() { return *server_; }

  // For this server, with retries that take milliseconds.
  ClientOptions Options() const {
    ClientOptions options;
    options.target = absl::StrCat("ipv4:", address());
    options.security = TransportSecurity::kPlaintext;
    // gRPC logs an error for every server without a health service.
    options.health_checks = false;
    options.retry.initial_backoff = absl::Milliseconds(1);
    options.retry.max_backoff = absl::Milliseconds(2);
    return options;
  }

 private:
  class Service : public v1::PlannerService::Service {
   public:
    explicit Service(Answer answer) : answer_(std::move(answer)) {}
    grpc::Status EstimateTraining(grpc::ServerContext* context, const v1::EstimateTrainingRequest* request,
                                  v1::EstimateTrainingResponse* response) override {
      return answer_(*context, *request, *response);
    }

   private:
    const Answer answer_;
  };

  // Each server has a loopback address of its own: gRPC remembers for the whole process which addresses failed (the
  // retry throttle), and ports come back.
  static std::string NextHost() {
    static std::atomic<int> count = 0;
    const int number = ++count;
    return absl::StrCat("127.1.", number / 250 % 250, ".", 1 + number % 250);
  }

  Service service_;
  const std::string host_ = NextHost();
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace sliceplan

#endif  // SLICEPLAN_TESTS_CLIENT_SLICEPLAN_FAKE_SERVER_H_
