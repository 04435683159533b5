// Ranks of spawn that fail: the error that the caller gets.
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>

#include <gmock/gmock.h>

#include "peal/base/testing/scoped_variable.h"
#include "peal/init/init.h"
#include "peal/launch/testing/spawning.h"
#include "peal/system/pipe.h"
#include "peal/system/process_state.h"

namespace peal {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

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

TEST_F(SpawnTest, AMessageThatBeginsWithTheRankNamesTheRankOnce) {
  const SpawnError error = spawn_error_of([] {
    spawn(2, [](Rank rank) {
      if (rank == 1) throw Error(ErrorKind::kResource, "rank 1: no luck");
    });
  });
  EXPECT_EQ(error.message(), "rank 1 of 2 failed: no luck");
}

TEST_F(SpawnTest, AnExceptionOfAnotherTypeArrivesWithItsText) {
  const SpawnError error =
      spawn_error_of([] { spawn(1, [](Rank) -> int { throw std::out_of_range("row 9"); }); });
  EXPECT_EQ(error.kind(), ErrorKind::kAborted);
  EXPECT_EQ(error.message(), "rank 0 of 1 failed: row 9");
  EXPECT_EQ(error.details(),
            (ErrorDetails{.rank = 0, .cause = ErrorCause::kThrew, .reason = "row 9"}));
  const SpawnError other = spawn_error_of([] { spawn(1, [](Rank) { throw 5; }); });
  EXPECT_EQ(other.kind(), ErrorKind::kAborted);
  EXPECT_THAT(other.message(), HasSubstr("an exception that is not a std::exception"));
}

constexpr const char* kWithFrames =
    "mat1 and mat2 shapes cannot be multiplied (4x5 and 6x8)\n"
    "Exception raised from meta at /pytorch/Linear.cpp:98 (most recent call first):\n"
    "frame #0: c10::Error::Error(std::string) + 0x9d (0x7f in libc10.so)\n"
    "frame #1: <unknown function> + 0x2a (0x55 in ./train)\n";
constexpr const char* kWithoutFrames = "mat1 and mat2 shapes cannot be multiplied (4x5 and 6x8)";

TEST_F(SpawnTest, TheStackFramesOfAnExceptionOfLibTorchDoNotArrive) {
  const SpawnError error =
      spawn_error_of([] { spawn(1, [](Rank) { throw std::runtime_error(kWithFrames); }); });
  EXPECT_EQ(error.message(), std::string("rank 0 of 1 failed: ") + kWithoutFrames);
  EXPECT_EQ(error.details().reason, kWithoutFrames);
  EXPECT_EQ(error.errors()[0]->message(), kWithoutFrames);
}

TEST_F(SpawnTest, TheStackFramesInAnErrorOfPealDoNotArriveEither) {
  const SpawnError error = spawn_error_of([] {
    spawn(1, [](Rank) {
      throw Error(
          ErrorKind::kBug, std::string("it threw: ") + kWithFrames, {.reason = kWithFrames});
    });
  });
  EXPECT_EQ(error.message(), std::string("rank 0 of 1 failed: it threw: ") + kWithoutFrames);
  EXPECT_EQ(error.details().reason, kWithoutFrames);
}

TEST_F(SpawnTest, AnExceptionOfTheMachineHasTheKindResource) {
  EXPECT_EQ(spawn_error_of([] { spawn(1, [](Rank) { throw std::bad_alloc(); }); }).kind(),
            ErrorKind::kResource);
  const auto no_file = std::make_error_code(std::errc::no_such_file_or_directory);
  EXPECT_EQ(
      spawn_error_of([&] { spawn(1, [&](Rank) { throw std::system_error(no_file); }); }).kind(),
      ErrorKind::kResource);
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
  EXPECT_EQ(error.kind(), ErrorKind::kAborted);
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
  EXPECT_EQ(error.kind(), ErrorKind::kAborted);
  EXPECT_EQ(error.errors()[0]->kind(), ErrorKind::kPeerLost);
}

/// Rank 1 fails and ends first, with the error of rank 0. Then rank 0 fails with it, as rank 2
/// does.
void spawn_ranks_with_the_error_of_rank_0(ErrorKind kind, bool has_group) {
  const Pipe pids = make_pipe();
  spawn(3, [&](Rank rank) {
    const ProcessGroupPtr group = has_group ? init_process_group() : nullptr;
    if (rank == 0) {
      pid_t first = 0;
      if (::read(pids.reader.get(), &first, sizeof first) < 0) ::abort();
      while (state_of_process(first) != ProcessState::kMissing) ::sched_yield();
    } else if (rank == 1) {
      const pid_t self = ::getpid();
      if (::write(pids.writer.get(), &self, sizeof self) < 0) ::abort();
    }
    throw Error(kind, "rank 0: no file", {.rank = 0});
  });
}

TEST_F(SpawnTest, TheErrorThatOneRankReportsToAllIsTheErrorOfThatRank) {
  for (const bool has_group : {false, true}) {
    const SpawnError error = spawn_error_of(
        [&] { spawn_ranks_with_the_error_of_rank_0(ErrorKind::kResource, has_group); });
    EXPECT_THAT(std::string(error.message()), StartsWith("rank 0 of 3 failed: no file"));
    EXPECT_EQ(error.details().rank, 0);
    EXPECT_EQ(error.errors()[1]->message(), "rank 0: no file");
  }
}

TEST_F(SpawnTest, TheFirstOfTheRanksIsNamedIfEachMayHaveNamedAnother) {
  for (const ErrorKind kind : {ErrorKind::kMismatch, ErrorKind::kTimeout}) {
    const SpawnError error =
        spawn_error_of([&] { spawn_ranks_with_the_error_of_rank_0(kind, /*has_group=*/false); });
    EXPECT_THAT(std::string(error.message()), Not(StartsWith("rank 0")));
  }
}

TEST_F(SpawnTest, TheErrorOfARankThatDidNotFailNamesThatRankToo) {
  const SpawnError error = spawn_error_of([] {
    spawn(2, [](Rank rank) {
      if (rank == 1) throw Error(ErrorKind::kResource, "rank 0: no file", {.rank = 0});
    });
  });
  EXPECT_EQ(error.message(), "rank 1 of 2 failed: rank 0: no file");
  EXPECT_EQ(error.details().rank, 0);
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

}  // namespace
}  // namespace peal
