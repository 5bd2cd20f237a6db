#include "server/rpc/http/http_server.h"

#include <civetweb.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "server/rpc/call_record.h"
#include "server/rpc/errors.h"
#include "server/rpc/http/connect_protocol.h"
#include "server/rpc/json.h"
#include "server/rpc/request_id.h"
#include "server/rpc/stopwatch.h"
#include "server/rpc/text.h"
#include "server/rpc/worker_pool.h"

namespace sliceplan::rpc {
namespace {

// Connections that the kernel holds until a thread is free.
constexpr int kListenBacklog = 256;
// Of the request line and all headers.
constexpr int kMaxHeaderBytes = 16 << 10;
// Of a path in the log.
constexpr size_t kMaxLoggedPathBytes = 128;

}  // namespace

// civetweb's callbacks are plain functions.
class HttpServer::Callbacks {
 public:
  static mg_callbacks Make() {
    mg_callbacks callbacks = {};
    callbacks.init_connection = [](const mg_connection* connection, void** data) {
      *data = ServerOf(connection).connections_.Open();
      return 0;
    };
    callbacks.connection_close = [](const mg_connection* connection) {
      auto* const data = static_cast<HttpConnection*>(mg_get_user_connection_data(connection));
      if (data != nullptr) ServerOf(connection).connections_.Close(data);
    };
    callbacks.begin_request = [](mg_connection* connection) {
      ServerOf(connection).Serve(connection);
      return 1;  // answered
    };
    callbacks.http_error = [](mg_connection* connection, int status, const char* text) {
      HttpReply reply = ErrorReply(BareStatus(absl::StatusCode::kInvalidArgument, text));
      reply.status = status;
      const std::string bytes = Serialize(reply, /*head=*/false, /*keep_alive=*/false);
      mg_write(connection, bytes.data(), bytes.size());
      return 0;  // handled
    };
    callbacks.log_message = [](const mg_connection* connection, const char* text) {
      const JsonLog& log = ServerOf(connection).log_;
      LogLine line = log.Line(Severity::kWarning, "http");
      line.Text("text", text);
      log.Write(std::move(line));
      return 1;  // written
    };
    callbacks.log_access = [](const mg_connection*, const char*) { return 1; };
    return callbacks;
  }

 private:
  static HttpServer& ServerOf(const mg_connection* connection) {
    return *static_cast<HttpServer*>(mg_get_user_data(mg_get_context(connection)));
  }
};

HttpServer::HttpServer(const ServerOptions& options, bool answers_calls, const MethodTable* methods,
                       const Dispatcher* dispatcher, ServerMetrics* metrics, const JsonLog* log)
    : answers_calls_(answers_calls),
      max_message_bytes_(static_cast<size_t>(options.max_message_bytes)),
      default_deadline_(options.default_deadline),
      max_deadline_(options.max_deadline),
      cors_(options.http_cors_origins),
      bodies_(max_message_bytes_, static_cast<int64_t>(options.memory_quota_bytes)),
      methods_(*methods),
      dispatcher_(*dispatcher),
      metrics_(*metrics),
      log_(*log),
      computing_(UsableCpuCount()) {}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const ServerOptions& options, bool answers_calls,
                                                              const MethodTable* methods, const Dispatcher* dispatcher,
                                                              ServerMetrics* metrics, const JsonLog* log) {
  std::unique_ptr<HttpServer> server(new HttpServer(options, answers_calls, methods, dispatcher, metrics, log));
  if (const absl::Status status = server->Listen(options); !status.ok()) return status;
  return server;
}

absl::Status HttpServer::Listen(const ServerOptions& options) {
  static const unsigned library = mg_init_library(0);
  static_cast<void>(library);
  std::string host = options.address;
  if (host == "localhost") host = "127.0.0.1";  // civetweb takes numbers only
  if (absl::StrContains(host, ":")) host = absl::StrCat("[", host, "]");
  const std::string target = absl::StrCat(host, ":", options.http_port);
  const std::pair<const char*, std::string> settings[] = {
      {"listening_ports", target},
      {"num_threads", absl::StrCat(kThreadCount)},
      {"listen_backlog", absl::StrCat(kListenBacklog)},
      {"max_request_size", absl::StrCat(kMaxHeaderBytes)},
      {"tcp_nodelay", "1"},
      {"enable_keep_alive", "yes"},
      // HttpConnections cuts what is slower than these, and sooner when threads are few.
      {"request_timeout_ms", absl::StrCat(absl::ToInt64Milliseconds(HttpConnections::kReadTime))},
      {"keep_alive_timeout_ms", absl::StrCat(absl::ToInt64Milliseconds(HttpConnections::kIdleTime))},
  };
  std::vector<const char*> list;
  for (const auto& [name, value] : settings) {
    list.push_back(name);
    list.push_back(value.c_str());
  }
  list.push_back(nullptr);
  const mg_callbacks callbacks = Callbacks::Make();
  context_ = mg_start(&callbacks, this, list.data());
  if (context_ == nullptr) return absl::UnavailableError(absl::StrCat("cannot listen on ", target, " for HTTP"));
  mg_server_port port = {};
  if (mg_get_server_ports(context_, 1, &port) == 1) port_ = port.port;
  connections_.SetPort(port_);
  metrics_.AddGauge("sliceplan_http_connections", "Connections open on the HTTP port; each holds a thread.",
                    [this] { return static_cast<double>(connections_.open_count()); });
  metrics_.AddGauge("sliceplan_http_connections_max", "Connections that the HTTP port serves at a time.",
                    [] { return static_cast<double>(kThreadCount); });
  metrics_.AddGauge("sliceplan_http_connections_cut_total",
                    "Connections on the HTTP port that were closed since the start because they were slow.",
                    [this] { return static_cast<double>(connections_.cut_count()); });
  return absl::OkStatus();
}

