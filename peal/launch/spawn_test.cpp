// Real processes, forked from the test's own process. A test that must signal or kill the caller of
// spawn makes that caller in a child.
#include "peal/launch/spawn.h"

#include <fcntl.h>
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
#include <future>
#include <iostream>
#include <iterator>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/testing/error_of.h"
#include "peal/base/testing/idle_child.h"
#include "peal/base/testing/in_child.h"
#include "peal/base/testing/scoped_variable.h"
#include "peal/init/init.h"
#include "peal/launch/cores.h"
#include "peal/observe/testing/flight_files.h"
#include "peal/system/cpus.h"
#include "peal/system/pipe.h"
#include "peal/system/process_state.h"

namespace {

int openmp_threads = 0;  // the last number that OpenMP was given

}  // namespace

/// Takes the place of OpenMP, which this program does not link.
extern "C" void omp_set_num_threads(int threads) { openmp_threads = threads; }

namespace peal {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// Failed spawns leave their records in TMPDIR.
class SpawnTest : public ::testing::Test {
 private:
  const observe::TestFolder folder_;
  const ScopedVariable temporary_{"TMPDIR", folder_.path()};
};

SpawnError spawn_error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const SpawnError& error) {
    return error;
  }
  return SpawnError(Error(ErrorKind::kBug, "nothing was thrown"), {});
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A pipe whose end is reached when every process that has inherited the writer has ended.
class Lifeline {
 public:
  void write(char byte) { ASSERT_EQ(::write(pipe_.writer.get(), &byte, 1), 1); }
  void read(int count) {
    for (char byte = 0; count > 0; --count) ASSERT_EQ(::read(pipe_.reader.get(), &byte, 1), 1);
  }
  /// Returns whether all have ended; false if a process writes instead.
  bool wait_for_the_end() {
    pipe_.writer.reset();
    char byte = 0;
    return ::read(pipe_.reader.get(), &byte, 1) == 0;
  }

 private:
  Pipe pipe_ = make_pipe();
};

TEST_F(SpawnTest, EachRankReturnsItsResultByRank) {
  EXPECT_THAT(spawn(3, [](Rank rank) { return 10 * rank; }), ElementsAre(0, 10, 20));
}

struct Point {
  double x = 0;
  std::array<int, 3> counts{};
  friend bool operator==(const Point&, const Point&) = default;
};

TEST_F(SpawnTest, ResultsAreValuesTextsAndLists) {
  EXPECT_THAT(spawn(2,
                    [](Rank rank) {
                      return Point{0.5, {rank, 2, 3}};
                    }),
              ElementsAre(Point{0.5, {0, 2, 3}}, Point{0.5, {1, 2, 3}}));
  const std::string with_null("a\0b", 3);
  EXPECT_THAT(spawn(2, [&](Rank rank) { return rank == 0 ? with_null : std::string(); }),
              ElementsAre(with_null, ""));
  EXPECT_THAT(spawn(2, [](Rank rank) { return std::vector<std::string>(rank, "text"); }),
              ElementsAre(ElementsAre(), ElementsAre("text")));
  EXPECT_THAT(spawn(1,
                    [](Rank) {
                      return std::vector<std::vector<Point>>{{}, {Point{1, {}}}};
                    }),
              ElementsAre(ElementsAre(ElementsAre(), ElementsAre(Point{1, {}}))));
  EXPECT_THAT(spawn(1,
                    [](Rank) {
                      return std::vector<bool>{true, false};
                    }),
              ElementsAre(ElementsAre(true, false)));
}

TEST_F(SpawnTest, ALargeResultArrivesWhole) {
  const auto results = spawn(2, [](Rank rank) { return std::vector<double>(1'000'000, rank); });
  EXPECT_EQ(results[1], std::vector<double>(1'000'000, 1.0));
}

