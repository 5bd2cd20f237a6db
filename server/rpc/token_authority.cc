#include "server/rpc/token_authority.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/rpc/errors.h"

namespace sliceplan::rpc {
namespace {

constexpr absl::string_view kScheme = "bearer ";
// Of the methods of the contract, which token files leave out.
constexpr absl::string_view kPackagePrefix = "sliceplan.v1.";
// A file of ten thousand tokens.
constexpr size_t kMaxFileBytes = 4 << 20;

absl::StatusOr<std::vector<TokenEntry>> ReadTokens(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxFileBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (file.bad() || (!file && !file.eof())) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  if (text.size() > kMaxFileBytes) return absl::InvalidArgumentError(absl::StrCat(path, ": above 4 MiB"));
  absl::StatusOr<std::vector<TokenEntry>> entries = ParseTokens(text);
  if (!entries.ok()) return absl::InvalidArgumentError(absl::StrCat(path, ": ", entries.status().message()));
  return entries;
}

bool MayCall(const TokenEntry& entry, absl::string_view method) {
  if (entry.methods.empty()) return true;
  const absl::string_view short_name = absl::StripPrefix(method, kPackagePrefix);
  return std::any_of(entry.methods.begin(), entry.methods.end(), [&](const std::string& pattern) {
    return MatchesGlob(pattern, short_name) || MatchesGlob(pattern, method);
  });
}

}  // namespace

absl::StatusOr<std::unique_ptr<TokenAuthority>> TokenAuthority::Open(std::string path,
                                                                     std::function<absl::Time()> now) {
  std::unique_ptr<TokenAuthority> authority(new TokenAuthority(std::move(path), std::move(now)));
  if (absl::Status status = authority->Reload(); !status.ok()) return status;
  return authority;
}

absl::Status TokenAuthority::Reload() {
  absl::StatusOr<std::vector<TokenEntry>> entries = ReadTokens(path_);
  if (!entries.ok()) return entries.status();
  const absl::Time now = now_();
  std::vector<Token> tokens;
  const std::lock_guard lock(mutex_);
  for (TokenEntry& entry : *entries) {
    Token token{std::move(entry), 0, now};
    token.calls = token.entry.burst;
    for (const Token& old : tokens_) {
      if (old.entry.digest != token.entry.digest || old.entry.rate == 0) continue;
      token.calls = std::min(token.calls, old.calls);
      token.as_of = old.as_of;
    }
    tokens.push_back(std::move(token));
  }
  tokens_ = std::move(tokens);
  return absl::OkStatus();
}

size_t TokenAuthority::token_count() const {
  const std::lock_guard lock(mutex_);
  return tokens_.size();
}

TokenAuthority::Token* TokenAuthority::FindLocked(absl::string_view header) {
  if (!absl::StartsWithIgnoreCase(header, kScheme)) return nullptr;
  const Sha256Digest digest = Sha256(absl::StripAsciiWhitespace(header.substr(kScheme.size())));
  // Looks at all of them, so that the time does not tell which one it was.
  Token* found = nullptr;
  for (Token& token : tokens_) {
    if (EqualInConstantTime(token.entry.digest, digest)) found = &token;
  }
  return found;
}

absl::Duration TokenAuthority::TakeLocked(Token& token) const {
  if (token.entry.rate == 0) return absl::ZeroDuration();
  const absl::Time now = now_();
  // A clock that was set back gives nothing and takes nothing.
  const double seconds = std::max(0.0, absl::ToDoubleSeconds(now - token.as_of));
  token.calls = std::min(token.entry.burst, token.calls + seconds * token.entry.rate);
  token.as_of = now;
  if (token.calls < 1) return absl::Seconds((1 - token.calls) / token.entry.rate);
  token.calls -= 1;
  return absl::ZeroDuration();
}

Authorization TokenAuthority::Authorize(absl::string_view header, absl::string_view method) {
  method = absl::StripPrefix(method, "/");
  const std::lock_guard lock(mutex_);
  Token* const token = FindLocked(header);
  if (token == nullptr) return {Unauthenticated(header.empty()), "", std::nullopt};
  Authorization answer;
  answer.client = token->entry.name;
  if (!MayCall(token->entry, method)) {
    answer.result = PermissionDenied(token->entry.name, method);
  } else if (const absl::Duration wait = TakeLocked(*token); wait > absl::ZeroDuration()) {
    answer.retry_delay = wait;
    answer.result = RateLimited(token->entry.name, wait);
  }
  return answer;
}

}  // namespace sliceplan::rpc
