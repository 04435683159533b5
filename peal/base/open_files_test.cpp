#include "peal/base/open_files.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "peal/base/error.h"

namespace peal {
namespace {

/// In a process of its own, since a hard limit does not come back.
template <class Body>
bool holds_with_limit(rlim_t soft, rlim_t hard, Body body) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit{soft, hard};
    ::_exit(::setrlimit(RLIMIT_NOFILE, &limit) == 0 && body() ? 0 : 1);
  }
  int status = -1;
  return ::waitpid(child, &status, 0) == child && status == 0;
}

rlim_t soft_limit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

TEST(OpenFilesTest, TheLimitIsRaisedAsFarAsIsNeeded) {
  EXPECT_TRUE(holds_with_limit(100, 1000, [] {
    allow_open_files(700, "the test");
    return soft_limit() == 700;
  }));
}

TEST(OpenFilesTest, AHigherLimitIsLeftAsItIs) {
  EXPECT_TRUE(holds_with_limit(800, 1000, [] {
    allow_open_files(700, "the test");
    return soft_limit() == 800;
  }));
}

TEST(OpenFilesTest, WhatTheHardLimitForbidsIsAnErrorThatSaysWhoNeedsIt) {
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