TEST_F(SpawnTest, AFunctionWithoutAResultReturnsNothing) {
  spawn(2, [](Rank) {});
  static_assert(std::is_void_v<decltype(spawn(2, [](Rank) {}))>);
}

template <class Result>
constexpr bool kIsAccepted = launch::ResultValue<Result>;

TEST_F(SpawnTest, PointersAndViewsAreNoResults) {
  EXPECT_FALSE(kIsAccepted<const char*>);
  EXPECT_FALSE(kIsAccepted<std::string_view>);
  EXPECT_FALSE(kIsAccepted<std::vector<int*>>);
  EXPECT_FALSE((kIsAccepted<std::set<int>>));
}

TEST_F(SpawnTest, TheRanksAreTheRanksOfAGroup) {
  const auto sums = spawn(3, [](Rank rank) {
    const ProcessGroupPtr group = init_process_group();
    std::vector<float> values = {static_cast<float>(group->rank() + 1), static_cast<float>(rank)};
    group->all_reduce(values);
    return values;
  });
  EXPECT_THAT(sums, ElementsAre(ElementsAre(6, 3), ElementsAre(6, 3), ElementsAre(6, 3)));
}

TEST_F(SpawnTest, TheFunctionUsesWhatItCapturesAndChangesOnlyCopies) {
  std::vector<int> data = {1, 2, 3};
  const auto sizes = spawn(2, [&](Rank rank) {
    data.resize(10 + static_cast<std::size_t>(rank));
    return data.size();
  });
  EXPECT_THAT(sizes, ElementsAre(10u, 11u));
  EXPECT_THAT(data, ElementsAre(1, 2, 3));
}

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

TEST_F(SpawnTest, AnErrorOfARankArrivesWithItsKindAndDetails) {
  const SpawnError error = spawn_error_of([] {
    spawn(2, [](Rank rank) {
      if (rank == 1) {
        throw Error(ErrorKind::kMismatch, "no luck", {.operation = "all_reduce #1"});
      }
    });
  });
  EXPECT_EQ(error.kind(), ErrorKind::kMismatch);
  EXPECT_EQ(error.message(), "rank 1 of 2 failed: no luck");
  EXPECT_EQ(error.details().rank, 1);
  EXPECT_EQ(error.details().operation, "all_reduce #1");
  EXPECT_EQ(error.details().cause, ErrorCause::kThrew);
  ASSERT_EQ(error.errors().size(), 2u);
  EXPECT_FALSE(error.errors()[0].has_value());
  EXPECT_EQ(error.errors()[1]->message(), "no luck");
}

TEST_F(SpawnTest, AnExceptionOfAnotherTypeArrivesWithItsText) {
  const SpawnError error =
      spawn_error_of([] { spawn(1, [](Rank) -> int { throw std::out_of_range("row 9"); }); });
  EXPECT_EQ(error.kind(), ErrorKind::kPeerLost);
  EXPECT_EQ(error.message(), "rank 0 of 1 failed: row 9");
  EXPECT_EQ(error.details(),
            (ErrorDetails{.rank = 0, .cause = ErrorCause::kThrew, .reason = "row 9"}));
  EXPECT_THAT(spawn_error_of([] { spawn(1, [](Rank) { throw 5; }); }).message(),
              HasSubstr("an exception that is not a std::exception"));
}

TEST_F(SpawnTest, TheRankThatFailedFirstIsNamedAndNotTheRankThatLostIt) {
  const SpawnError error = spawn_error_of([] {
    spawn(3, [](Rank rank) {
      const ProcessGroupPtr group = init_process_group();
      if (rank == 1) throw std::runtime_error("row 9");
      try {
        group->barrier();
      } catch (const Error&) {
        std::throw_with_nested(std::runtime_error("step 7"));
      }
    });
  });
  EXPECT_THAT(std::string(error.message()), StartsWith("rank 1 of 3 failed: row 9"));
  EXPECT_EQ(error.errors()[0]->message(), "step 7");
  EXPECT_EQ(error.errors()[2]->message(), "step 7");
}

