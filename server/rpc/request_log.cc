#include "server/rpc/request_log.h"

#include <utility>

#include "absl/random/random.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/rpc/reply_digest.h"
#include "server/rpc/sha256.h"
#include "server/rpc/version.h"

namespace sliceplan::rpc {
namespace {

// Beyond it entries are dropped: a few of the largest requests, or ten thousand usual ones.
constexpr size_t kMaxWaitingBytes = size_t{32} << 20;

// The text of a string field that every reply has; empty when this one has not.
std::string FieldOf(const google::protobuf::Message& reply, const char* name) {
  const auto* const field = reply.GetDescriptor()->FindFieldByName(name);
  if (field == nullptr || field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_STRING) return "";
  return reply.GetReflection()->GetString(reply, field);
}

}  // namespace

absl::StatusOr<std::unique_ptr<RequestLog>> RequestLog::Open(const RequestLogOptions& options, const JsonLog* log) {
  if (!(options.ratio >= 0 && options.ratio <= 1)) {
    return absl::InvalidArgumentError("--request_log_ratio is not 0 to 1");
  }
  if (options.max_bytes < 1 || options.file_count < 1) {
    return absl::InvalidArgumentError("--request_log_max_bytes and --request_log_files must be positive");
  }
  std::unique_ptr<RequestLog> request_log(new RequestLog(options, log));
  if (absl::Status status = request_log->file_.Open(); !status.ok()) return status;
  request_log->thread_ = std::thread([raw = request_log.get()] { raw->RunThread(); });
  return request_log;
}

RequestLog::RequestLog(const RequestLogOptions& options, const JsonLog* log)
    : ratio_(options.ratio), log_(*log), file_(options.path, options.max_bytes, options.file_count) {}

RequestLog::~RequestLog() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void RequestLog::Add(const Method& method, const google::protobuf::Message& request, const Result& result,
                     const google::protobuf::Message& response, const CallContext& call, absl::Duration latency) {
  if (ratio_ < 1) {
    thread_local absl::BitGen random;
    if (!absl::Bernoulli(random, ratio_)) return;
  }
  Entry entry;
  entry.time = absl::Now();
  entry.method = method.FullName();
  entry.request_id = call.request_id;
  entry.client = call.client;
  entry.code = result.code();
  entry.truncated = call.search_truncated;
  entry.latency = latency;
  request.SerializeToString(&entry.request);
  if (result.ok()) {
    entry.engine_version = FieldOf(response, "engine_version");
    entry.catalog_version = FieldOf(response, "catalog_version");
    entry.reply = DeterministicBytes(response);
  } else {
    entry.engine_version = EngineVersion();
    entry.reply = DeterministicBytes(result.status());
  }
  {
    const std::lock_guard lock(mutex_);
    if (waiting_bytes_ + entry.bytes() > kMaxWaitingBytes) {
      ++counts_.dropped;
      return;
    }
    waiting_bytes_ += entry.bytes();
    waiting_.push_back(std::move(entry));
  }
  wake_.notify_one();
}

void RequestLog::Flush() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [this] { return waiting_.empty() && !writing_; });
}

RequestLog::Counts RequestLog::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

void RequestLog::RunThread() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const Entry entry = std::move(waiting_.front());
    waiting_.pop_front();
    waiting_bytes_ -= entry.bytes();
    writing_ = true;
    lock.unlock();
    WriteOut(entry);
    lock.lock();
    writing_ = false;
    ++(failing_ ? counts_.failed : counts_.written);
    if (waiting_.empty()) idle_.notify_all();
  }
}

void RequestLog::WriteOut(const Entry& entry) {
  LogLine line(entry.time, Severity::kInfo, "request");
  line.Text("method", entry.method).Text("request_id", entry.request_id);
  if (!entry.client.empty()) line.Text("client", entry.client);
  line.Text("engine_version", entry.engine_version);
  if (!entry.catalog_version.empty()) line.Text("catalog_version", entry.catalog_version);
  line.Text("request", absl::Base64Escape(entry.request))
      .Text("reply_sha256", ToHex(Sha256(entry.reply)))
      .Text("code", absl::StatusCodeToString(entry.code))
      .Seconds("latency_s", entry.latency);
  if (entry.truncated) line.Integer("truncated", 1);
  const absl::Status status = file_.Append(std::move(line).Finish());
  if (status.ok() == !failing_) return;
  failing_ = !status.ok();
  LogLine report =
      log_.Line(failing_ ? Severity::kError : Severity::kInfo,
                failing_ ? "the request log cannot be written; calls go on" : "the request log works again");
  if (failing_) report.Text("cause", status.message());
  log_.Write(std::move(report));
}

}  // namespace sliceplan::rpc
