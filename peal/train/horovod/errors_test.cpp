#include "peal/train/horovod/errors.h"

#include <sys/wait.h>
#include <unistd.h>

#include "peal/train/horovod/testing/processes.h"

namespace peal::hvd {
namespace {

using testing::Findings;
using testing::on_processes;

Tensor ones(std::int64_t count) { return torch::ones({count}); }

TEST(HorovodErrors, OfAWrongCallAreThrownByTheCall) {
  on_processes(
      2,
      [](Findings& findings) {
        const auto expect_usage = [&](const std::string& part, const auto& call) {
          findings.expect_error(ErrorKind::kUsage, part, call, part);
        };
        const ProcessSet first(1);
        expect_usage("is not registered",
                     [] { allreduce(ones(1), {.process_set = ProcessSet(9)}); });
        expect_usage("root rank 2 is not in the process set", [] { broadcast(ones(1), 2); });
        if (rank() == 1) {
          expect_usage("Allreduce: Rank 1 is not a member of the provided process set.",
                       [&] { allreduce(ones(1), {.process_set = first}); });
        } else {
          expect_usage("root rank 1 is not in the process set",
                       [&] { broadcast(ones(1), 1, {.process_set = first}); });
        }
        expect_usage("at least one dimension", [] { allgather(torch::tensor(1.0)); });
        expect_usage("at least one dimension", [] { reducescatter(torch::tensor(1.0)); });
        expect_usage("not divisible", [] { alltoall(ones(3)); });
        expect_usage("splits for 2 ranks", [] { alltoall(ones(3), std::vector<std::int64_t>{3}); });
        expect_usage("add up to 4", [] { alltoall(ones(3), std::vector<std::int64_t>{2, 2}); });
        expect_usage("undefined tensor", [] { allreduce(Tensor()); });
        expect_usage("sparse tensor", [] { sparse_allreduce(ones(1)); });
        findings.expect_error(
            ErrorKind::kUnsupported,
            "layout",
            [] { allreduce(torch::eye(2).to_sparse()); },
            "a sparse tensor");

        if (rank() == 0) {  // rank 1 comes later, so the operation is in flight
          const auto early = allreduce_async(ones(1), {.name = "twice"});
          expect_usage("same name as another tensor",
                       [] { allreduce_async(ones(1), {.name = "twice"}); });
          barrier();
          synchronize(early);
          findings.expect_equal(synchronize(early), ones(1), "the same result");
        } else {
          barrier();
          allreduce(ones(1), {.name = "twice"});
        }
      },
      {.process_sets = {{0}}});
}

TEST(HorovodErrors, OfRanksThatDisagreeAreThrownOnAllRanksAndTheGroupStaysUsable) {
  on_processes(2, [](Findings& findings) {
    const auto expect_mismatch = [&](const std::string& part, const auto& start) {
      const auto handle = start();  // does not throw
      findings.expect_error<HorovodInternalError>(
          ErrorKind::kMismatch, part, [&] { handle.synchronize(); }, part);
      findings.expect_equal(allreduce(ones(1), {.name = "x", .op = Sum}), ones(1) * 2, "later");
    };
    const bool is_first = rank() == 0;
    expect_mismatch("Mismatched data types", [&] {
      return allreduce_async(ones(2).to(is_first ? torch::kFloat32 : torch::kInt32), {.name = "a"});
    });
    expect_mismatch("Mismatched data types of allreduce.x: rank 0 has f32, but rank 1 has f64",
                    [&] {
                      return allreduce_async(
                          ones(2).to(is_first ? torch::kFloat32 : torch::kFloat64), {.name = "x"});
                    });
    expect_mismatch(
        "Mismatched sizes of the group grouped_allreduce.g: rank 0 has 2 tensors, but rank 1 has 3 "
        "tensors",
        [&] { return grouped_allreduce_async(Tensors(is_first ? 2 : 3, ones(1)), {.name = "g"}); });
    expect_mismatch("rank 0 has [2], but rank 1 has [3]",
                    [&] { return allreduce_async(ones(is_first ? 2 : 3), {.name = "a"}); });
    expect_mismatch("reduction", [&] {
      return allreduce_async(ones(2), {.name = "a", .op = is_first ? Sum : Max});
    });
    expect_mismatch("scale", [&] {
      return allreduce_async(ones(2), {.name = "a", .prescale_factor = is_first ? 1.0 : 2.0});
    });
    expect_mismatch("root", [&] { return broadcast_async(ones(2), rank(), {.name = "a"}); });
    expect_mismatch("shape", [&] {
      return allgather_async(torch::ones({2, is_first ? 2 : 3}), {.name = "a"});
    });
  });
}

TEST(HorovodErrors, OfAForkedChildAreClear) {
  on_processes(2, [](Findings& findings) {
    if (rank() == 1) {  // so that the operation is in flight on rank 0
      barrier();
      allreduce(ones(1), {.name = "x"});
      return;
    }
    const auto pending = allreduce_async(ones(1), {.name = "x", .op = Average});
    const pid_t child = ::fork();
    if (child == 0) {
      int wrong = 0;
      const auto expect_usage = [&](const auto& call) {
        try {
          call();
          ++wrong;
        } catch (const Error& error) {
          const std::string text = error.what();
          if (text.find("this process was forked from rank 0") == std::string::npos) ++wrong;
        }
      };
      expect_usage([&] { pending.poll(); });
      expect_usage([&] { pending.synchronize(); });
      ::_exit(wrong);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    if (status != 0) throw std::runtime_error("no clear error in the child");
    barrier();
    findings.expect_equal(synchronize(pending), ones(1), "the parent continues");
  });
}

TEST(HorovodErrors, OfEarlyCallsSayThatInitIsMissing) {
  spawn(1, [](Rank) {
    for (const auto& call : std::vector<std::function<void()>>{
             [] { rank(); }, [] { allreduce(ones(1)); }, [] { ProcessSet(0).size(); }}) {
      try {
        call();
        throw std::runtime_error("no error");
      } catch (const Error& error) {
        const std::string text = error.what();
        if (text != "usage: Horovod has not been initialized; use hvd.init().") throw;
      }
    }
  });
}

TEST(HorovodErrors, OfADeadRankReachTheOthersWithinASecond) {
  const auto run = [] {
    spawn(3, [](Rank) {
      init();
      barrier();
      if (rank() == 1) ::_exit(7);  // without a word
      const TimePoint start = Clock::now();
      try {
        allreduce(ones(1), {.name = "x"});
      } catch (const HorovodInternalError& error) {
        const std::string text = error.what();  // after "peer_lost: "
        const bool is_as_promised = !error.is_mismatch() && error.details().rank == 1 &&
                                    Clock::now() - start < std::chrono::seconds(1) &&
                                    text.find("allreduce \"x\" failed: rank 1 (") == 11;
        if (is_as_promised) return;
        throw;
      }
      throw std::runtime_error("no error");
    });
  };
  try {
    run();
    FAIL() << "rank 1 did not end";
  } catch (const SpawnError& error) {
    EXPECT_FALSE(error.errors()[0].has_value()) << error.errors()[0]->what();
    EXPECT_TRUE(error.errors()[1].has_value());
    EXPECT_FALSE(error.errors()[2].has_value()) << error.errors()[2]->what();
  }
}

}  // namespace
}  // namespace peal::hvd