TEST_F(SpawnTest, WithoutRecordsARankThatLostAnotherIsNotNamedEvenIfItEndsFirst) {
  const ScopedVariable no_records("PEAL_FLIGHT_DIR", "");
  const Pipe pids = make_pipe();
  const SpawnError error = spawn_error_of([&] {
    spawn(2, [&](Rank rank) {
      try {
        const ProcessGroupPtr group = init_process_group();
        if (rank == 1) throw std::runtime_error("row 9");
        group->barrier();
      } catch (const Error&) {
        const pid_t self = ::getpid();
        if (::write(pids.writer.get(), &self, sizeof self) < 0) ::abort();
        throw;
      } catch (const std::runtime_error&) {
        pid_t other = 0;
        if (::read(pids.reader.get(), &other, sizeof other) < 0) ::abort();
        while (state_of_process(other) != ProcessState::kMissing) ::sched_yield();
        throw;
      }
    });
  });
  EXPECT_EQ(error.message(), "rank 1 of 2 failed: row 9");
  EXPECT_EQ(error.errors()[0]->kind(), ErrorKind::kPeerLost);
}

TEST_F(SpawnTest, ARankThatASignalKillsIsNamedWithTheSignal) {
  const SpawnError error = spawn_error_of([] {
    spawn(3, [](Rank rank) {
      const ProcessGroupPtr group = init_process_group();
      if (rank == 2) ::raise(SIGKILL);
      group->barrier();
    });
  });
  EXPECT_THAT(std::string(error.message()),
              AllOf(StartsWith("rank 2 of 3 failed: its process"),
                    HasSubstr("was killed by SIGKILL"),
                    HasSubstr("neither returned nor threw"),
                    HasSubstr("see peal why ")));
  EXPECT_EQ(error.kind(), ErrorKind::kPeerLost);
  EXPECT_EQ(error.details().cause, ErrorCause::kKilled);
  EXPECT_EQ(error.errors()[0]->kind(), ErrorKind::kPeerLost);
  EXPECT_EQ(error.errors()[0]->details().rank, 2);
}

TEST_F(SpawnTest, ARankThatExitsIsNamedWithItsCode) {
  const SpawnError error = spawn_error_of([] {
    spawn(2, [](Rank rank) {
      if (rank == 1) std::exit(3);
    });
  });
  EXPECT_THAT(std::string(error.message()),
              AllOf(StartsWith("rank 1 of 2 failed: its process"),
                    HasSubstr("ended with exit code 3, and its function neither")));
  EXPECT_EQ(error.details().cause, ErrorCause::kExited);
}

TEST_F(SpawnTest, AnExitWithZeroSucceedsOnlyWithoutAResult) {
  spawn(1, [](Rank) { std::exit(0); });
  const SpawnError error = spawn_error_of([] {
    spawn(1, [](Rank) {
      std::exit(0);
      return 1;
    });
  });
  EXPECT_THAT(std::string(error.message()), HasSubstr("ended with exit code 0"));
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

TEST_F(SpawnTest, AfterAFailureTheOtherRanksAreEnded) {
  Lifeline line;
  const SpawnError error = spawn_error_of([&] {
    spawn(2,
          [&](Rank rank) {
            if (rank == 1) {
              line.read(1);
              throw std::runtime_error("row 9");
            }
            ::signal(SIGTERM, SIG_IGN);
            if (::fork() == 0) ::setsid();  // its child must not live on either
            line.write('0');
            while (true) ::pause();
          },
          {.grace = Timeout(1)});
  });
  EXPECT_EQ(error.message(), "rank 1 of 2 failed: row 9");
  EXPECT_EQ(error.errors()[0]->kind(), ErrorKind::kAborted);
  line.read(1);  // the child of rank 0 has written too
  EXPECT_TRUE(line.wait_for_the_end());
}

TEST_F(SpawnTest, ACallerWithSeveralThreadsIsAUsageError) {
  std::promise<void> end;
  std::thread thread([&] { end.get_future().wait(); });
  const Error error = error_of([] { spawn(2, [](Rank) {}); });
  end.set_value();
  thread.join();
  EXPECT_EQ(error.kind(), ErrorKind::kUsage);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("2 threads"), HasSubstr("at the beginning of main")));
  spawn(2, [](Rank) {});  // right after the join
}

