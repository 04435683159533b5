// An agent as a process of its own, whose launcher is the test.
#include "peal/launch/agents/agent.h"

#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/testing/scoped_variable.h"
#include "peal/base/testing/soon.h"
#include "peal/base/testing/temporary_folder.h"
#include "peal/launch/agents/agent_protocol.h"
#include "peal/launch/process_tree.h"
#include "peal/system/pipe.h"

namespace peal::launch::agents {
namespace {

using testing::HasSubstr;

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

  ~AgentTest() override {
    if (agent_ > 0) end();
  }

  /// Closes the connection, and waits until the agent has ended. Returns its status, by waitpid(2).
  int end() {
    if (guard_ > 0) ::kill(guard_, SIGCONT);
    to_agent_.writer.reset();
    from_agent_.reader.reset();
    int status = -1;
    ::waitpid(std::exchange(agent_, -1), &status, 0);
    return status;
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
      if (bytes.empty()) return FrameKind::kEnding;  // the end of the connection
      frames_.feed(bytes);
    }
  }

  void begin() {
    skip_banner();
    send(FrameKind::kBegin, encode(begin_));
    ASSERT_EQ(next(), FrameKind::kReady);
    guard_ = descendants_of(agent_).front();
  }

  /// Stops the guard, and orders 16 ranks, so that the agent must wait for the guard.
  void start_slowly() {
    ::kill(guard_, SIGSTOP);
    for (Rank rank = 0; rank < 16; ++rank) {
      send(FrameKind::kStart,
           encode(RankCommand{.rank = rank,
                              .program = "/bin/sh",
                              .arguments = {"sh", "-c", "exit 3"},
                              .environment = {{"LARGE", std::string(20'000, 'x')}},
                              .cpus = {}}));
    }
  }

  /// Ends the connection, and waits until the agent has closed its end. The guard has copies of the
  /// pipes, so the folder of the agent's descriptors shows this.
  void await_end_of_connection() {
    struct stat pipe {};
    ::fstat(to_agent_.writer.get(), &pipe);
    const std::string name = fmt::format("pipe:[{}]", pipe.st_ino);
    to_agent_.writer.reset();
    const auto is_open = [&] {
      std::error_code error;  // of a descriptor that is closed meanwhile
      const std::filesystem::directory_iterator files(fmt::format("/proc/{}/fd", agent_));
      return std::ranges::any_of(files, [&](const auto& file) {
        return std::filesystem::read_symlink(file.path(), error) == name;
      });
    };
    for (const Deadline deadline = soon(); is_open();) {
      ASSERT_FALSE(deadline.passed());
      ::poll(nullptr, 0, 5);
    }
  }

  Begin begin_{.commands = {{{"sh"}}},
               .directory = std::filesystem::current_path(),
               .grace = std::chrono::seconds(1),
               .silence = std::chrono::minutes(10)};
  Pipe to_agent_ = make_pipe();
  Pipe from_agent_ = make_pipe();
  FrameReader frames_;
  pid_t agent_ = -1;
  pid_t guard_ = -1;
};

TEST_F(AgentTest, HeartbeatsContinueWhileTheGuardStartsRanks) {
  begin();
  start_slowly();
  for (int i = 0; i < 4; ++i) ASSERT_EQ(next(), FrameKind::kBeat);
  ::kill(guard_, SIGCONT);
  for (int ended = 0; ended < 16;) {
    const FrameKind kind = next();
    ASSERT_NE(kind, FrameKind::kEnding);
    if (kind == FrameKind::kEvent) ++ended;
  }
}

/// Slurm says that the node of the launcher is lost.
class Slurm {
 protected:
  Slurm() {
    const std::filesystem::path scontrol = folder_.path() / "scontrol";
    std::ofstream(scontrol) << "#!/bin/sh\necho \"$*\" >>'" << questions_.string()
                            << "'\necho 'JobId=7 JobState=RUNNING Requeue=1 BatchFlag=1 "
                               "NodeList=n2 BatchHost=n1'\n";
    std::filesystem::permissions(scontrol, std::filesystem::perms::owner_all);
  }

  /// The arguments of each call of scontrol, one line for each.
  std::string questions() const {
    std::ostringstream text;
    text << std::ifstream(questions_).rdbuf();
    return text.str();
  }

 private:
  const TemporaryFolder folder_;
  const std::filesystem::path questions_ = folder_.path() / "questions";
  const ScopedVariable path_{"PATH", folder_.path().string() + ":/usr/bin:/bin"};
  const ScopedVariable job_{"SLURM_JOB_ID", "7"};
  const ScopedVariable nodes_{"SLURM_JOB_NODELIST", "n[1-2]"};
  const ScopedVariable node_{"SLURMD_NODENAME", "n2"};
};

class AgentInSlurmTest : public Slurm, public AgentTest {
 protected:
  void leave() { send(FrameKind::kStop, encode(SignalOrder{.signal = SIGTERM})); }
};

TEST_F(AgentInSlurmTest, AJobThatHasLostItsLauncherStartsAgain) {
  begin();
  EXPECT_EQ(end(), 0);
  EXPECT_THAT(questions(), HasSubstr("requeue 7\n"));
}

TEST_F(AgentInSlurmTest, ALauncherThatLeavesBeforeTheFirstRankIsNotLost) {
  begin();
  leave();
  EXPECT_EQ(end(), 0);
  EXPECT_EQ(questions(), "");
}

TEST_F(AgentInSlurmTest, ALauncherThatLeavesWhileTheGuardIsBusyIsNotLost) {
  begin();
  start_slowly();
  leave();
  await_end_of_connection();
  EXPECT_EQ(end(), 0);
  EXPECT_EQ(questions(), "");
}

TEST_F(AgentInSlurmTest, ALauncherMayLeaveBeforeTheLastFile) {
  begin_.has_files = true;
  skip_banner();
  send(FrameKind::kBegin, encode(begin_));
  leave();
  EXPECT_EQ(end(), 0);
  EXPECT_EQ(questions(), "");
}

}  // namespace
}  // namespace peal::launch::agents
