#include "peal/transport/shm/host_peers.h"

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "peal/base/testing/idle_child.h"

namespace peal::transport {
namespace {

HostPeer received(pid_t pid) {
  return {
      std::make_shared<PeerProcess>(Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))), pid),
      std::make_shared<Event>()};
}

TEST(HostPeersTest, GroupsShareWhatIsKnownOfAProcessWhileOneGroupHoldsIt) {
  HostPeers peers;
  const IdleChild child;
  HostPeer first = peers.meet(1, received(child.pid()));
  const HostPeer second = peers.meet(1, received(child.pid()));
  EXPECT_EQ(first.process, second.process);
  EXPECT_EQ(first.alarm, second.alarm);
  EXPECT_NE(peers.meet(2, received(child.pid())).process, first.process);
}

TEST(HostPeersTest, ANewProcessIsNotTakenForOneThatHasEnded) {
  HostPeers peers;
  const IdleChild child;
  const HostPeer first = peers.meet(1, received(child.pid()));
  child.signal_and_wait(SIGKILL, WEXITED);
  const IdleChild other;
  EXPECT_NE(peers.meet(1, received(other.pid())).process, first.process);
}

TEST(HostPeersTest, TwoProcessesHaveDifferentNumbers) {
  EXPECT_NE(HostPeers().number(), HostPeers().number());
}

}  // namespace
}  // namespace peal::transport
