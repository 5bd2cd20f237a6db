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
// How a body is read, so that one that never comes costs nothing.
constexpr size_t kReadBytes = 64 << 10;
// A body of up to so many times the limit is read and dropped before it is refused.
constexpr size_t kDroppedPerMessage = 4;
// Of a path in the log.
constexpr size_t kMaxLoggedPathBytes = 128;

constexpr char kAllowedRequestHeaders[] =
    "authorization, connect-protocol-version, connect-timeout-ms, content-type, traceparent, x-request-id";
constexpr char kExposedHeaders[] = "grpc-retry-pushback-ms, retry-after, x-request-id";
constexpr char kPreflightSeconds[] = "7200";

google::rpc::Status StatusOf(absl::StatusCode code, std::string message) {
  google::rpc::Status status;
  status.set_code(static_cast<int>(code));
  status.set_message(Printable(message, kMaxMessageBytes));
  return status;
}

// "ipv4:127.0.0.1:40000", as gRPC writes it.
std::string PeerOf(const mg_request_info& info) {
  const absl::string_view address = info.remote_addr;
  return absl::StrContains(address, ":") ? absl::StrCat("ipv6:[", address, "]:", info.remote_port)
                                         : absl::StrCat("ipv4:", address, ":", info.remote_port);
}

}  // namespace

// What civetweb read before it calls us.
struct HttpServer::Request {
  const mg_request_info& info;
  HttpConnection* connection = nullptr;
  absl::string_view method;  // "POST"
  absl::string_view path;
  HttpHeaders headers;
  absl::Time start;
  Stopwatch watch;

  absl::string_view Header(absl::string_view name) const {
    for (const auto& [key, value] : headers) {
      if (key == name) return value;
    }
    return "";
  }
  bool reads_only() const { return method == "GET" || method == "HEAD"; }
};

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
      HttpReply reply = ErrorReply(StatusOf(absl::StatusCode::kInvalidArgument, text));
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
      max_bodies_bytes_(static_cast<int64_t>(options.memory_quota_bytes)),
      default_deadline_(options.default_deadline),
      max_deadline_(options.max_deadline),
      cors_origins_(options.http_cors_origins),
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
  const mg_request_info& info = *mg_get_request_info(connection);
  Request request{
      info, static_cast<HttpConnection*>(info.conn_data), info.request_method, info.local_uri, {}, absl::Now(), {}};
  for (int i = 0; i < info.num_headers; ++i) {
    request.headers.emplace_back(absl::AsciiStrToLower(info.http_headers[i].name), info.http_headers[i].value);
  }
  connections_.Identify(request.connection, info.remote_addr, info.remote_port);
  connections_.SetPhase(request.connection, HttpPhase::kReading);
  HttpReply reply = Answer(connection, request);
  AddCorsHeaders(request, reply);
  const bool keep_alive = !reply.must_close && !connections_.ShouldClose() &&
                          !absl::EqualsIgnoreCase(request.Header("connection"), "close") &&
                          absl::string_view(info.http_version) == "1.1";
  if (!keep_alive) mg_disable_connection_keep_alive(connection);
  const std::string bytes = Serialize(reply, request.method == "HEAD", keep_alive);
  connections_.SetPhase(request.connection, HttpPhase::kWriting);
  mg_write(connection, bytes.data(), bytes.size());
  connections_.SetPhase(request.connection, HttpPhase::kIdle);
}

HttpReply HttpServer::Answer(mg_connection* connection, const Request& request) {
  const Method* const method = methods_.Find(request.path);
  // Find also takes names without their package; a URL has one spelling.
  if (method != nullptr && absl::StripPrefix(request.path, "/") == method->FullName()) {
    return AnswerRpc(connection, request, *method);
  }
  return AnswerPage(request);
}

HttpReply HttpServer::AnswerPage(const Request& request) const {
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
        .Text("peer", PeerOf(request.info));
    log_.Write(std::move(line));
  }
  return reply;
}

