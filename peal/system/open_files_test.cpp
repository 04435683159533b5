#include "peal/system/open_files.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/base/testing/in_child.h"
#include "peal/system/fd.h"

namespace peal {
namespace {

/// Runs `body` in a child process, since a hard limit cannot be restored.
template <class Body>
bool holds_with_limit(rlim_t soft, rlim_t hard, Body body) {
  return holds_in_child([&] {
    const rlimit limit{soft, hard};
    return ::setrlimit(RLIMIT_NOFILE, &limit) == 0 && body();
  });
}

rlim_t soft_limit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

/// From now on this process may read its limits, but not set them.
bool forbid_limits() {
  std::array filter = {
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prlimit64, 0, 3),
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),  // no new limit
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{filter.size(), filter.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(OpenFilesTest, TheLimitIsRaisedAsFarAsNeeded) {
  EXPECT_TRUE(holds_with_limit(100, 1000, [] {
    allow_open_files(700, "the test");
    return soft_limit() == 700;
  }));
}

TEST(OpenFilesTest, AHigherLimitIsUnchanged) {
  EXPECT_TRUE(holds_with_limit(800, 1000, [] {
    allow_open_files(700, "the test");
    return soft_limit() == 800;
  }));
}

TEST(OpenFilesTest, AWishedLimitIsRaisedUpToTheHardLimit) {
  EXPECT_TRUE(holds_with_limit(100, 1000, [] {
    allow_open_files(50, 5000, "the test");
    return soft_limit() == 1000;
  }));
}

TEST(OpenFilesTest, AWishedLimitThatTheSystemRejectsIsNotAnError) {
  EXPECT_TRUE(holds_with_limit(100, 1000, [] {
    if (!forbid_limits()) return false;
    allow_open_files(50, 700, "the test");
    return soft_limit() == 100;
  }));
}

TEST(OpenFilesTest, OpenFilesAreCounted) {
  const long before = open_files();
  ASSERT_GE(before, 3);
  const Fd one(::dup(0));
  const Fd two(::dup(0));
  EXPECT_EQ(open_files(), before + 2);
}

TEST(OpenFilesTest, OfConcurrentThreadsTheLargestNeedWins) {
  EXPECT_TRUE(holds_with_limit(100, 1000, [] {
    constexpr int kRounds = 3'000;
    std::atomic<int> round = 0;
    std::atomic<int> raised = 0;
    std::thread other([&] {
      for (int i = 1; i <= kRounds; ++i) {
        while (round < i) std::this_thread::yield();
        allow_open_files(500, "a thread");
        raised = i;
      }
    });
    int wrong = 0;
    const rlimit low{100, 1000};
    for (int i = 1; i <= kRounds; ++i) {
      ::setrlimit(RLIMIT_NOFILE, &low);
      round = i;
      allow_open_files(900, "a thread");
      while (raised < i) std::this_thread::yield();
      wrong += soft_limit() != 900;
    }
    other.join();
    return wrong == 0;
  }));
}

TEST(OpenFilesTest, ALimitThatTheSystemDoesNotRaiseIsAnErrorThatNamesThePurpose) {
  EXPECT_TRUE(holds_with_limit(100, 1000, [] {
    if (!forbid_limits()) return false;
    try {
      allow_open_files(700, "the test");
    } catch (const Error& error) {
      return error.kind() == ErrorKind::kResource &&
             error.message().find("the test needs about 700 open files") != std::string::npos &&
             error.message().find("Operation not permitted") != std::string::npos;
    }
    return false;
  }));
}

TEST(OpenFilesTest, ALimitAboveTheHardLimitIsAnErrorThatNamesThePurpose) {
  EXPECT_TRUE(holds_with_limit(100, 1000, [] {
    try {
      allow_open_files(1001, "the test");
    } catch (const Error& error) {
      return error.kind() == ErrorKind::kResource && soft_limit() == 100 &&
             error.message().find("the test needs about 1001 open files") != std::string::npos &&
             error.message().find("ulimit -Hn") != std::string::npos;
    }
    return false;
  }));
}

}  // namespace
}  // namespace peal