HttpServer::~HttpServer() { Stop(); }

void HttpServer::BeginDrain() {
  draining_ = true;
  connections_.BeginDrain();
}

void HttpServer::Stop() {
  if (context_ == nullptr) return;
  connections_.Drain(absl::ZeroDuration());
  connections_.WakeListener();
  mg_stop(context_);
  context_ = nullptr;
}

void HttpServer::Serve(mg_connection* connection) {
  const HttpRequest request(connection);
  connections_.Identify(request.connection, request.info.remote_addr, request.info.remote_port);
  connections_.SetPhase(request.connection, HttpPhase::kReading);
  HttpReply reply = Answer(request);
  cors_.AddHeaders(request, reply);
  const bool keep_alive = !reply.must_close && !connections_.ShouldClose() &&
                          !absl::EqualsIgnoreCase(request.Header("connection"), "close") &&
                          absl::string_view(request.info.http_version) == "1.1";
  if (!keep_alive) mg_disable_connection_keep_alive(connection);
  const std::string bytes = Serialize(reply, request.method == "HEAD", keep_alive);
  connections_.SetPhase(request.connection, HttpPhase::kWriting);
  mg_write(connection, bytes.data(), bytes.size());
  connections_.SetPhase(request.connection, HttpPhase::kIdle);
}

HttpReply HttpServer::Answer(const HttpRequest& request) {
  const Method* const method = methods_.Find(request.path);
  // Find also takes names without their package; a URL has one spelling.
  if (method != nullptr && absl::StripPrefix(request.path, "/") == method->FullName()) {
    return AnswerRpc(request, *method);
  }
  return AnswerPage(request);
}

HttpReply HttpServer::AnswerPage(const HttpRequest& request) const {
  const bool known =
      request.path == "/metrics" || request.path == "/healthz" || request.path == "/livez" || request.path == "/readyz";
  HttpReply reply;
  if (!known) {
    reply = TextReply(404, "not found\n");
  } else if (!request.reads_only()) {
    reply = TextReply(405, "GET or HEAD\n");
    reply.headers.emplace_back("allow", "GET, HEAD");
  } else if (request.path == "/metrics") {
    reply = TextReply(200, metrics_.Text());
    reply.content_type = "text/plain; version=0.0.4; charset=utf-8";
  } else if (request.path == "/readyz" && draining_) {
    reply = TextReply(503, "draining\n");
  } else {
    reply = TextReply(200, "ok\n");
  }
  reply.must_close = !request.reads_only();
  if (log_.Wants(Severity::kDebug)) {
    LogLine line = log_.Line(Severity::kDebug, "page");
    line.Text("method", absl::StrCat(request.method, " ", Printable(request.path, kMaxLoggedPathBytes)))
        .Integer("status", reply.status)
        .Seconds("latency_s", request.watch.Elapsed())
        .Text("peer", request.peer);
    log_.Write(std::move(line));
  }
  return reply;
}

HttpReply HttpServer::AnswerRpc(const HttpRequest& request, const Method& method) {
  if (!answers_calls_) {
    HttpReply reply =
        TextReply(403, "calls come over gRPC with TLS; over plaintext they need --insecure_any_address\n");
    reply.must_close = true;
    return reply;
  }
  if (request.method == "OPTIONS" && cors_.on()) {
    HttpReply reply;
    reply.status = 204;
    return reply;
  }
  if (request.method != "POST" && request.method != "GET") {
    HttpReply reply = TextReply(405, "POST or GET\n");
    reply.headers.emplace_back("allow", "GET, POST");
    reply.must_close = true;
    return reply;
  }
  if (request.method == "POST" && !EncodingOf(request.Header("content-type")).has_value()) {
    HttpReply reply = TextReply(415, absl::StrCat("content-type must be ", kJsonType, " or ", kProtoType, "\n"));
    reply.headers.emplace_back("accept-post", absl::StrCat(kJsonType, ", ", kProtoType));
    reply.must_close = true;
    return reply;
  }
  const std::string full_name = method.FullName();
  metrics_.calls().Of(full_name).Started();
  std::string request_id;
  CallRecord record;
  google::rpc::Status status;
  HttpReply reply = CallMethod(request, method, &request_id, &status);
  record.method = full_name;
  record.code = static_cast<absl::StatusCode>(status.code());
  record.latency = request.watch.Elapsed();
  metrics_.calls().Of(full_name).Handled(record.code, record.latency);
  if (log_.Wants(SeverityOf(record.method, record.code))) {
    if (const auto timeout = ParseConnectTimeout(request.Header("connect-timeout-ms")); timeout.has_value()) {
      record.deadline = *timeout;
    }
    record.peer = request.peer;
    record.request_id = request_id;
    record.traceparent = request.Header("traceparent");
    record.error = status.message();
    WriteCallLine(log_, record);
  }
  return reply;
}

