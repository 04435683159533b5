#include "peal/named/stall_watch.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <future>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/named/testing/ranks.h"

namespace peal::named {
namespace {

using namespace std::chrono_literals;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(StallWatchTest, ReportsWhichRanksAreMissing) {
  std::mutex mutex;
  std::string reports;
  Options options;
  std::barrier all_are_there(3);
  options.stall_warning = 1s;
  options.report = [&](std::string_view text) {
    const std::lock_guard lock(mutex);
    reports += text;
  };
  options.whereabouts = [] { return std::string("in load_data()"); };
  on_ranks(3, options, [&](const Here& here) {
    std::vector<float> data = {1};
    all_are_there.arrive_and_wait();  // so that ranks 0 and 1 submit at about the same time
    if (here.rank == 2) {
      const Deadline deadline = Deadline::after(30s);
      const auto is_reported = [&] {
        const std::lock_guard lock(mutex);
        return !reports.empty();
      };
      while (!is_reported() && !deadline.passed()) std::this_thread::sleep_for(5ms);
    }
    here.named.wait(*here.named.submit(all_reduce("allreduce.x", data, Reduction::kSum)));
    return 0;
  });
  EXPECT_THAT(reports, HasSubstr("Missing ranks:\n2: [allreduce.x]\n    in load_data()"));
  EXPECT_THAT(reports, HasSubstr("Rank 0 has waited"));
  EXPECT_THAT(reports, Not(HasSubstr("Rank 1 has waited")));
}

TEST(StallWatchTest, AStallEndsTheGroupIfAsked) {
  Options options;
  options.stall_warning = 20ms;
  options.stall_shutdown = 100ms;
  const auto results = on_ranks(2, options, [&](const Here& here) {
    std::vector<float> data = {1};
    const std::string name = here.rank == 0 ? "x" : "y";
    return thrown(
        [&] { here.named.wait(*here.named.submit(all_reduce(name, data, Reduction::kSum))); });
  });
  EXPECT_THAT(results, Each(HasSubstr(" failed: ")));
  EXPECT_THAT(results, Each(HasSubstr("for more than 0.1 seconds, the limit of the stall check")));
  EXPECT_THAT(results,
              Each(::testing::AnyOf(HasSubstr("Missing ranks:\n1: [x]"),
                                    HasSubstr("Missing ranks:\n0: [y]"))));
}

/// Collects reports, and waits for them.
class Reports {
 public:
  Report sink() {
    return [this](std::string_view text) {
      const std::lock_guard lock(mutex_);
      text_ += text;
      ++count_;
    };
  }
  std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }
  void wait_for(int count) const {
    const Deadline deadline = Deadline::after(30s);
    while (!deadline.passed()) {
      {
        const std::lock_guard lock(mutex_);
        if (count_ >= count) return;
      }
      std::this_thread::sleep_for(1ms);
    }
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
  int count_ = 0;
};

/// As a program that holds Python's GIL: its place cannot be found until it comes back.
TEST(StallWatchTest, ARankThatCannotTellItsPlaceIsAsked) {
  Reports reports;
  std::atomic<bool> is_free = false;
  Options options;
  options.stall_warning = 100ms;
  options.report = reports.sink();
  options.whereabouts = [&] {
    while (!is_free) std::this_thread::sleep_for(1ms);
    return std::string("in load_data()");
  };
  const auto results = on_ranks(2, options, [&](const Here& here) {
    std::vector<float> data = {1};
    if (here.rank == 1) {
      reports.wait_for(1);
      is_free = true;
      reports.wait_for(2);
    }
    here.named.wait(*here.named.submit(all_reduce("x", data, Reduction::kSum)));
    return data[0];
  });
  EXPECT_THAT(results, Each(2));
  EXPECT_THAT(reports.text(),
              HasSubstr("1: [x]\n    its program did not say within 3 seconds what it is"));
  EXPECT_THAT(reports.text(), HasSubstr("1: [x]\n    in load_data()"));
  EXPECT_THAT(reports.text(), Not(HasSubstr("does not answer")));
}

TEST(StallWatchTest, ARankThatHasJoinedIsNotMissing) {
  Reports reports;
  std::barrier all_are_there(3);
  Options options;
  options.stall_warning = 1s;
  options.report = reports.sink();
  on_ranks(3, options, [&](const Here& here) {
    std::vector<float> data = {1};
    all_are_there.arrive_and_wait();
    if (here.rank == 2) reports.wait_for(1);
    if (here.rank != 1) here.named.wait(*here.named.submit(all_reduce("x", data, Reduction::kSum)));
    here.named.join();
    return 0;
  });
  EXPECT_THAT(reports.text(), HasSubstr("Missing ranks:\n2: [x]"));
  EXPECT_THAT(reports.text(), Not(HasSubstr("\n1: [x]")));
}

TEST(StallWatchTest, AnOperationThatAllRanksHaveDoesNotEndTheGroup) {
  const Stalled stalled{.names = {"x", "y"}, .waited = 5s};
  StandingsOfRanks ranks{.standings = {std::nullopt, Standing{.has = 0b11}, Standing{.has = 0b11}},
                         .self = 0,
                         .global_ranks = {4, 5, 6}};
  EXPECT_EQ(stall_end(stalled, ranks, 1s), "");
  EXPECT_EQ(stall_report(stalled, ranks, 1s), "");
  ranks.standings[1] = Standing{.has = 0b01, .place = "in f()"};
  ranks.standings[2] = std::nullopt;
  EXPECT_EQ(stall_end(stalled, ranks, 1500ms),
            "x has waited on rank 4 for other ranks for more than 1.5 seconds, the limit of the "
            "stall check. Missing ranks:\n5: [y]\n    in f()\n6: does not answer; its process may "
            "be stopped or busy");
  ranks.self = 2;
  EXPECT_EQ(stall_report(stalled, ranks, 1s), "");  // rank 5 reports
}

/// A rank is asked for "a", which it has. Its answer comes when it is asked for "b", which it does
/// not have.
TEST(StallWatchTest, ALateAnswerBelongsToItsQuestion) {
  constexpr auto kWarning = 50ms;
  Reports reports;
  std::atomic<int> answers = 0;
  const Options without_watch{.stall_warning = 0ms};
  on_ranks(2, without_watch, [&](const Here& here) {
    TimePoint first_report = TimePoint::max();  // that rank 1 has not answered; on one thread
    bool has_asked_for_b = false;
    const auto stalled = [&]() -> Stalled {
      if (here.rank == 1) return {};
      if (first_report == TimePoint::max()) return {.names = {"a"}, .waited = 1s};
      if (Clock::now() < first_report + kWarning + 10ms) return {};
      return {.names = {std::exchange(has_asked_for_b, true) ? "c" : "b"}, .waited = 1s};
    };
    StallWatch watch({
        .group = here.group->split(0),
        .warning = kWarning,
        .shutdown = 0ms,
        .answers_within = 200ms,
        .report =
            [&](std::string_view text) {
              reports.sink()(text);
              first_report = std::min(first_report, Clock::now());
            },
        .abort = [](const std::string&) {},
        .stalled = stalled,
        .standing =
            [&](const std::vector<std::string>& names) {
              if (answers == 0) {
                reports.wait_for(1);
                std::this_thread::sleep_for(2 * kWarning);  // until the next question
              }
              ++answers;
              return Standing{.has = names[0] == "b" ? 0u : 1u};
            },
        .whereabouts = {},
    });
    watch.start();
    const Deadline deadline = Deadline::after(30s);
    while (answers < 3 && !deadline.passed()) std::this_thread::sleep_for(1ms);
    return 0;
  });
  EXPECT_THAT(reports.text(), HasSubstr("\n1: does not answer"));
  EXPECT_THAT(reports.text(), HasSubstr("\n1: [b]"));
}

/// A rank that does not answer for `silence`. Returns the reasons for the end of the group, or
/// nothing if it has not ended after `limit`.
std::string ends_after(std::chrono::seconds silence, std::chrono::milliseconds limit) {
  const TemporaryFolder folder;
  std::vector<std::future<std::string>> ranks;
  std::atomic<bool> is_over = false;
  for (Rank rank = 0; rank < 2; ++rank) {
    ranks.push_back(std::async(std::launch::async, [&, rank] {
      const ProcessGroupPtr group = join_group(folder.path(), rank, 2, 3s);
      std::mutex mutex;
      std::string reasons;
      std::atomic<bool> has_slept = false;
      {
        StallWatch watch({
            .group = group->split(0, 0, 30s),
            .warning = 50ms,
            .shutdown = 0ms,
            .answers_within = 100ms,
            .report = silent_report(),
            .abort =
                [&](const std::string& reason) {
                  const std::lock_guard lock(mutex);
                  reasons += reason;
                },
            .stalled =
                [&] { return rank == 0 ? Stalled{.names = {"x"}, .waited = 1s} : Stalled(); },
            .standing =
                [&](const std::vector<std::string>&) {
                  const Deadline end = Deadline::after(silence);
                  const bool is_first = !has_slept.exchange(true);
                  while (is_first && !end.passed() && !is_over) std::this_thread::sleep_for(1ms);
                  return Standing();
                },
            .whereabouts = {},
        });
        watch.start();
        const Deadline end = Deadline::after(limit);
        const auto has_ended = [&] {
          const std::lock_guard lock(mutex);
          return !reasons.empty();
        };
        while (rank == 0 && !has_ended() && !end.passed()) std::this_thread::sleep_for(1ms);
        if (rank == 0) is_over = true;
        while (!is_over) std::this_thread::sleep_for(1ms);
      }
      return reasons;
    }));
  }
  const std::string reasons = ranks[0].get();
  ranks[1].get();
  return reasons;
}

TEST(StallWatchTest, ALateAnswerDoesNotEndTheGroup) { EXPECT_EQ(ends_after(1s, 4500ms), ""); }

TEST(StallWatchTest, ARankThatDoesNotAnswerEndsTheGroup) {
  EXPECT_THAT(ends_after(60s, 30s),
              HasSubstr("rank 1 has not answered for 3 seconds; its process is stopped"));
}

TEST(StallWatchTest, ExceptionsOfTheProgramDoNotEndTheWatch) {
  Reports reports;
  Options options;
  options.stall_warning = 50ms;
  options.report = [&](std::string_view text) {
    reports.sink()(text);
    throw std::runtime_error("no terminal");
  };
  options.whereabouts = []() -> std::string { throw 7; };
  const auto results = on_ranks(2, options, [&](const Here& here) {
    std::vector<float> data = {1};
    if (here.rank == 1) reports.wait_for(2);
    here.named.wait(*here.named.submit(all_reduce("x", data, Reduction::kSum)));
    return data[0];
  });
  EXPECT_THAT(results, Each(2));
  EXPECT_THAT(reports.text(), HasSubstr("Missing ranks:\n1: [x]"));
}

}  // namespace
}  // namespace peal::named
