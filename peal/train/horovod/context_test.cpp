#include "peal/train/horovod/context.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <iterator>
#include <optional>
#include <thread>

#include "peal/config/environment.h"
#include "peal/config/launch_mark.h"
#include "peal/train/horovod/testing/processes.h"

namespace peal::hvd {
namespace {

using testing::Findings;
using testing::on_processes;

std::ptrdiff_t count_in(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder), {});
}

TEST(Init, AndShutdownMayFollowEachOtherManyTimesAndLeaveNothing) {
  const auto found = spawn(2, [](Rank) -> std::string {
    torch::set_num_threads(1);
    std::vector<std::ptrdiff_t> files, threads;
    for (int i = 0; i < 115; ++i) {
      init({.process_sets = {{0}}});
      init();  // does nothing
      const Tensor sum = allreduce(torch::ones({1}), {.name = "x", .op = Sum});
      if (sum.item<float>() != 2) return "wrong sum";
      synchronize(allreduce_async(torch::ones({1}), {.name = "y"}));
      shutdown();
      shutdown();
      if (is_initialized()) return "still initialized";
      if (i == 5 || i == 114) {
        files.push_back(count_in("/proc/self/fd"));
        threads.push_back(count_in("/proc/self/task"));
      }
    }
    if (files[1] > files[0] + 2) return c10::str("files: ", files);
    return threads[1] <= threads[0] ? "" : c10::str("threads: ", threads);
  });
  EXPECT_THAT(found, ::testing::Each(""));
}

TEST(Init, WithoutALauncherMakesAWorldOfOne) {
  // A rank of a job of its own.
  spawn(1, [](Rank) {
    for (const std::string& name : environment_names()) {
      if (name.starts_with("HOROVOD_")) ::unsetenv(name.c_str());
    }
    for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK"}) {
      ::unsetenv(name);
    }
    init();
    const bool is_alone = rank() == 0 && size() == 1 && local_rank() == 0 && local_size() == 1 &&
                          cross_rank() == 0 && cross_size() == 1 && is_homogeneous();
    if (!is_alone) throw std::runtime_error("not alone");
    const Tensor sum = allreduce(torch::full({2}, 3.0), {.op = Sum});
    if (sum[0].item<float>() != 3) throw std::runtime_error("another sum");
    shutdown();
  });
}

TEST(Init, TakesTheRankOfHorovodsVariables) {
  const auto ranks = spawn(2, [](Rank spawned) {
    ::setenv("HOROVOD_RANK", spawned == 0 ? "1" : "0", 1);
    ::setenv("HOROVOD_SIZE", "2", 1);
    ::setenv("HOROVOD_HOSTNAME", spawned == 0 ? "b" : "a", 1);
    for (const char* name :
         {"HOROVOD_LOCAL_RANK", "HOROVOD_LOCAL_SIZE", "HOROVOD_CROSS_RANK", "HOROVOD_CROSS_SIZE"}) {
      ::unsetenv(name);
    }
    init();
    const std::vector<int> place = {
        rank(), size(), local_rank(), local_size(), cross_rank(), cross_size()};
    shutdown();
    return place;
  });
  EXPECT_THAT(ranks[0], ::testing::ElementsAre(1, 2, 0, 1, 1, 2));
  EXPECT_THAT(ranks[1], ::testing::ElementsAre(0, 2, 0, 1, 0, 2));
}

/// A rank starts an inner job by a launcher that sets only RANK and WORLD_SIZE, as torchrun does.
TEST(Init, IgnoresHorovodsVariablesOfAnOuterJob) {
  const auto ranks = spawn(2, [](Rank spawned) {
    ::setenv("HOROVOD_RANK", "0", 1);
    ::setenv("HOROVOD_SIZE", "1", 1);
    const std::string mark = launch_mark(process_environment(), /*rank=*/0, /*world_size=*/1);
    ::setenv("PEAL_LAUNCHED", mark.c_str(), 1);
    ::setenv("RANK", std::to_string(spawned).c_str(), 1);
    ::setenv("WORLD_SIZE", "2", 1);
    init();
    const std::vector<int> place = {rank(), size()};
    shutdown();
    return place;
  });
  EXPECT_THAT(ranks[0], ::testing::ElementsAre(0, 2));
  EXPECT_THAT(ranks[1], ::testing::ElementsAre(1, 2));
}