HttpReply HttpServer::AnswerRpc(mg_connection* connection, const Request& request, const Method& method) {
  if (!answers_calls_) {
    HttpReply reply =
        TextReply(403, "calls come over gRPC with TLS; over plaintext they need --insecure_any_address\n");
    reply.must_close = true;
    return reply;
  }
  if (request.method == "OPTIONS" && !cors_origins_.empty()) {
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
  HttpReply reply = CallMethod(connection, request, method, &request_id, &status);
  record.method = full_name;
  record.code = static_cast<absl::StatusCode>(status.code());
  record.latency = request.watch.Elapsed();
  metrics_.calls().Of(full_name).Handled(record.code, record.latency);
  if (log_.Wants(SeverityOf(record.method, record.code))) {
    if (const auto timeout = ParseConnectTimeout(request.Header("connect-timeout-ms")); timeout.has_value()) {
      record.deadline = *timeout;
    }
    const std::string peer = PeerOf(request.info);
    record.peer = peer;
    record.request_id = request_id;
    record.traceparent = request.Header("traceparent");
    record.error = status.message();
    WriteCallLine(log_, record);
  }
  return reply;
}

HttpReply HttpServer::CallMethod(mg_connection* connection, const Request& request, const Method& method,
                                 std::string* request_id, google::rpc::Status* status) {
  *request_id = RequestIdFrom(request.Header(kRequestIdKey));
  HttpHeaders headers = request.headers;
  // One id for the call, also when the caller sent none or one that cannot be used.
  headers.insert(headers.begin(), {kRequestIdKey, *request_id});
  const auto exchange =
      std::make_shared<HttpExchange>(method, request.connection->shared_from_this(), std::move(headers));
  exchange->peer = PeerOf(request.info);

  bool json = true;
  HttpReply reply;
  if (const Result result = ReadMessage(connection, request, method, *exchange, &json); !result.ok()) {
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
    *status = StatusOf(absl::StatusCode::kResourceExhausted,
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

Result HttpServer::ReadMessage(mg_connection* connection, const Request& request, const Method& method,
                               HttpExchange& exchange, bool* json) {
  const auto refuse = [](absl::StatusCode code, std::string message) {
    return Result(StatusOf(code, std::move(message)));
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
  const absl::Cleanup release = [this, &body] { bodies_bytes_ -= static_cast<int64_t>(body.size()); };
  if (request.method == "GET") {
    GetRequest get;
    GetRefusal refusal;
    const char* const query = request.info.query_string;
    if (!ParseGetQuery(query == nullptr ? "" : query, &get, &refusal)) return refuse(refusal.code, refusal.message);
    encoding = get.encoding;
    body = std::move(get.message);
    bodies_bytes_ += static_cast<int64_t>(body.size());
  } else {
    const absl::string_view compression = request.Header("content-encoding");
    if (!compression.empty() && !absl::EqualsIgnoreCase(compression, "identity")) {
      return refuse(absl::StatusCode::kUnimplemented,
                    absl::StrCat("content-encoding ", Quoted(compression), " is not supported; only identity is"));
    }
    encoding = *EncodingOf(request.Header("content-type"));
    if (Result result = ReadBody(connection, request, &body); !result.ok()) return result;
  }
  *json = encoding == Encoding::kJson;
  computing_.acquire();
  const absl::Cleanup done = [this] { computing_.release(); };
  if (*json) return ParseJson(body, exchange.request);
  return ParseBytes(method, body, exchange.request);
}

Result HttpServer::ReadBody(mg_connection* connection, const Request& request, std::string* body) {
  const auto too_large = [&](size_t bytes) {
    return Result(
        StatusOf(absl::StatusCode::kResourceExhausted,
                 absl::StrCat("Received message larger than max (", bytes, " vs. ", max_message_bytes_, ")")));
  };
  const int64_t length = request.info.content_length;
  if (length > static_cast<int64_t>(max_message_bytes_)) {
    // Most clients read no reply before they have sent all; what is far too large is cut off.
    std::string dropped(kReadBytes, '\0');
    const size_t most = kDroppedPerMessage * max_message_bytes_;
    for (size_t all = 0; static_cast<size_t>(length) <= most && all < static_cast<size_t>(length);) {
      const int count = mg_read(connection, dropped.data(), dropped.size());
      if (count <= 0) break;
      all += static_cast<size_t>(count);
    }
    return too_large(static_cast<size_t>(length));
  }
  if (absl::EqualsIgnoreCase(request.Header("expect"), "100-continue")) {
    constexpr absl::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    mg_write(connection, kContinue.data(), kContinue.size());
  }
  while (true) {
    const size_t old_size = body->size();
    const size_t wanted = length >= 0 ? std::min(static_cast<size_t>(length) - old_size, kReadBytes) : kReadBytes;
    if (wanted == 0) return Result();
    body->resize(old_size + wanted);
    const int count = mg_read(connection, body->data() + old_size, wanted);
    body->resize(old_size + static_cast<size_t>(std::max(count, 0)));
    const int64_t all = bodies_bytes_ += std::max(count, 0);
    if (body->size() > max_message_bytes_) return too_large(body->size());
    if (all > max_bodies_bytes_) {
      return Result(StatusOf(absl::StatusCode::kResourceExhausted, "too many bytes of requests at a time"));
    }
    if (count <= 0 && length < 0 && count == 0) return Result();  // the last chunk
    if (count <= 0) {
      return Result(StatusOf(absl::StatusCode::kCancelled, "the caller left before the request was read"));
    }
  }
}

bool HttpServer::IsAllowedOrigin(absl::string_view origin) const {
  return std::any_of(cors_origins_.begin(), cors_origins_.end(),
                     [&](const std::string& allowed) { return allowed == "*" || allowed == origin; });
}

void HttpServer::AddCorsHeaders(const Request& request, HttpReply& reply) const {
  if (cors_origins_.empty()) return;
  reply.headers.emplace_back("vary", "origin");
  const absl::string_view origin = request.Header("origin");
  if (origin.empty() || !IsAllowedOrigin(origin)) return;
  reply.headers.emplace_back("access-control-allow-origin", std::string(origin));
  reply.headers.emplace_back("access-control-expose-headers", kExposedHeaders);
  if (request.method != "OPTIONS") return;
  reply.headers.emplace_back("access-control-allow-methods", "GET, POST");
  reply.headers.emplace_back("access-control-allow-headers", kAllowedRequestHeaders);
  reply.headers.emplace_back("access-control-max-age", kPreflightSeconds);
}

}  // namespace sliceplan::rpc