TEST_F(SpawnTest, FewerRanksThanOneAreAUsageError) {
  EXPECT_EQ(error_of([] { spawn(0, [](Rank) {}); }).kind(), ErrorKind::kUsage);
  EXPECT_EQ(error_of([] { spawn(1, [](Rank) {}, {.grace = Timeout(-1)}); }).kind(),
            ErrorKind::kUsage);
}

TEST_F(SpawnTest, ARankCanSpawnRanksOfItsOwn) {
  const auto results = spawn(2, [](Rank outer) {
    const auto inner = spawn(2, [&](Rank rank) {
      std::vector<int> value = {100 * outer + rank};
      init_process_group()->all_reduce(value);
      return value[0];
    });
    std::vector<int> value = {inner[0]};
    init_process_group()->all_reduce(value);
    return value[0] + inner[1];
  });
  EXPECT_THAT(results, ElementsAre(1 + 1 + 201, 1 + 201 + 201));
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

/// A child process that spawns two ranks, each with a child of its own in a new session.
pid_t start_caller(Lifeline& line) {
  const pid_t caller = ::fork();
  if (caller != 0) return caller;
  ::alarm(120);
  try {
    spawn(2,
          [&](Rank) {
            if (::fork() == 0) ::setsid();
            line.write('r');
            while (true) ::pause();
          },
          {.grace = Timeout(1)});
  } catch (const Error& error) {
    ::_exit(static_cast<int>(error.kind()));
  }
  ::_exit(99);
}

TEST_F(SpawnTest, NoProcessIsLeftWhenTheCallerIsKilled) {
  Lifeline line;
  const pid_t caller = start_caller(line);
  line.read(4);
  ::kill(caller, SIGKILL);
  EXPECT_TRUE(line.wait_for_the_end());
  ::waitpid(caller, nullptr, 0);
}

TEST_F(SpawnTest, AnInterruptEndsTheRanksAndThenTheCaller) {
  Lifeline line;
  const pid_t caller = start_caller(line);
  line.read(4);
  ::kill(caller, SIGINT);
  EXPECT_TRUE(line.wait_for_the_end());
  int status = 0;
  ::waitpid(caller, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) << status;
}

TEST_F(SpawnTest, ACallerThatHandlesTheInterruptGetsAnError) {
  Lifeline line;
  const auto handler = ::signal(SIGINT, [](int) {});
  const pid_t caller = start_caller(line);
  ::signal(SIGINT, handler);
  line.read(4);
  ::kill(caller, SIGINT);  // the handler also runs in the ranks, which are killed after the grace
  EXPECT_TRUE(line.wait_for_the_end());
  int status = 0;
  ::waitpid(caller, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(static_cast<ErrorKind>(WEXITSTATUS(status)), ErrorKind::kAborted);
}

TEST_F(SpawnTest, IfTheGuardIsKilledOnlyTheRanksGoWithIt) {
  const IdleChild other;
  const Error error = error_of([] {
    spawn(2, [](Rank rank) {
      if (rank == 1) ::kill(::getppid(), SIGKILL);
      while (true) ::pause();
    });
  });
  EXPECT_EQ(error.kind(), ErrorKind::kPeerLost);
  EXPECT_THAT(error.what(), HasSubstr("guard"));
  EXPECT_EQ(::kill(other.pid(), 0), 0);
  EXPECT_NE(state_of_process(other.pid()), ProcessState::kZombie);
}

}  // namespace
}  // namespace peal
