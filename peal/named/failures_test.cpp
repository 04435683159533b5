// Tests of errors of NamedOperations: of one operation, and of the end of the group.
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/base/testing/sanitized.h"
#include "peal/named/named_operations.h"
#include "peal/named/testing/ranks.h"
#include "peal/observe/dump.h"
#include "peal/observe/why.h"

namespace peal::named {
namespace {

using namespace std::chrono_literals;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Failures, ReportsAMismatchOnAllRanksAndContinues) {
  const auto results = on_ranks(3, {}, [](const Here& here) {
    std::vector<float> data(here.rank == 2 ? 5 : 4, 1);
    const auto bad = here.named.submit(all_reduce("x", data, Reduction::kSum));
    const std::string text = thrown([&] { here.named.wait(*bad); });
    std::vector<float> good = {1};
    here.named.wait(*here.named.submit(all_reduce("x", good, Reduction::kSum)));
    return text + fmt::format(" then {}", good[0]);
  });
  EXPECT_THAT(
      results,
      Each("mismatch: Mismatched shapes of x: ranks 0 and 1 have [4], but rank 2 has [5] then 3"));
}

TEST(Failures, RefusesDifferentOptionsOnAllRanks) {
  const auto results = on_ranks(2, {}, [](const Here& here) {
    const ProcessGroupPtr other = here.group->split(0);
    return thrown([&] { NamedOperations(other, {.cache_capacity = 1024 + here.rank}); });
  });
  EXPECT_THAT(results, Each(HasSubstr("is 1024 on rank 0, but 1025 on rank 1")));
}

TEST(Failures, RefusesANameInFlight) {
  std::atomic<bool> is_refused = false;
  const auto results = on_ranks(2, {}, [&](const Here& here) {
    std::vector<float> data = {1}, other = {1};
    std::string text;
    if (here.rank == 0) {
      const auto first = here.named.submit(all_reduce("x", data, Reduction::kSum));
      text = thrown([&] { here.named.submit(all_reduce("x", other, Reduction::kSum)); });
      is_refused = true;
      here.named.wait(*first);
    } else {
      while (!is_refused) std::this_thread::sleep_for(1ms);
      here.named.wait(*here.named.submit(all_reduce("x", data, Reduction::kSum)));
    }
    return text + fmt::format("{}", data[0]);
  });
  EXPECT_THAT(results[0], HasSubstr("usage: Requested to allreduce"));
  EXPECT_THAT(results[1], "2");
}

TEST(Failures, AnAbortFailsWhatIsPendingOnAllRanks) {
  const auto results = on_ranks(2, {}, [](const Here& here) {
    std::vector<float> data = {1};
    if (here.rank == 1) {
      std::this_thread::sleep_for(50ms);
      here.group->abort("enough");
      return thrown(
          [&] { here.named.wait(*here.named.submit(all_reduce("x", data, Reduction::kSum))); });
    }
    const auto operation = here.named.submit(all_reduce("x", data, Reduction::kSum));
    const std::string first = thrown([&] { here.named.wait(*operation); });
    EXPECT_NE(here.named.ended_by(), nullptr);
    EXPECT_NE(thrown([&] { here.named.join(); }), "no error");
    return first;
  });
  EXPECT_THAT(results, Each(HasSubstr("enough")));
}

TEST(Failures, TheEndOfARankFailsTheOperationsOfTheOthers) {
  const auto results = on_ranks(2, {}, [](const Here& here) -> std::string {
    if (here.rank == 1) return "left";
    std::vector<float> data = {1};
    return thrown(
        [&] { here.named.wait(*here.named.submit(all_reduce("x", data, Reduction::kSum))); });
  });
  EXPECT_THAT(results[0], HasSubstr("peer_lost"));
}

TEST(Failures, EndsWithPendingOperations) {
  on_ranks(2, {}, [](const Here& here) {
    static std::vector<float> data = {1};
    // All ranks have begun. The other rank may already have ended the group.
    thrown([&] { here.group->barrier(); });
    if (here.rank == 0) here.named.submit(all_reduce("x", data, Reduction::kSum));
    return 0;
  });
}

TEST(Failures, NameTheOperationsOfTheProgram) {
  const auto results = on_ranks(2, {}, [](const Here& here) {
    std::vector<float> a = {1}, b = {1};
    std::vector<std::string> texts;
    if (here.rank == 1) return texts;
    const auto first = here.named.submit(all_reduce("allreduce.conv1.weight", a, Reduction::kSum));
    const auto second = here.named.submit(all_reduce("conv1.bias", b, Reduction::kSum));
    for (const OperationPtr& operation : {first, second}) {
      try {
        here.named.wait(*operation);
      } catch (const Error& error) {
        texts.emplace_back(error.what());
        texts.push_back(error.details().operation);
        EXPECT_EQ(error.kind(), ErrorKind::kPeerLost);
        EXPECT_EQ(error.details().rank, 1);
      }
    }
    return texts;
  });
  ASSERT_EQ(results[0].size(), 4U);
  EXPECT_THAT(results[0][0],
              ::testing::StartsWith("peer_lost: allreduce \"conv1.weight\" failed: rank 1 ("));
  EXPECT_EQ(results[0][1], "allreduce \"conv1.weight\"");
  EXPECT_THAT(results[0][2],
              ::testing::StartsWith("peer_lost: allreduce \"conv1.bias\" failed: rank 1 ("));
  for (const std::string& text : results[0]) {
    EXPECT_THAT(text, Not(HasSubstr("all_reduce")));
    EXPECT_THAT(text, Not(HasSubstr("tag 2")));
  }
}

TEST(Failures, TheFlightRecordShowsTheNamesInFlight) {
  const TemporaryFolder folder;
  ASSERT_EQ(::setenv("PEAL_FLIGHT_DIR", folder.path().c_str(), 1), 0);
  std::atomic<int> submitted = 0;
  std::atomic<bool> is_diagnosed = false;
  std::vector<observe::Diagnosis> diagnoses(1);
  on_ranks(2, {}, [&](const Here& here) {
    std::vector<float> x = {1}, y = {1};
    const auto mine = here.rank == 0
                          ? here.named.submit(all_reduce("allreduce.x", x, Reduction::kSum))
                          : here.named.submit(all_reduce("allreduce.y", y, Reduction::kSum));
    ++submitted;
    while (submitted < 2) std::this_thread::sleep_for(1ms);
    if (here.rank == 0) {
      const std::vector<std::string> paths = {folder.path().string()};
      diagnoses[0] = observe::diagnose(observe::read_dumps(paths).flights, {});
      is_diagnosed = true;
    }
    while (!is_diagnosed) std::this_thread::sleep_for(1ms);
    const auto other = here.rank == 0
                           ? here.named.submit(all_reduce("allreduce.y", y, Reduction::kSum))
                           : here.named.submit(all_reduce("allreduce.x", x, Reduction::kSum));
    here.named.wait(*mine);
    here.named.wait(*other);
    return 0;
  });
  ::unsetenv("PEAL_FLIGHT_DIR");
  EXPECT_EQ(diagnoses[0].cause, observe::Diagnosis::Cause::kMissing);
  EXPECT_THAT(diagnoses[0].sentence,
              ::testing::ContainsRegex("has not submitted allreduce \"[xy]\""));
  EXPECT_THAT(
      diagnoses[0].evidence,
      ::testing::IsSupersetOf({HasSubstr("allreduce \"x\""), HasSubstr("allreduce \"y\"")}));
  for (const std::string& line : diagnoses[0].evidence) {
    EXPECT_THAT(line, Not(HasSubstr("recv of 8192")));
  }
}

TEST(Failures, TheDiagnosisShowsTheOperationsOfAKilledRank) {
  const TemporaryFolder folder;
  const std::string flights = (folder.path() / "flights").string();
  ASSERT_EQ(::setenv("PEAL_FLIGHT_DIR", flights.c_str(), 1), 0);
  const pid_t child = ::fork();
  const Rank rank = child == 0 ? 1 : 0;
  const ProcessGroupPtr group = join_group(folder.path(), rank, 2);
  std::string text;
  {
    NamedOperations named(group, {});
    std::vector<float> data = {1};
    const auto operation =
        named.submit(all_reduce(rank == 1 ? "allreduce.x" : "allreduce.y", data, Reduction::kSum));
    if (rank == 1) {
      std::this_thread::sleep_for(50ms);
      ::raise(SIGKILL);
    }
    text = thrown([&] { named.wait(*operation); });
  }
  ::unsetenv("PEAL_FLIGHT_DIR");
  ::waitpid(child, nullptr, 0);
  EXPECT_THAT(text, ::testing::StartsWith("peer_lost: allreduce \"y\" failed: rank 1 ("));
  EXPECT_THAT(text, ::testing::EndsWith("rank 0 of the group world was in allreduce \"y\""));

  const std::vector<std::string> paths = {flights};
  const std::vector<observe::RankEnd> ends = {{.rank = 1,
                                               .pid = static_cast<std::uint64_t>(child),
                                               .at = observe::wall_now(),
                                               .state = observe::RankEnd::State::kKilled,
                                               .text = "was killed by SIGKILL"}};
  const auto diagnosis = observe::diagnose(observe::read_dumps(paths).flights, ends);
  EXPECT_THAT(diagnosis.sentence,
              ::testing::StartsWith("The process of rank 1 was killed by SIGKILL, "));
  EXPECT_THAT(diagnosis.sentence, HasSubstr("allreduce \"x\""));
  EXPECT_THAT(diagnosis.evidence,
              ::testing::Contains(HasSubstr("rank 0 of the group world was in allreduce \"y\"")));
  for (const std::string& line : diagnosis.evidence) {
    EXPECT_THAT(line, Not(HasSubstr("all_reduce #")));
    EXPECT_THAT(line, Not(HasSubstr("8192")));
  }
}

TEST(Failures, GroupsOfDifferentSizesAreAMismatchOnAllRanks) {
  const auto results = on_ranks(3, {}, [](const Here& here) {
    std::string texts;
    for (int step = 0; step < 3; ++step) {  // in the second step, the groups are remembered
      const int size = step == 1 && here.rank == 1 ? 3 : 2;
      std::vector<std::vector<float>> data(static_cast<std::size_t>(size), std::vector<float>{1});
      std::vector<NamedOperations::Submission> group;
      for (int i = 0; i < size; ++i) {
        group.push_back(all_reduce(fmt::format("g_{}of{}", i + 1, size),
                                   data[static_cast<std::size_t>(i)],
                                   Reduction::kSum));
        group.back().request.group = "g";
        group.back().request.group_size = size;
      }
      std::string text;
      for (const OperationPtr& operation : here.named.submit(std::move(group))) {
        text = thrown([&] { here.named.wait(*operation); });
      }
      texts += fmt::format("{} {}; ", text, data[0][0]);
    }
    return texts;
  });
  EXPECT_THAT(results,
              Each("no error 3; mismatch: Mismatched sizes of the group g: ranks 0 and 2 have 2 "
                   "tensors, but rank 1 has 3 tensors 1; no error 3; "));
}

TEST(Failures, AThreadThatCannotStartLeavesNothingBehind) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer needs the address space";
  const auto results = on_ranks(1, {}, [](const Here& here) {
    std::vector<float> data = {3};
    const auto submit = [&] { return here.named.submit(all_reduce("x", data, Reduction::kSum)); };
    ::pthread_attr_t attributes;
    ::pthread_getattr_default_np(&attributes);
    std::size_t stack = 0;
    ::pthread_attr_getstacksize(&attributes, &stack);
    ::pthread_attr_setstacksize(&attributes, std::size_t{1} << 36);  // so that a start fails
    ::pthread_setattr_default_np(&attributes);
    ::rlimit limit{};
    ::getrlimit(RLIMIT_AS, &limit);
    ::rlimit low = limit;
    low.rlim_cur = std::size_t{1} << 36;
    ::setrlimit(RLIMIT_AS, &low);
    std::string text = thrown(submit);
    ::setrlimit(RLIMIT_AS, &limit);
    ::pthread_attr_setstacksize(&attributes, stack);
    ::pthread_setattr_default_np(&attributes);
    here.named.wait(*submit());
    const auto second = submit();
    const Deadline deadline = Deadline::after(30s);
    while (!here.named.poll(*second) && !deadline.passed()) std::this_thread::sleep_for(1ms);
    return text + fmt::format(" then {}", second->is_completed());
  });
  EXPECT_THAT(results[0], ::testing::StartsWith("resource: cannot start a thread"));
  EXPECT_THAT(results[0], ::testing::EndsWith("then true"));
}

