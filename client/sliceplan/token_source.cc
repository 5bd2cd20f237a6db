#include "client/sliceplan/token_source.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace sliceplan {
namespace {

// Metadata of a call share 8 KiB.
constexpr size_t kMaxTokenBytes = 4096;
constexpr absl::Duration kLookInterval = absl::Seconds(1);

}  // namespace

absl::Status CheckToken(const std::string& token) {
  const bool sendable = !token.empty() && token.size() <= kMaxTokenBytes &&
                        std::all_of(token.begin(), token.end(),
                                    [](char c) { return absl::ascii_isgraph(static_cast<unsigned char>(c)); });
  return sendable ? absl::OkStatus()
                  : absl::InvalidArgumentError("the token is not 1 to 4096 visible ASCII characters");
}

absl::StatusOr<std::unique_ptr<TokenSource>> TokenSource::Make(const std::string& token, const std::string& file) {
  auto source = std::make_unique<TokenSource>();
  source->token_ = token;
  source->file_ = file;
  absl::Status status;
  if (!file.empty()) {
    status = token.empty() ? source->Read() : absl::InvalidArgumentError("both a token and a file with one are given");
  } else if (!token.empty()) {
    status = CheckToken(token);
  }
  if (!status.ok()) return status;
  return source;
}

absl::Status TokenSource::Read() {
  looked_ = absl::Now();
  std::ifstream file(file_, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file) return absl::NotFoundError(absl::StrCat("cannot read ", file_));
  absl::StripAsciiWhitespace(&text);
  if (absl::Status status = CheckToken(text); !status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(file_, ": ", status.message()));
  }
  token_ = std::move(text);
  return absl::OkStatus();
}

std::string TokenSource::Token() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!file_.empty()) {
    const absl::Duration age = absl::Now() - looked_;
    // A clock that was set back makes it look at once.
    if (age >= kLookInterval || age < absl::ZeroDuration()) Read().IgnoreError();
  }
  return token_;
}

}  // namespace sliceplan
