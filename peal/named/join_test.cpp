// Tests of NamedOperations::join.
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/named/named_operations.h"
#include "peal/named/testing/ranks.h"

namespace peal::named {
namespace {

using namespace std::chrono_literals;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Join, JoinContributesNeutralElements) {
  const auto results = on_ranks(3, {}, [](const Here& here) {
    std::vector<float> all;
    for (int step = 0; step <= here.rank; ++step) {
      for (const Reduction op : {Reduction::kSum,
                                 Reduction::kAverage,
                                 Reduction::kMin,
                                 Reduction::kMax,
                                 Reduction::kProduct}) {
        std::vector<float> data = {-2};
        here.named.wait(
            *here.named.submit(all_reduce(fmt::format("{}{}", name_of(op), step), data, op)));
        if (step == 2) all.push_back(data[0]);
      }
    }
    all.push_back(static_cast<float>(here.named.join()));
    std::vector<float> after = {1};
    here.named.wait(*here.named.submit(all_reduce("after", after, Reduction::kSum)));
    all.push_back(after[0]);
    return all;
  });
  EXPECT_THAT(results[0], ElementsAre(2, 3));
  EXPECT_THAT(results[1], ElementsAre(2, 3));
  EXPECT_THAT(results[2], ElementsAre(-2, ::testing::FloatNear(-2.f / 3, 1e-6f), -2, -2, -2, 2, 3));
}

TEST(Join, JoinRefusesOtherOperations) {
  const auto results = on_ranks(2, {}, [](const Here& here) {
    std::string text;
    if (here.rank == 0) {
      std::vector<float> in = {1}, out;
      text = thrown(
          [&] { here.named.wait(*here.named.submit(with_kind(Kind::kAllGather, "g", in, out))); });
    }
    here.named.join();
    return text;
  });
  EXPECT_THAT(results[0], HasSubstr("Allgather is not supported with Join at this time"));
}

TEST(Join, RanksWithoutDataCanTakePartInAllOperations) {
  const auto results =
      on_ranks(2, {.while_joined = Options::WhileJoined::kAll}, [](const Here& here) {
        std::vector<float> all;
        if (here.rank == 0) {
          std::vector<float> in = {1, 2}, out, block(1), exchanged;
          here.named.wait(*here.named.submit(with_kind(Kind::kAllGather, "g", in, out)));
          auto scatter = with_kind(Kind::kReduceScatter, "rs", in, block);
          here.named.wait(*here.named.submit(std::move(scatter)));
          auto exchange = with_kind(Kind::kAllToAll, "a2a", in, exchanged);
          exchange.memory.splits = {1, 1};
          here.named.wait(*here.named.submit(std::move(exchange)));
          auto broadcast = with_kind(Kind::kBroadcast, "b", in, in);
          here.named.wait(*here.named.submit(std::move(broadcast)));
          all = {out[0], out[1], block[0], static_cast<float>(exchanged.size()), in[1]};
        }
        here.named.join();
        return all;
      });
  EXPECT_THAT(results[0], ElementsAre(1, 2, 1, 1, 2));
}

/// A thread that comes late takes part in a second join.
TEST(Join, ThreadsThatJoinAtOnceTakePartInOneJoin) {
  std::atomic<int> about_to_join = 0;
  std::atomic<bool> have_joined = false;
  const auto results = on_ranks(2, {}, [&](const Here& here) {
    if (here.rank == 0) {
      std::vector<Rank> lasts(2, -1);
      std::vector<std::thread> threads;
      for (Rank& last : lasts) {
        threads.emplace_back([&] {
          ++about_to_join;
          last = here.named.join();
        });
      }
      for (std::thread& thread : threads) thread.join();
      have_joined = true;
      lasts.push_back(static_cast<Rank>(here.named.joins()));
      return lasts;
    }
    while (about_to_join < 2) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(500ms);
    std::vector<Rank> lasts = {here.named.join(), 1};
    const Deadline deadline = Deadline::after(10s);
    while (!have_joined && !deadline.passed()) std::this_thread::sleep_for(1ms);
    if (!have_joined) here.named.join();  // so that the test ends
    lasts.push_back(static_cast<Rank>(here.named.joins()));
    return lasts;
  });
  EXPECT_THAT(results, Each(ElementsAre(1, 1, 1)));
}

/// While the main thread of rank 1 has joined, another thread of it submits an operation that the
/// other rank submits at the same time.
TEST(Join, AnotherThreadSubmitsMeanwhile) {
  const auto results = on_ranks(2, {}, [](const Here& here) {
    std::string wrong;
    std::thread thread;
    std::vector<float> late = {1};
    OperationPtr operation;
    if (here.rank == 1) {
      thread = std::thread([&] {
        std::this_thread::sleep_for(2ms);
        operation = here.named.submit(all_reduce("late", late, Reduction::kSum),
                                      NamedOperations::Waits::kAtOnce);
      });
    } else {
      for (int i = 0; i < 400; ++i) {
        std::vector<float> data = {1};
        here.named.wait(*here.named.submit(all_reduce("late", data, Reduction::kSum)));
        if (data[0] != 1 && data[0] != 2) wrong += fmt::format("{} ", data[0]);
      }
    }
    here.named.join();
    if (thread.joinable()) thread.join();
    if (here.rank == 1) {
      if (!operation->is_completed()) return std::string("pending");
      return fmt::format("{}", late[0]);
    }
    return wrong;
  });
  EXPECT_EQ(results[0], "");
  EXPECT_THAT(results[1], ::testing::AnyOf("2", "pending"));
}

}  // namespace
}  // namespace peal::named
