#include "peal/launch/agents/elastic_guard.h"

#include <poll.h>

#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/launch/signals.h"
#include "peal/system/pipe.h"

namespace peal::launch::agents {
namespace {

/// The agents' program does not exist, so every other host refuses.
class ElasticGuardTest : public testing::Test {
 protected:
  HostEvent next_host(HostGuard& guard) {
    while (true) {
      guard.try_next();
      if (auto event = guard.try_next_host()) return *event;
      pollfd entry{guard.events(), POLLIN, 0};
      ::poll(&entry, 1, 20);
    }
  }

  static ElasticGuard guard_of(Agents& agents, std::vector<std::string> command) {
    return ElasticGuard(agents,
                        {.command = std::move(command), .environment = process_variables()},
                        {.grace = std::chrono::minutes(1), .starts = Starts::kAlsoLater});
  }

  SignalReader signals_;
  Agents agents_{AgentsOptions{.engine = {.engine = Engine::kThisMachine, .peal = "/no/such/peal"},
                               .begin = {},
                               .version = "1"},
                 signals_};
};

TEST_F(ElasticGuardTest, NamesOfThisMachineShareItsCores) {
  ElasticGuard guard = guard_of(agents_, {"sh", "-c", "true"});
  guard.connect("localhost");
  guard.connect("127.0.0.1");
  for (const char* const name : {"localhost", "127.0.0.1"}) {
    const HostEvent event = next_host(guard);
    EXPECT_EQ(event.kind, HostEvent::Kind::kReady);
    EXPECT_EQ(event.host, name);
    EXPECT_TRUE(event.facts.program.ends_with("/sh"));
    EXPECT_EQ(event.facts.machine, "");
    EXPECT_EQ(event.facts.records, std::nullopt);
  }
}

TEST_F(ElasticGuardTest, AProcessRunsOnAHostOfThisMachine) {
  ElasticGuard guard = guard_of(agents_, {"sh"});
  guard.connect("localhost");
  const HostEvent ready = next_host(guard);
  const Pipe output = make_pipe();
  guard.start({.rank = 7,
               .program = ready.facts.program,
               .arguments = {"sh", "-c", "exit 3"},
               .environment = ready.facts.environment,
               .cpus = {},
               .host = "localhost"},
              {output.writer.get(), output.writer.get()});
  std::optional<GuardEvent> event;
  while (!(event = guard.try_next())) {
    pollfd entry{guard.events(), POLLIN, 0};
    ::poll(&entry, 1, -1);
  }
  EXPECT_EQ(event->kind, GuardEvent::Kind::kEnded);
  EXPECT_EQ(event->rank, 7);
  EXPECT_EQ(event->value, 3 << 8);
}

TEST_F(ElasticGuardTest, AHostWithoutTheCommandRefuses) {
  ElasticGuard guard = guard_of(agents_, {"no-such-program"});
  guard.connect("localhost");
  const HostEvent event = next_host(guard);
  EXPECT_EQ(event.kind, HostEvent::Kind::kRefused);
  EXPECT_EQ(event.exit_code, 127);
}

TEST_F(ElasticGuardTest, AHostWhoseAgentDoesNotStartRefusesAndMayBeTriedAgain) {
  ElasticGuard guard = guard_of(agents_, {"sh"});
  for (int i = 0; i < 2; ++i) {
    guard.connect("192.0.2.1");
    const HostEvent event = next_host(guard);
    EXPECT_EQ(event.kind, HostEvent::Kind::kRefused);
    EXPECT_EQ(event.host, "192.0.2.1");
  }
}

TEST_F(ElasticGuardTest, NothingMoreIsHeardOfAHostThatWasLeft) {
  ElasticGuard guard = guard_of(agents_, {"sh"});
  guard.connect("localhost");
  guard.leave("localhost");
  guard.connect("127.0.0.1");
  EXPECT_EQ(next_host(guard).host, "127.0.0.1");
}

TEST_F(ElasticGuardTest, WithoutProcessesItIsGoneWhenItIsStopped) {
  ElasticGuard guard = guard_of(agents_, {"sh"});
  guard.connect("192.0.2.1");
  guard.stop(SIGTERM, SignalOrigin::kProcess);
  std::optional<GuardEvent> event;
  while (!(event = guard.try_next())) {
    pollfd entry{guard.events(), POLLIN, 0};
    ::poll(&entry, 1, -1);
  }
  EXPECT_EQ(event->kind, GuardEvent::Kind::kGone);
}

}  // namespace
}  // namespace peal::launch::agents