TEST(Failures, AnInterruptOnTheBackgroundThreadReachesTheProgram) {
  Options options;
  std::atomic<bool> interrupts = false;
  options.interrupt = [&] {
    if (interrupts.exchange(false)) throw std::runtime_error("Ctrl-C");
  };
  const auto results = on_ranks_with(
      2,
      [&](Rank rank) { return rank == 0 ? options : Options(); },
      [&](const Here& here) -> std::string {
        std::vector<float> x = {1}, y = {1};
        if (here.rank == 1) {  // takes part in rounds, so that rank 0 pauses between them
          const auto other = here.named.submit(all_reduce("y", y, Reduction::kSum));
          return thrown([&] { here.named.wait(*other); });
        }
        const auto pending = here.named.submit(all_reduce("x", x, Reduction::kSum));
        interrupts = true;
        const Deadline deadline = Deadline::after(30s);
        while (!pending->is_completed() && !deadline.passed()) std::this_thread::sleep_for(1ms);
        std::string text;
        try {
          here.named.wait(*pending);
        } catch (const Error&) {
          text = "an Error";
        } catch (const std::runtime_error& error) {
          text = error.what();
        }
        return text + "; " + thrown([&] { here.named.wait(*pending); });
      });
  EXPECT_THAT(results[0], ::testing::StartsWith("Ctrl-C; aborted: allreduce \"x\" failed: "));
  EXPECT_THAT(results[1], HasSubstr("Ctrl-C"));
}

