#include "server/rpc/lifetime.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>

#include "absl/time/clock.h"

namespace sliceplan::rpc {
namespace {

sigset_t OurSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  return signals;
}

class FileDescriptor {
 public:
  explicit FileDescriptor(int value) : value_(value) {}
  ~FileDescriptor() { close(value_); }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int value() const { return value_; }

 private:
  const int value_;
};

// Waits for the blocked signals, for a time or until something else is done.
class Signals {
 public:
  Signals() : signals_(SignalDescriptor()), done_(eventfd(0, EFD_CLOEXEC)) {}

  // The next signal; nullopt when `wait` is over or Done was called.
  std::optional<int> Next(absl::Duration wait) {
    const absl::Time end = absl::Now() + wait;
    while (true) {
      pollfd polled[] = {{signals_.value(), POLLIN, 0}, {done_.value(), POLLIN, 0}};
      const int timeout =
          wait == absl::InfiniteDuration()
              ? -1
              : static_cast<int>(std::clamp<int64_t>(absl::ToInt64Milliseconds(end - absl::Now()) + 1, 0, 1'000'000));
      const int ready = poll(polled, 2, timeout);
      if (ready > 0 && (polled[0].revents & POLLIN) != 0) {
        signalfd_siginfo info;
        if (read(signals_.value(), &info, sizeof(info)) == sizeof(info)) return static_cast<int>(info.ssi_signo);
      }
      if (ready > 0 && (polled[1].revents & POLLIN) != 0) return std::nullopt;
      if (absl::Now() >= end) return std::nullopt;
    }
  }

  // Ends the current and every later wait. From any thread.
  void Done() {
    const uint64_t one = 1;
    while (write(done_.value(), &one, sizeof(one)) < 0) {
    }
  }

 private:
  static int SignalDescriptor() {
    const sigset_t signals = OurSignals();
    return signalfd(-1, &signals, SFD_CLOEXEC);
  }

  const FileDescriptor signals_;
  const FileDescriptor done_;
};

bool IsTermination(int signal) { return signal == SIGTERM || signal == SIGINT; }

// Whether a termination signal came before the wait was over.
bool TerminatedWithin(Signals& signals, absl::Duration wait) {
  const absl::Time end = absl::Now() + wait;
  while (true) {
    const std::optional<int> signal =
        signals.Next(wait == absl::InfiniteDuration() ? wait : std::max(end - absl::Now(), absl::ZeroDuration()));
    if (!signal.has_value()) return false;
    if (IsTermination(*signal)) return true;
  }
}

}  // namespace

void BlockSignals() {
  const sigset_t signals = OurSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  // A file at its size limit is an error of a write, like a full disk, and no end.
  signal(SIGXFSZ, SIG_IGN);
}

Ending ServeUntilSignalled(Server& server, const LifetimeOptions& options, const std::function<void()>& reload,
                           const JsonLog& log) {
  // Shared with a thread that may outlive this call.
  const auto shared_signals = std::make_shared<Signals>();
  Signals& signals = *shared_signals;
  std::optional<int> signal;
  while (!signal.has_value() || !IsTermination(*signal)) {
    signal = signals.Next(absl::InfiniteDuration());
    if (signal == SIGHUP) reload();
  }
  LogLine draining = log.Line(Severity::kInfo, "draining");
  draining.Integer("signal", *signal).Seconds("drain_delay_s", options.drain_delay).Seconds("grace_s", options.grace);
  log.Write(std::move(draining));

  server.BeginDrain();
  bool immediate = TerminatedWithin(signals, options.drain_delay);
  if (!immediate) {
    std::thread stopper([shared_signals, &server, grace = options.grace] {
      server.Shutdown(grace);
      shared_signals->Done();
    });
    immediate = TerminatedWithin(signals, absl::InfiniteDuration());
    if (immediate) {
      // Left running: the caller ends the process.
      stopper.detach();
    } else {
      stopper.join();
    }
  }
  log.Write(log.Line(immediate ? Severity::kWarning : Severity::kInfo,
                     immediate ? "second signal: ending at once" : "drained"));
  return immediate ? Ending::kImmediate : Ending::kDrained;
}

}  // namespace sliceplan::rpc
