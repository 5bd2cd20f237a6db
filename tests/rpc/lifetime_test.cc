// The life of the process: signals come to this process, as they would to the server.
#include "server/rpc/lifetime.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "gtest/gtest.h"
#include "server/rpc/server.h"
#include "tests/rpc/testing.h"

namespace sliceplan::rpc {
namespace {

class NoSink : public LogSink {
 public:
  void Write(absl::string_view, bool) override {}
};

// Signals must be blocked before any thread exists, so each case lives in a process of its own.
[[noreturn]] void ServeAndSignal(absl::Duration drain_delay,
                                 const std::function<void(const std::atomic<int>&)>& signals) {
  BlockSignals();
  NoSink sink;
  const JsonLog log(&sink, Severity::kError);
  ServerOptions options;
  options.port = 0;
  auto server = Server::Start(options, &TestMethods(), &log);
  if (!server.ok()) _exit(100);
  std::atomic<int> reloads{0};
  std::thread sender([&] { signals(reloads); });
  LifetimeOptions lifetime;
  lifetime.drain_delay = drain_delay;
  lifetime.grace = absl::Seconds(60);
  const Ending ending = ServeUntilSignalled(
      **server, lifetime, [&] { ++reloads; }, log);
  sender.join();
  _exit(ending == Ending::kDrained ? 10 + reloads : 20 + reloads);
}

void Send(int signal) { kill(getpid(), signal); }

void WaitForReloads(const std::atomic<int>& reloads, int count) {
  while (reloads < count) std::this_thread::yield();
}

using LifetimeDeathTest = ::testing::Test;

TEST(LifetimeDeathTest, TerminationDrains) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(ServeAndSignal(absl::Milliseconds(1), [](const auto&) { Send(SIGTERM); }), testing::ExitedWithCode(10),
              "");
  EXPECT_EXIT(ServeAndSignal(absl::Milliseconds(1), [](const auto&) { Send(SIGINT); }), testing::ExitedWithCode(10),
              "");
}

TEST(LifetimeDeathTest, HangUpReadsTheCatalogAndServesOn) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(ServeAndSignal(absl::Milliseconds(1),
                             [](const std::atomic<int>& reloads) {
                               Send(SIGHUP);
                               WaitForReloads(reloads, 1);
                               Send(SIGHUP);
                               WaitForReloads(reloads, 2);
                               Send(SIGTERM);
                             }),
              testing::ExitedWithCode(12), "");
}

TEST(LifetimeDeathTest, SecondSignalEndsAtOnce) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(ServeAndSignal(absl::Hours(1),
                             [](const auto&) {
                               Send(SIGTERM);
                               // The first must have been taken: two that wait count as one.
                               sigset_t pending;
                               do {
                                 std::this_thread::yield();
                                 sigpending(&pending);
                               } while (sigismember(&pending, SIGTERM) == 1);
                               Send(SIGTERM);
                             }),
              testing::ExitedWithCode(20), "");
}

}  // namespace
}  // namespace sliceplan::rpc