TEST(Failures, AForkedChildGetsAClearError) {
  on_ranks(1, {}, [](const Here& here) {
    std::vector<float> data = {1};
    const auto operation =
        here.named.submit(all_reduce("x", data, Reduction::kSum), NamedOperations::Waits::kAtOnce);
    const pid_t child = ::fork();
    if (child == 0) {
      int wrong = 0;
      const auto check = [&](auto call) {
        if (thrown(call).find("usage: this process was forked from rank 0") != 0) ++wrong;
      };
      check([&] { here.named.wait(*operation); });
      check([&] { here.named.poll(*operation); });
      check([&] { here.named.submit(all_reduce("y", data, Reduction::kSum)); });
      check([&] { here.named.join(); });
      ::_exit(wrong);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    here.named.wait(*operation);
    return 0;
  });
}

TEST(Failures, RefusesANameThatIsTooLong) {
  const auto results = on_ranks(1, {}, [](const Here& here) {
    std::vector<float> data = {1};
    const std::string longest(64 * 1024, 'x');
    here.named.wait(*here.named.submit(all_reduce(longest, data, Reduction::kSum)));
    return thrown([&] { here.named.submit(all_reduce(longest + "x", data, Reduction::kSum)); });
  });
  EXPECT_THAT(results[0], ::testing::StartsWith("usage: the name \"xxx"));
  EXPECT_THAT(results[0], ::testing::EndsWith("has 65537 bytes, but the limit is 65536"));
}

}  // namespace
}  // namespace peal::named
