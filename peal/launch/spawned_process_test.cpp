// The process of a rank that spawn has started: its environment, cores, name and output.
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>

#include <gmock/gmock.h>

#include "peal/base/testing/scoped_variable.h"
#include "peal/launch/cores.h"
#include "peal/launch/testing/spawning.h"
#include "peal/system/cpus.h"
#include "peal/system/pipe.h"

namespace {

int openmp_threads = 0;  // the last number that OpenMP was given

}  // namespace

/// Takes the place of OpenMP, which this program does not link.
extern "C" void omp_set_num_threads(int threads) { openmp_threads = threads; }

namespace peal {
namespace {

using ::testing::ElementsAre;

TEST_F(SpawnTest, ARankHasTheEnvironmentAndTheCoresOfALaunch) {
  const ScopedVariable rank_of_caller("RANK", "7");
  const auto found = spawn(2, [](Rank) {
    cpu_set_t cpus;
    ::sched_getaffinity(0, sizeof cpus, &cpus);
    std::string text = std::to_string(CPU_COUNT(&cpus));
    for (const char* name : {"RANK", "LOCAL_RANK", "WORLD_SIZE", "OMP_NUM_THREADS"}) {
      text += std::string(" ") + std::getenv(name);
    }
    return text;
  });
  const auto shares = launch::divide_cores(launch::usable_cores(), 2, cpu_quota());
  for (const int rank : {0, 1}) {
    const launch::CoreShare& share = shares[static_cast<std::size_t>(rank)];
    std::ostringstream expected;
    const std::string own = found[static_cast<std::size_t>(rank)];
    const std::string cpus =
        share.cpus.empty() ? own.substr(0, own.find(' ')) : std::to_string(share.cpus.size());
    expected << cpus << ' ' << rank << ' ' << rank << " 2 " << share.threads;
    EXPECT_EQ(own, expected.str());
  }
  EXPECT_STREQ(std::getenv("RANK"), "7");
}

TEST_F(SpawnTest, OpenMpGetsTheRanksShareOfTheCoresUnlessTheUserHasSetANumber) {
  const auto threads = [] { return spawn(2, [](Rank) { return openmp_threads; }); };
  ::unsetenv("OMP_NUM_THREADS");
  const int share = launch::divide_cores(launch::usable_cores(), 2, cpu_quota())[0].threads;
  EXPECT_THAT(threads(), ElementsAre(share, share));
  const ScopedVariable of_user("OMP_NUM_THREADS", "9");
  EXPECT_THAT(threads(), ElementsAre(0, 0));
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_F(SpawnTest, ARankHasTheNameOfTheProgram) {
  const auto name = [] {
    std::array<char, 16> text{};
    ::prctl(PR_GET_NAME, text.data());
    return text.data() + std::string(":") + text_of("/proc/self/cmdline");
  };
  EXPECT_THAT(spawn(1, [&](Rank) { return name(); }), ElementsAre(name()));
}

TEST_F(SpawnTest, ARankKeepsNoDescriptorOfTheLaunch) {
  const auto pipes = [] {
    std::multiset<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code none;
      const std::string target = std::filesystem::read_symlink(entry.path(), none).string();
      if (target.starts_with("pipe:") || target.find("signalfd") != std::string::npos) {
        found.insert(target);
      }
    }
    return found.size();
  };
  // Its stdout and stderr are pipes of its own. The launcher's ends of four outputs and the
  // launcher's signalfd are copies that end with the rank.
  EXPECT_THAT(spawn(2, [&](Rank) { return pipes(); }),
              ::testing::Each(::testing::Le(pipes() + 2 + 4 + 1)));
}

TEST_F(SpawnTest, TheExitHandlersOfTheProgramDoNotRunInARank) {
  static pid_t program = 0;
  program = ::getpid();
  std::atexit([] {
    if (::getpid() != program) ::_exit(77);
  });
  spawn(2, [](Rank rank) {
    if (rank == 1) std::exit(0);
  });
}

/// Runs `body` in a child whose stdout is a pipe, and returns what the child wrote.
std::string output_of(const std::function<void()>& body) {
  Pipe pipe = make_pipe();
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(pipe.writer.get(), STDOUT_FILENO);
    pipe = {};
    body();
    std::fflush(nullptr);
    ::_exit(0);
  }
  pipe.writer.reset();
  std::string text;
  std::array<char, 4096> block;
  for (ssize_t got = 0; (got = ::read(pipe.reader.get(), block.data(), block.size())) > 0;) {
    text.append(block.data(), static_cast<std::size_t>(got));
  }
  ::waitpid(child, nullptr, 0);
  return text;
}

TEST_F(SpawnTest, TheOutputOfTheRanksIsWholeLinesAndNoLineAppearsTwice) {
  const std::string text = output_of([] {
    std::printf("before\n");
    spawn(2, [](Rank rank) {
      std::cout << "rank ";
      std::printf("%d", rank);
    });
    std::printf("after\n");
  });
  EXPECT_THAT(
      text, ::testing::AnyOf("before\nrank 0\nrank 1\nafter\n", "before\nrank 1\nrank 0\nafter\n"));
}

TEST_F(SpawnTest, LinesBeforeACrashAreNotLost) {
  const std::string text = output_of([] {
    spawn_error_of([] {
      spawn(1,
            [](Rank) {
              std::cout << "step 1\n";
              ::raise(SIGKILL);
            },
            {.labels = launch::Labels::kRank});
    });
  });
  EXPECT_EQ(text, "[0] step 1\n");
}

}  // namespace
}  // namespace peal