HttpReply HttpServer::CallMethod(const HttpRequest& request, const Method& method, std::string* request_id,
                                 google::rpc::Status* status) {
  *request_id = RequestIdFrom(request.Header(kRequestIdKey));
  HttpHeaders headers = request.headers;
  // One id for the call, also when the caller sent none or one that cannot be used.
  headers.insert(headers.begin(), {kRequestIdKey, *request_id});
  const auto exchange =
      std::make_shared<HttpExchange>(method, request.connection->shared_from_this(), std::move(headers));
  exchange->peer = request.peer;

  bool json = true;
  HttpReply reply;
  if (const Result result = ReadMessage(request, method, *exchange, &json); !result.ok()) {
    *status = result.status();
    reply = ErrorReply(*status);
    reply.must_close = request.method == "POST";
    reply.headers.emplace_back(kRequestIdKey, *request_id);
    return reply;
  }
  connections_.SetPhase(request.connection, HttpPhase::kAnswering);
  const absl::Time until = exchange->deadline == absl::InfiniteFuture()
                               ? request.start + default_deadline_
                               : std::min(exchange->deadline, request.start + max_deadline_);
  computing_.acquire();
  dispatcher_.Answer(method, std::make_unique<HttpCall>(exchange));
  computing_.release();
  if (!exchange->Wait(until)) {
    *status = DeadlineExceeded().status();
    reply = ErrorReply(*status);
    reply.headers.emplace_back(kRequestIdKey, *request_id);
    return reply;
  }
  *status = exchange->status;
  if (status->code() == 0 && exchange->response->ByteSizeLong() > max_message_bytes_) {
    *status = BareStatus(absl::StatusCode::kResourceExhausted,
                         absl::StrCat("Sent message larger than max (", exchange->response->ByteSizeLong(), " vs. ",
                                      max_message_bytes_, ")"));
  }
  if (status->code() != 0) {
    reply = ErrorReply(*status, exchange->pushback);
  } else if (json) {
    computing_.acquire();
    reply.body = PrintJson(*exchange->response);
    computing_.release();
    reply.content_type = kJsonType;
  } else {
    reply.body = exchange->response->SerializeAsString();
    reply.content_type = kProtoType;
  }
  for (auto& header : exchange->reply_headers) reply.headers.push_back(std::move(header));
  return reply;
}

Result HttpServer::ReadMessage(const HttpRequest& request, const Method& method, HttpExchange& exchange, bool* json) {
  const auto refuse = [](absl::StatusCode code, absl::string_view message) {
    return Result(BareStatus(code, message));
  };
  const absl::string_view version = request.Header("connect-protocol-version");
  if (!version.empty() && version != "1") {
    return refuse(absl::StatusCode::kInvalidArgument, "connect-protocol-version must be 1");
  }
  if (const absl::string_view text = request.Header("connect-timeout-ms"); !text.empty()) {
    const std::optional<absl::Duration> timeout = ParseConnectTimeout(text);
    if (!timeout.has_value()) {
      return refuse(absl::StatusCode::kInvalidArgument, "connect-timeout-ms must be a whole number of 1 to 10 digits");
    }
    exchange.deadline = request.start + *timeout;
  }
  std::string body;
  Encoding encoding = Encoding::kJson;
  const absl::Cleanup release = [this, &body] { bodies_.Release(body); };
  if (request.method == "GET") {
    GetRequest get;
    GetRefusal refusal;
    const char* const query = request.info.query_string;
    if (!ParseGetQuery(query == nullptr ? "" : query, &get, &refusal)) return refuse(refusal.code, refusal.message);
    encoding = get.encoding;
    body = std::move(get.message);
    bodies_.Hold(body);
  } else {
    const absl::string_view compression = request.Header("content-encoding");
    if (!compression.empty() && !absl::EqualsIgnoreCase(compression, "identity")) {
      return refuse(absl::StatusCode::kUnimplemented,
                    absl::StrCat("content-encoding ", Quoted(compression), " is not supported; only identity is"));
    }
    encoding = *EncodingOf(request.Header("content-type"));
    if (Result result = bodies_.Read(request, &body); !result.ok()) return result;
  }
  *json = encoding == Encoding::kJson;
  computing_.acquire();
  const absl::Cleanup done = [this] { computing_.release(); };
  if (*json) return ParseJson(body, exchange.request);
  return ParseBytes(method, body, exchange.request);
}

}  // namespace sliceplan::rpc