TEST(Init, WithRanksMakesAWorldOfTheseRanks) {
  const auto ranks = spawn(3, [](Rank spawned) {
    if (spawned == 1) return std::vector<int>{};
    init({.ranks = {2, 0}});
    const std::vector<int> place = {rank(),
                                    size(),
                                    local_rank(),
                                    local_size(),
                                    allreduce(torch::tensor({spawned}), {.op = Sum}).item<int>()};
    shutdown();
    return place;
  });
  EXPECT_THAT(ranks[0], ::testing::ElementsAre(1, 2, 1, 2, 2));
  EXPECT_THAT(ranks[2], ::testing::ElementsAre(0, 2, 0, 2, 2));
}

TEST(ProcessSets, HaveTheirOwnOperationsAndNames) {
  on_processes(
      4,
      [](Findings& findings) {
        const ProcessSet even(1), odd(2);
        findings.expect(even.ranks() == std::vector<Rank>{0, 2}, "the ranks");
        const bool is_even = rank() % 2 == 0;
        findings.expect(even.included() == is_even && odd.included() != is_even, "included");
        findings.expect(even.rank() == (is_even ? rank() / 2 : -1), "the rank in the set");
        const ProcessSet own = is_even ? even : odd;
        // The same name in two sets and in the world at once.
        const ReductionOptions in_set{.name = "x", .op = Sum, .process_set = own};
        const auto everywhere = allreduce_async(torch::ones({2}), {.name = "x", .op = Sum});
        const auto here = allreduce_async(torch::full({3}, rank() + 1.0), in_set);
        findings.expect_equal(synchronize(here), torch::full({3}, is_even ? 4.0 : 6.0), "the set");
        findings.expect_equal(synchronize(everywhere), torch::full({2}, 4.0), "the world");
        // A root is a rank in the world.
        const Rank root = is_even ? 2 : 3;
        findings.expect_equal(broadcast(torch::tensor({rank()}), root, {.process_set = own}),
                              torch::tensor({root}),
                              "broadcast");
        // A barrier of one set does not wait for the other.
        const TimePoint start = Clock::now();
        if (!is_even) std::this_thread::sleep_for(std::chrono::seconds(2));
        barrier(own);
        findings.expect(!is_even || Clock::now() - start < std::chrono::seconds(1), "barrier");
      },
      {.process_sets = {{2, 0}, {1, 3}}});
}

TEST(ProcessSets, AreAddedAndRemovedInDynamicMode) {
  on_processes(
      3,
      [](Findings& findings) {
        const ProcessSet set = add_process_set({2, 0});
        findings.expect(set.id() == 1, "the id");
        if (set.included()) {
          findings.expect_equal(allreduce(torch::tensor({rank()}), {.op = Sum, .process_set = set}),
                                torch::tensor({2}),
                                "the sum");
        }
        for (const std::vector<Rank>& ranks :
             std::vector<std::vector<Rank>>{{0, 2}, {0, 1, 2}, {}, {3}, {1, 1}}) {
          findings.expect_error(
              ErrorKind::kUsage,
              "process set",
              [&] { add_process_set(ranks); },
              c10::str("a set of ", ranks));
        }
        findings.expect_error<HorovodInternalError>(
            ErrorKind::kMismatch, "", [&] { add_process_set({rank()}); }, "different sets");
        findings.expect(!remove_process_set(global_process_set), "the world was removed");
        findings.expect(remove_process_set(set), "not removed");
        findings.expect(!remove_process_set(set), "removed twice");
        findings.expect(add_process_set({0, 2}).id() == 2, "the next id");
        findings.expect(process_sets().size() == 2, "the number of sets");
      },
      {.mode = InitOptions::ProcessSets::kDynamic});
}

