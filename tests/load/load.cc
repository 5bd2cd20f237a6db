#include "tests/load/load.h"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/util/json_util.h"

namespace sliceplan::load {
namespace {

using google::protobuf::Message;

class Run {
 public:
  Run(const std::vector<std::shared_ptr<Connection>>& connections, const LoadOptions& options, const Message& request,
      const Message& response_type, const std::function<void()>& first_ok)
      : connections_(connections),
        options_(options),
        request_(request),
        response_type_(response_type),
        first_ok_(first_ok) {}

  LoadResult Finish() {
    const absl::Time begin = absl::Now();
    end_ = begin + options_.length;
    if (options_.rate > 0) {
      SendOnTime(begin);
    } else {
      for (int i = 0; i < options_.in_flight; ++i) Send();
    }
    std::unique_lock<std::mutex> lock(mutex_);
    all_ended_.wait(lock, [this] { return in_flight_ == 0; });
    result_.seconds = absl::ToDoubleSeconds(absl::Now() - begin);
    std::sort(result_.ok_milliseconds.begin(), result_.ok_milliseconds.end());
    return std::move(result_);
  }

 private:
  void SendOnTime(absl::Time begin) {
    const absl::Duration apart = absl::Seconds(1) / options_.rate;
    for (int64_t i = 0;; ++i) {
      const absl::Time due = begin + i * apart;
      if (due >= end_) return;
      if (const absl::Duration wait = due - absl::Now(); wait > absl::ZeroDuration()) absl::SleepFor(wait);
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (in_flight_ >= options_.in_flight) {
          ++result_.unsent_count;
          continue;
        }
      }
      Send();
    }
  }

  void Send() {
    size_t turn = 0;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ++in_flight_;
      turn = turn_++;
    }
    const std::shared_ptr<Message> response(response_type_.New());
    const absl::Time sent = absl::Now();
    connections_[turn % connections_.size()]->Start(
        options_.method, request_, options_.call, response.get(),
        [this, response, sent](const absl::Status& status) { Ended(status, absl::Now() - sent); });
  }

  void Ended(const absl::Status& status, absl::Duration took) {
    bool first = false;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ++result_.call_count;
      if (status.ok()) {
        first = result_.ok_milliseconds.empty();
        result_.ok_milliseconds.push_back(static_cast<float>(absl::ToDoubleMilliseconds(took)));
      } else {
        ++result_.failure_counts[absl::StatusCodeToString(status.code())];
        if (result_.first_failure.empty()) result_.first_failure = std::string(status.message());
      }
    }
    if (first) first_ok_();
    if (options_.rate <= 0 && absl::Now() < end_) Send();
    const std::lock_guard<std::mutex> lock(mutex_);
    if (--in_flight_ == 0) all_ended_.notify_all();
  }

  const std::vector<std::shared_ptr<Connection>>& connections_;
  const LoadOptions& options_;
  const Message& request_;
  const Message& response_type_;
  const std::function<void()>& first_ok_;
  absl::Time end_;
  std::mutex mutex_;
  std::condition_variable all_ended_;
  int in_flight_ = 0;
  size_t turn_ = 0;
  LoadResult result_;
};

}  // namespace

int64_t LoadResult::failed_count() const { return call_count - static_cast<int64_t>(ok_milliseconds.size()); }

double LoadResult::OkMilliseconds(double quantile) const {
  if (ok_milliseconds.empty()) return 0;
  const double rank = std::ceil(quantile * static_cast<double>(ok_milliseconds.size()));
  return ok_milliseconds[static_cast<size_t>(std::max(rank, 1.0)) - 1];
}

absl::StatusOr<LoadResult> RunLoad(const std::vector<std::shared_ptr<Connection>>& connections,
                                   const LoadOptions& options, const std::function<void()>& first_ok) {
  const google::protobuf::MethodDescriptor* const method =
      google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(
          absl::StrReplaceAll(options.method, {{"/", "."}}));
  if (method == nullptr) return absl::NotFoundError(absl::StrCat("no such method: ", options.method));
  google::protobuf::MessageFactory* const factory = google::protobuf::MessageFactory::generated_factory();
  const std::unique_ptr<Message> request(factory->GetPrototype(method->input_type())->New());
  const auto parsed = google::protobuf::util::JsonStringToMessage(options.request_json, request.get());
  if (!parsed.ok()) return absl::InvalidArgumentError(absl::StrCat("the request: ", parsed.ToString()));
  return Run(connections, options, *request, *factory->GetPrototype(method->output_type()), first_ok).Finish();
}

std::string ToJson(const LoadResult& result) {
  std::string failures;
  for (const auto& [code, count] : result.failure_counts) {
    absl::StrAppend(&failures, failures.empty() ? "" : ", ", "\"", code, "\": ", count);
  }
  std::string message = result.first_failure;
  std::replace_if(
      message.begin(), message.end(), [](char c) { return c < ' ' || c > '~' || c == '"' || c == '\\'; }, ' ');
  return absl::StrFormat(
      R"({"calls": %d, "ok": %d, "failures": {%s}, "first_failure": "%s", "unsent": %d, "seconds": %.3f, )"
      R"("p50_ms": %.3f, "p90_ms": %.3f, "p99_ms": %.3f, "p999_ms": %.3f, "max_ms": %.3f})",
      result.call_count, result.ok_milliseconds.size(), failures, message, result.unsent_count, result.seconds,
      result.OkMilliseconds(0.5), result.OkMilliseconds(0.9), result.OkMilliseconds(0.99), result.OkMilliseconds(0.999),
      result.OkMilliseconds(1));
}

}  // namespace sliceplan::load
