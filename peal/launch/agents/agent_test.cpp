// An agent as a process of its own, whose launcher is the test.
#include "peal/launch/agents/agent.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "peal/launch/agents/agent_protocol.h"
#include "peal/launch/process_tree.h"
#include "peal/system/pipe.h"

namespace peal::launch::agents {
namespace {

class AgentTest : public testing::Test {
 protected:
  AgentTest() {
    agent_ = ::fork();
    if (agent_ == 0) {
      to_agent_.writer.reset();
      from_agent_.reader.reset();
      serve_launcher(std::move(to_agent_.reader), std::move(from_agent_.writer), "1");
      ::_exit(0);
    }
    to_agent_.reader.reset();
    from_agent_.writer.reset();
  }

  /// The agent ends when its connection ends.
  ~AgentTest() override {
    if (guard_ > 0) ::kill(guard_, SIGCONT);
    to_agent_.writer.reset();
    from_agent_.reader.reset();
    ::waitpid(agent_, nullptr, 0);
  }

  void send(FrameKind kind, const std::string& payload) {
    const std::string bytes = encode(kind, payload);
    ASSERT_EQ(::write(to_agent_.writer.get(), bytes.data(), bytes.size()), std::ssize(bytes));
  }

  std::string read() {
    std::string bytes(1 << 16, '\0');
    const auto got = ::read(from_agent_.reader.get(), bytes.data(), bytes.size());
    bytes.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return bytes;
  }

  void skip_banner() {
    std::string bytes;
    while (bytes.find('\n') == std::string::npos) bytes += read();
    frames_.feed(std::string_view(bytes).substr(bytes.find('\n') + 1));
  }

  FrameKind next() {
    while (true) {
      if (const auto frame = frames_.try_next()) return frame->kind;
      const std::string bytes = read();
      if (bytes.empty()) return FrameKind::kEnding;
      frames_.feed(bytes);
    }
  }

  Pipe to_agent_ = make_pipe();
  Pipe from_agent_ = make_pipe();
  FrameReader frames_;
  pid_t agent_ = -1;
  pid_t guard_ = -1;
};

TEST_F(AgentTest, HeartbeatsContinueWhileTheGuardStartsRanks) {
  skip_banner();
  send(FrameKind::kBegin,
       encode(Begin{.commands = {{{"sh"}}},
                    .directory = std::filesystem::current_path(),
                    .grace = std::chrono::seconds(1),
                    .silence = std::chrono::minutes(10)}));
  ASSERT_EQ(next(), FrameKind::kReady);
  guard_ = descendants_of(agent_).front();
  ::kill(guard_, SIGSTOP);  // a guard that takes long
  for (Rank rank = 0; rank < 16; ++rank) {
    send(FrameKind::kStart,
         encode(RankCommand{.rank = rank,
                            .program = "/bin/sh",
                            .arguments = {"sh", "-c", "exit 3"},
                            .environment = {{"LARGE", std::string(20'000, 'x')}},
                            .cpus = {}}));
  }
  for (int i = 0; i < 4; ++i) ASSERT_EQ(next(), FrameKind::kBeat);
  ::kill(guard_, SIGCONT);
  for (int ended = 0; ended < 16;) {
    const FrameKind kind = next();
    ASSERT_NE(kind, FrameKind::kEnding);
    if (kind == FrameKind::kEvent) ++ended;
  }
}

}  // namespace
}  // namespace peal::launch::agents