TEST(ProcessSets, AreFixedInStaticMode) {
  on_processes(2, [](Findings& findings) {
    findings.expect_error(
        ErrorKind::kUsage,
        "Set HOROVOD_DYNAMIC_PROCESS_SETS=1 to allow adding process sets",
        [] { add_process_set({0}); },
        "add_process_set");
  });
}

TEST(Shutdown, FailsWhatIsPendingAndReleasesNoMemoryInUse) {
  on_processes(2, [](Findings& findings) {
    std::optional<Handle<Tensor>> handle;
    if (rank() == 0) {
      handle = allreduce_async(torch::ones({1000}), {.name = "alone"});
      static_cast<void>(allreduce_async(torch::ones({1000}), {.name = "released"}));
    }
    barrier();
    shutdown();
    if (handle) {
      try {
        handle->synchronize();
        throw std::runtime_error("no error");
      } catch (const HorovodInternalError& error) {
        // The other rank may have left before this rank has aborted.
        if (!is_loss(error.kind())) throw;
      }
    }
    init();
    findings.expect_equal(allreduce(torch::ones({1})), torch::ones({1}), "after init");
  });
}

TEST(Shutdown, FailsTheOperationForWhichAnotherThreadWaits) {
  on_processes(2, [](Findings& findings) {
    if (rank() == 0) {
      auto handle = allreduce_async(torch::ones({1000}), {.name = "alone"});
      static_cast<void>(allreduce_async(torch::ones({1000}), {.name = "released"}));
      std::optional<ErrorKind> kind;
      std::thread waits([&] {
        try {
          handle.synchronize();
        } catch (const HorovodInternalError& error) {
          kind = error.kind();
        }
      });
      std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the end is the same without it
      shutdown();
      waits.join();
      init();
      findings.expect(kind == ErrorKind::kAborted, "the thread did not get the error");
    } else {
      findings.expect_error<HorovodInternalError>(
          ErrorKind::kAborted,
          "rank 0",
          [] { allreduce(torch::ones({1}), {.name = "other"}); },
          "the shutdown of rank 0");
      shutdown();
    }
    init();
    findings.expect_equal(allreduce(torch::ones({1})), torch::ones({1}), "after init");
  });
}

TEST(Timeline, IsWrittenByRank0OrByEachRankThatThePathNames) {
  const std::string folder = ::testing::TempDir();
  const std::string path = folder + "/hvd-timeline-" + std::to_string(::getpid());
  spawn(2, [&](Rank) {
    ::setenv("HOROVOD_TIMELINE", "DYNAMIC", 1);
    init();
    start_timeline(path);
    allreduce(torch::ones({1}), {.name = "x"});
    start_timeline(path + ".{rank}", MarkCycles::kYes);
    allreduce(torch::ones({1}), {.name = "y"});
    stop_timeline();
    stop_timeline();
    shutdown();
  });
  for (const char* end : {"", ".0", ".1"}) {
    EXPECT_TRUE(std::filesystem::exists(path + end)) << path << end;
    EXPECT_GT(std::filesystem::file_size(path + end), 100U);
    std::filesystem::remove(path + end);
  }
}

TEST(Timeline, NeedsItsVariable) {
  on_processes(1, [](Findings& findings) {
    findings.expect_error(
        ErrorKind::kUsage, "HOROVOD_TIMELINE", [] { start_timeline("/tmp/x"); }, "start_timeline");
  });
}

TEST(AForkedChild, IsNotInitialized) {
  on_processes(1, [](Findings& findings) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(is_initialized() ? 1 : 0);
    int status = 0;
    ::waitpid(child, &status, 0);
    findings.expect(status == 0, "the child is initialized");
  });
}

}  // namespace
}  // namespace peal::hvd
