#include "server/rpc/token_file.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace sliceplan::rpc {
namespace {

constexpr size_t kMaxNameBytes = 64;
constexpr size_t kMaxPatterns = 64;
// Above what a server answers.
constexpr double kMaxRate = 1e6;
constexpr size_t kMaxProblems = 10;

bool IsName(absl::string_view name) {
  return name.size() <= kMaxNameBytes && std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
         });
}

bool IsPattern(absl::string_view pattern) {
  return !pattern.empty() && std::all_of(pattern.begin(), pattern.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '/' || c == '.' || c == '*' || c == '_';
  });
}

bool ParseRate(absl::string_view text, double least, double* rate) {
  return absl::SimpleAtod(text, rate) && std::isfinite(*rate) && *rate >= least && *rate > 0 && *rate <= kMaxRate;
}

// What is wrong with the line; empty: nothing.
std::string ParseLine(const std::vector<absl::string_view>& fields, TokenEntry& entry) {
  if (!IsName(fields[0])) return "the name is not 1 to 64 letters, digits, '-', '_' and '.'";
  entry.name = std::string(fields[0]);
  const auto digest = fields.size() < 2 ? std::nullopt : Sha256FromHex(fields[1]);
  if (!digest.has_value()) return "the second field is no SHA-256 in 64 hexadecimal digits";
  entry.digest = *digest;
  bool has_burst = false;
  for (size_t i = 2; i < fields.size(); ++i) {
    absl::string_view value = fields[i];
    if (absl::ConsumePrefix(&value, "methods=")) {
      entry.methods = absl::StrSplit(value, ',');
      if (entry.methods.size() > kMaxPatterns || !std::all_of(entry.methods.begin(), entry.methods.end(), &IsPattern)) {
        return "methods= is no list of Service/Method with '*', at most 64";
      }
    } else if (absl::ConsumePrefix(&value, "rate=")) {
      if (!ParseRate(value, 0, &entry.rate)) return "rate= is no number of calls a second above 0, at most 1000000";
    } else if (absl::ConsumePrefix(&value, "burst=")) {
      if (!ParseRate(value, 1, &entry.burst)) return "burst= is no number of calls from 1 to 1000000";
      has_burst = true;
    } else {
      return absl::StrCat("field ", i + 1, " is none of methods=, rate=, burst=");
    }
  }
  if (has_burst && entry.rate == 0) return "burst= without rate=";
  if (!has_burst) entry.burst = std::max(1.0, entry.rate);
  return "";
}

}  // namespace

absl::StatusOr<std::vector<TokenEntry>> ParseTokens(absl::string_view text) {
  std::vector<TokenEntry> entries;
  std::vector<std::string> problems;
  const auto problem = [&](int line, absl::string_view what) {
    if (problems.size() < kMaxProblems) problems.push_back(absl::StrCat("line ", line, ": ", what));
  };
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line[0] == '#') continue;
    const std::vector<absl::string_view> fields = absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    TokenEntry entry;
    if (const std::string wrong = ParseLine(fields, entry); !wrong.empty()) {
      problem(number, wrong);
      continue;
    }
    const bool twice = std::any_of(entries.begin(), entries.end(),
                                   [&](const TokenEntry& other) { return other.digest == entry.digest; });
    if (twice) {
      problem(number, "the same token stands above");
    } else {
      entries.push_back(std::move(entry));
    }
  }
  if (!problems.empty()) return absl::InvalidArgumentError(absl::StrJoin(problems, "; "));
  // An empty file is more likely a mistake than a wish to answer nobody.
  if (entries.empty()) return absl::InvalidArgumentError("there is no token");
  return entries;
}

bool MatchesGlob(absl::string_view pattern, absl::string_view text) {
  size_t p = 0, t = 0;
  // Where the last '*' stands, and where the text that it takes ends so far.
  size_t star = absl::string_view::npos, taken = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != absl::string_view::npos) {
      p = star + 1;
      t = ++taken;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace sliceplan::rpc
