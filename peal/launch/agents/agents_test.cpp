#include "peal/launch/agents/agents.h"

#include <poll.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/testing/scoped_variable.h"
#include "peal/base/testing/soon.h"
#include "peal/base/testing/temporary_folder.h"

namespace peal::launch::agents {
namespace {

using testing::ElementsAre;

/// The agent begins, and writes the bytes that it gets into a file. It outlives its srun, which the
/// launcher may kill.
class AgentsTest : public testing::Test {
 protected:
  AgentsTest() {
    const std::filesystem::path srun = folder_.path() / "srun";
    std::ofstream(srun) << fmt::format(
        "#!/bin/sh\n"
        "echo 'PEAL-AGENT {} 1'\n"
        "exec 3>'{}'\n"
        "exec setsid sh -c 'cat >&3; true'\n",
        kProtocol,
        orders_.string());
    std::filesystem::permissions(srun, std::filesystem::perms::owner_all);
    agents_.emplace(
        AgentsOptions{
            .engine = {.engine = Engine::kSlurm, .peal = "peal"}, .begin = {}, .version = "1"},
        signals_);
    agents_->add("n1");
    while (agents_->host(0).state() == AgentHost::State::kStarting) {
      pollfd entry{agents_->readable(), POLLIN, 0};
      ::poll(&entry, 1, -1);
      agents_->advance();
    }
  }

  /// The orders to the agent, up to kStop.
  std::vector<FrameKind> orders() const {
    const Deadline deadline = soon();
    std::vector<FrameKind> kinds;
    while (!deadline.passed() && (kinds.empty() || kinds.back() != FrameKind::kStop)) {
      ::poll(nullptr, 0, 5);
      std::ostringstream bytes;
      bytes << std::ifstream(orders_).rdbuf();
      FrameReader frames;
      frames.feed(bytes.str());
      kinds.clear();
      while (const auto frame = frames.try_next()) {
        if (frame->kind != FrameKind::kBeat) kinds.push_back(frame->kind);
      }
    }
    return kinds;
  }

  const TemporaryFolder folder_;
  const std::filesystem::path orders_ = folder_.path() / "orders";
  const ScopedVariable path_{"PATH", folder_.path().string() + ":/usr/bin:/bin"};
  SignalReader signals_;
  std::optional<Agents> agents_;
};

TEST_F(AgentsTest, AnAgentThatTheLauncherLeavesIsOrderedToStop) {
  agents_->leave(0, "it is not a host of the job any more");
  EXPECT_THAT(orders(), ElementsAre(FrameKind::kBegin, FrameKind::kStop));
}

TEST_F(AgentsTest, AtTheEndOfTheLauncherItsAgentsAreOrderedToStop) {
  agents_.reset();
  EXPECT_THAT(orders(), ElementsAre(FrameKind::kBegin, FrameKind::kStop));
}

}  // namespace
}  // namespace peal::launch::agents
