// Explores how the threads of a group may interleave. Each seed is a job that runs once, under a
// deterministic scheduler, in a process of its own. A job in which all threads sleep while work is
// pending fails. Its seed repeats it: PEAL_TEST_EXPLORE_SEED=17 explore_test.
// PEAL_TEST_EXPLORE_SECONDS is the time to search.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "tests/explore/job.h"
#include "tests/explore/scheduler.h"

namespace peal::explore {
namespace {

/// Longer than any job: ends a job that spins for ever.
constexpr unsigned kLongestJob = 120;

std::optional<std::uint64_t> number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return std::nullopt;
  return std::stoull(text);
}

/// How the job of this seed ended, in words; empty if it ended well.
std::string state_of(std::uint64_t seed, bool remembers_stacks) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(kLongestJob);
    try {
      run_job(seed, remembers_stacks);
      ::_exit(0);
    } catch (const std::exception& error) {
      std::cout << "seed " << seed << ": " << error.what() << std::endl;
    }
    ::_exit(1);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return "";
  if (WIFSIGNALED(status)) return "was ended by signal " + std::to_string(WTERMSIG(status));
  return WEXITSTATUS(status) == kStandstill ? "makes no progress" : "failed";
}

TEST(ExploreTest, EveryJobMakesProgressWhileWorkIsPending) {
  const std::optional<std::uint64_t> only = number_in("PEAL_TEST_EXPLORE_SEED");
  if (only) {
    EXPECT_EQ(state_of(*only, true), "") << "the job of seed " << *only;
    return;
  }
  const auto begin = std::chrono::steady_clock::now();
  const std::chrono::seconds limit(number_in("PEAL_TEST_EXPLORE_SECONDS").value_or(15));
  const std::uint64_t first = number_in("PEAL_TEST_EXPLORE_FIRST").value_or(0);
  std::uint64_t seed = first;
  for (; std::chrono::steady_clock::now() - begin < limit; ++seed) {
    const std::string state = state_of(seed, false);
    if (state.empty()) continue;
    ADD_FAILURE() << "the job of seed " << seed << " " << state
                  << "; again: " << state_of(seed, true);
    break;
  }
  std::cout << seed - first << " jobs" << std::endl;
}

}  // namespace
}  // namespace peal::explore
