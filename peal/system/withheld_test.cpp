#include "peal/system/withheld.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "peal/base/testing/in_child.h"
#include "peal/system/fd.h"

namespace peal {
namespace {

struct Pair {
  Pair() {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) ::abort();
    own = withheld_from_children(Fd(ends[0]));
    other = Fd(ends[1]);
  }
  Fd own;
  Fd other;
};

/// Whether a write to the descriptor succeeds.
bool is_connected(int fd) { return ::send(fd, "x", 1, MSG_NOSIGNAL) == 1; }
bool is_open_fd(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

TEST(WithheldTest, AChildHasADeadDescriptorInstead) {
  const Pair pair;
  EXPECT_EQ(in_child([&] {
              if (!is_open_fd(pair.own.get())) return 1;
              if (is_connected(pair.own.get())) return 2;
              return is_connected(pair.other.get()) ? 0 : 3;  // this one is not withheld
            }),
            0);
  EXPECT_TRUE(is_connected(pair.own.get()));
}

TEST(WithheldTest, TheOtherEndNoticesTheCloseOfTheParentEvenIfAChildLives) {
  std::array<int, 2> leash{};
  ASSERT_EQ(::pipe2(leash.data(), O_CLOEXEC), 0);
  Fd held(leash[1]);
  const Fd end(leash[0]);
  Pair pair;
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    held.reset();
    char byte = 0;
    ::_exit(::read(end.get(), &byte, 1) == 0 ? 0 : 1);  // lives until the test closes its end
  }
  pair.own.reset();
  pollfd entry{pair.other.get(), POLLRDHUP, 0};
  EXPECT_EQ(::poll(&entry, 1, 10'000), 1);  // the child may close its copy a moment later
  held.reset();
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(WithheldTest, AGrandchildDoesNotHaveTheDescriptor) {
  const Pair pair;
  const auto grandchild = [&] { return is_connected(pair.own.get()) ? 1 : 0; };
  EXPECT_EQ(in_child([&] { return in_child(grandchild); }), 0);
}

TEST(WithheldTest, ADescriptorOfAChildIsWithheldFromItsChild) {
  EXPECT_EQ(in_child([] {
              const Pair pair;
              if (!is_connected(pair.own.get())) return 2;
              return in_child([&] { return is_connected(pair.own.get()) ? 1 : 0; });
            }),
            0);
}

TEST(WithheldTest, AnotherDescriptorWithTheSameNumberIsNotWithheld) {
  Pair pair;
  const int freed = pair.own.release();
  const Fd next(::dup2(pair.other.get(), freed));  // also closes the old descriptor
  const int flags = ::fcntl(freed, F_GETFL);
  EXPECT_EQ(in_child([&] { return ::fcntl(freed, F_GETFL) == flags ? 0 : 1; }), 0);
  const Pair second;
  ASSERT_EQ(::dup2(second.other.get(), freed), freed);
  EXPECT_EQ(in_child([&] { return is_connected(freed) ? 0 : 1; }), 0);
}

TEST(WithheldTest, AllAreWithheldFromAChildWithAFullTable) {
  std::vector<Pair> pairs(100);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit full = before;
  full.rlim_cur = static_cast<rlim_t>(pairs.back().other.get()) + 1;
  std::vector<Fd> fillers;
  while (true) {
    Fd filler(::dup(0));
    if (!filler || filler.get() > pairs.back().other.get()) break;
    fillers.push_back(std::move(filler));
  }
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &full), 0);
  const int status = in_child([&] {
    for (const Pair& pair : pairs) {
      if (is_connected(pair.own.get())) return 1;
      if (!is_open_fd(pair.own.get())) return 2;
    }
    return 0;
  });
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(status, 0);
}

TEST(WithheldTest, ForksDoNotDisturbThreadsThatOpenAndClose) {
  std::atomic<bool> stop = false;
  std::atomic<int> broken = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!stop) {
        const Pair pair;
        if (!is_connected(pair.own.get())) ++broken;
      }
    });
  }
  const Pair lasting;
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(in_child([&] { return is_connected(lasting.own.get()) ? 1 : 0; }), 0);
  }
  stop = true;
  threads.clear();
  EXPECT_EQ(broken, 0);
  EXPECT_TRUE(is_connected(lasting.own.get()));
}

}  // namespace
}  // namespace peal
