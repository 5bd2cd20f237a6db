#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "client/cli/backend.h"
#include "client/sliceplan/connection.h"

namespace sliceplan::cli {
namespace {

google::rpc::Status ToProto(const absl::Status& status) {
  google::rpc::Status proto;
  proto.set_code(static_cast<int>(status.code()));
  proto.set_message(std::string(status.message()));
  // Payloads have no order of their own.
  std::vector<std::pair<std::string, std::string>> details;
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& value) {
    details.emplace_back(std::string(url), std::string(value));
  });
  std::sort(details.begin(), details.end());
  for (auto& [url, value] : details) {
    auto* const detail = proto.add_details();
    detail->set_type_url(std::move(url));
    detail->set_value(std::move(value));
  }
  return proto;
}

bool IsThisMachine(absl::string_view target) {
  target = absl::StripPrefix(target, "dns:///");
  for (const absl::string_view start : {"localhost:", "127.0.0.1:", "[::1]:", "ipv4:127.0.0.1:"}) {
    if (absl::StartsWith(target, start)) return true;
  }
  return false;
}

class RemoteBackend : public Backend {
 public:
  RemoteBackend(std::shared_ptr<Connection> connection, CallOptions options)
      : connection_(std::move(connection)), options_(std::move(options)) {}

  google::rpc::Status Call(const std::string& method, const google::protobuf::Message& request,
                           google::protobuf::Message* response) override {
    return ToProto(connection_->Call(method, request, options_, response));
  }

 private:
  const std::shared_ptr<Connection> connection_;
  const CallOptions options_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> MakeRemoteBackend(const BackendOptions& options) {
  ClientOptions client_options;
  client_options.target = options.server;
  const bool tls = options.tls || !options.ca_file.empty() || !options.cert_file.empty() || !options.key_file.empty();
  client_options.security = tls ? TransportSecurity::kTls : TransportSecurity::kPlaintext;
  client_options.tls.root_certificates_file = options.ca_file;
  client_options.tls.client_certificate_file = options.cert_file;
  client_options.tls.client_key_file = options.key_file;
  client_options.bearer_token_file = options.token_file;
  client_options.bearer_token_over_plaintext = IsThisMachine(options.server);
  client_options.user_agent = "sliceplan-command";
  absl::StatusOr<std::shared_ptr<Connection>> connection = MakeConnection(client_options);
  if (!connection.ok()) return connection.status();
  CallOptions call_options;
  call_options.timeout = options.timeout;
  return std::make_unique<RemoteBackend>(*std::move(connection), std::move(call_options));
}

}  // namespace sliceplan::cli
