#include "client/cli/replay.h"

#include <limits>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/call.h"
#include "client/cli/text.h"
#include "nlohmann/json.hpp"
#include "server/rpc/reply_digest.h"
#include "server/rpc/sha256.h"

namespace sliceplan::cli {
namespace {

// One line of the log.
struct Logged {
  std::string method, request_id, engine_version, catalog_version, request, digest, code;
  bool truncated = false;
};

// nullopt for what is no line of a request log.
std::optional<Logged> ReadLine(const std::string& line) {
  const nlohmann::json object = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return std::nullopt;
  const auto text = [&](const char* name) {
    const auto found = object.find(name);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  Logged logged{text("method"),       text("request_id"), text("engine_version"),      text("catalog_version"), "",
                text("reply_sha256"), text("code"),       object.contains("truncated")};
  if (logged.method.empty() || logged.digest.empty() || !absl::Base64Unescape(text("request"), &logged.request)) {
    return std::nullopt;
  }
  return logged;
}

bool IsRepeatable(const std::string& code_name) {
  for (int code = 0; code <= static_cast<int>(absl::StatusCode::kUnauthenticated); ++code) {
    const auto known = static_cast<absl::StatusCode>(code);
    if (absl::StatusCodeToString(known) == code_name) return rpc::IsRepeatable(known);
  }
  return false;
}

std::string FieldOf(const google::protobuf::Message& reply, const char* name) {
  const auto* const field = reply.GetDescriptor()->FindFieldByName(name);
  return field == nullptr ? std::string() : reply.GetReflection()->GetString(reply, field);
}

// What is different from the log; empty: nothing.
std::string DifferenceOf(const Logged& logged, const google::rpc::Status& status,
                         const google::protobuf::Message& reply) {
  const std::string code = absl::StatusCodeToString(static_cast<absl::StatusCode>(status.code()));
  if (code != logged.code) return absl::StrCat(logged.code, ", now ", code);
  const std::string bytes = status.code() == 0 ? rpc::DeterministicBytes(reply) : rpc::DeterministicBytes(status);
  if (rpc::ToHex(rpc::Sha256(bytes)) == logged.digest) return "";
  std::vector<std::string> what = {"other reply"};
  if (status.code() == 0) {
    const std::pair<const char*, const std::string*> versions[] = {{"engine", &logged.engine_version},
                                                                   {"catalog", &logged.catalog_version}};
    for (const auto& [name, before] : versions) {
      const std::string now = FieldOf(reply, absl::StrCat(name, "_version").c_str());
      if (now != *before) what.push_back(absl::StrCat(name, " ", *before, ", now ", now));
    }
  }
  return absl::StrJoin(what, "; ");
}

// Bytes from here to the present end; the largest number if the stream has no places (a pipe).
int64_t BytesLeft(std::istream& log) {
  constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();
  const std::istream::pos_type here = log.tellg();
  if (here == std::istream::pos_type(-1) || !log.seekg(0, std::ios::end)) {
    log.clear();
    return kUnknown;
  }
  const std::istream::pos_type end = log.tellg();
  log.seekg(here);
  return static_cast<int64_t>(end - here);
}

}  // namespace

ReplayCounts ReplayResult::Total() const {
  ReplayCounts total;
  for (const auto& [method, counts] : methods) {
    total.equal += counts.equal;
    total.different += counts.different;
    total.skipped += counts.skipped;
  }
  return total;
}

ReplayResult Replay(std::istream& log, Backend& backend) {
  ReplayResult result;
  int64_t number = 0;
  int64_t bytes_left = BytesLeft(log);
  for (std::string line; bytes_left > 0 && std::getline(log, line);) {
    ++number;
    bytes_left -= static_cast<int64_t>(line.size()) + 1;
    if (line.empty()) continue;
    const std::optional<Logged> logged = ReadLine(line);
    absl::StatusOr<NamedMethod> method =
        logged.has_value() ? FindMethod(logged->method) : absl::InvalidArgumentError("no line of a request log");
    if (!method.ok() || !method->request->ParseFromString(logged->request)) {
      ++result.unreadable_lines;
      continue;
    }
    ReplayCounts& counts = result.methods[method->full_name];
    if (logged->truncated || !IsRepeatable(logged->code)) {
      ++counts.skipped;
      continue;
    }
    const google::rpc::Status status = backend.Call(method->full_name, *method->request, method->response.get());
    std::string what = DifferenceOf(*logged, status, *method->response);
    if (what.empty()) {
      ++counts.equal;
      continue;
    }
    ++counts.different;
    if (result.differences.size() < kMaxListedDifferences) {
      result.differences.push_back({number, method->full_name, logged->request_id, std::move(what)});
    }
  }
  return result;
}

void PrintReplay(const ReplayResult& result, Report& report) {
  const ReplayCounts total = result.Total();
  const bool same = total.different == 0;
  report.Headline(same ? "EQUAL" : "DIFFERENT", same ? Tone::kGood : Tone::kBad,
                  absl::StrCat(Plural(total.equal + total.different, "call"), " replayed, ", total.different,
                               " with another reply"));
  std::vector<std::vector<std::string>> rows;
  for (const auto& [method, counts] : result.methods) {
    rows.push_back({method, Grouped(counts.equal), Grouped(counts.different), Grouped(counts.skipped)});
  }
  if (!rows.empty()) {
    report.EmptyLine();
    report.Table({{"method"}, {"equal", true}, {"different", true}, {"skipped", true}}, rows);
  }
  if (!result.differences.empty()) {
    report.Section("Differences");
    rows.clear();
    for (const ReplayDifference& difference : result.differences) {
      rows.push_back({Grouped(difference.line), difference.method, difference.request_id, difference.what});
    }
    report.Table({{"line", true}, {"method"}, {"request id"}, {"what"}}, rows);
    if (static_cast<size_t>(total.different) > result.differences.size()) {
      report.Sentence(absl::StrCat("The first ", result.differences.size(), " of ", total.different, "."));
    }
  }
  if (result.unreadable_lines > 0) {
    report.Sentence(absl::StrCat(Plural(result.unreadable_lines, "line"), " could not be read."), Tone::kBad);
  }
}

}  // namespace sliceplan::cli
