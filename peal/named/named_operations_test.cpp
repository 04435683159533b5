#include "peal/named/named_operations.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "peal/named/testing/ranks.h"

namespace peal::named {
namespace {

using namespace std::chrono_literals;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class OnRanks : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(NamedOperations, OnRanks, ::testing::Range(1, 5));

TEST_P(OnRanks, ReducesByEachOperator) {
  const auto results = on_ranks(GetParam(), {}, [](const Here& here) {
    std::string wrong;
    const auto check = [&](std::string_view what, double value, double expected) {
      if (std::abs(value - expected) > 1e-6) wrong += fmt::format("{}: {}; ", what, value);
    };
    const double n = here.size;
    for (int step = 0; step < 3; ++step) {
      for (const Reduction op : {Reduction::kSum,
                                 Reduction::kAverage,
                                 Reduction::kMin,
                                 Reduction::kMax,
                                 Reduction::kProduct}) {
        std::vector<float> data(100, static_cast<float>(here.rank + 1));
        const auto operation = here.named.submit(
            all_reduce(fmt::format("{}", name_of(op)), data, op), NamedOperations::Waits::kAtOnce);
        here.named.wait(*operation);
        const double sum = n * (n + 1) / 2;
        const double expected = op == Reduction::kSum       ? sum
                                : op == Reduction::kAverage ? sum / n
                                : op == Reduction::kMin     ? 1
                                : op == Reduction::kMax     ? n
                                                            : std::tgamma(n + 1);
        check(name_of(op), data[99], expected);
      }
    }
    return wrong;
  });
  EXPECT_THAT(results, Each(""));
}

TEST_P(OnRanks, ScalesAndTruncatesIntegers) {
  const auto results = on_ranks(GetParam(), {}, [](const Here& here) {
    std::vector<std::int32_t> data = {7, -7, 49};
    auto submission = all_reduce("x", data, Reduction::kAverage);
    here.named.wait(*here.named.submit(std::move(submission)));
    std::vector<std::int32_t> scaled = {7, -7, 3};
    submission = all_reduce("y", scaled, Reduction::kMax);
    submission.request.prescale = 0.5;
    submission.request.postscale = 3;
    here.named.wait(*here.named.submit(std::move(submission)));
    data.insert(data.end(), scaled.begin(), scaled.end());
    std::vector<std::int32_t> rounded_once = {7, -3};  // trunc(n * 7 * 0.5 / n)
    submission = all_reduce("z", rounded_once, Reduction::kAverage);
    submission.request.postscale = 0.5;
    here.named.wait(*here.named.submit(std::move(submission)));
    data.insert(data.end(), rounded_once.begin(), rounded_once.end());
    return data;
  });
  EXPECT_THAT(results, Each(ElementsAre(7, -7, 49, 9, -9, 3, 3, -1)));
}

TEST_P(OnRanks, IntegersThatAreScaledBeyondTheirTypeBecomeTheNearestValue) {
  const auto results = on_ranks(GetParam(), {}, [](const Here& here) {
    std::vector<std::int64_t> data = {1, -1, std::numeric_limits<std::int64_t>::max(), 0};
    auto submission = all_reduce("x", data, Reduction::kMax);
    submission.request.postscale = 1e30;
    here.named.wait(*here.named.submit(std::move(submission)));
    std::vector<std::int8_t> small = {100, -100};
    submission = all_reduce("y", small, Reduction::kMin);
    submission.request.prescale = 1.5;
    here.named.wait(*here.named.submit(std::move(submission)));
    data.insert(data.end(), small.begin(), small.end());
    return data;
  });
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_THAT(results, Each(ElementsAre(kMost, -kMost - 1, kMost, 0, 127, -128)));
}

TEST_P(OnRanks, RunsAThousandNamesInRandomOrder) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  const auto results = on_ranks(GetParam(), {}, [seed](const Here& here) {
    std::mt19937 random(seed + static_cast<unsigned>(here.rank));
    int wrong = 0;
    for (int step = 0; step < 3; ++step) {
      std::vector<std::vector<float>> data(1000);
      std::vector<std::size_t> order(data.size());
      std::iota(order.begin(), order.end(), 0);
      std::ranges::shuffle(order, random);
      std::vector<OperationPtr> operations(data.size());
      for (const std::size_t i : order) {
        data[i].assign(i % 7, static_cast<float>(i) + static_cast<float>(here.rank));
        operations[i] =
            here.named.submit(all_reduce(fmt::format("x{}", i), data[i], Reduction::kSum));
      }
      std::ranges::shuffle(order, random);
      for (const std::size_t i : order) here.named.wait(*operations[i]);
      const auto n = static_cast<float>(here.size);
      for (std::size_t i = 0; i < data.size(); ++i) {
        const float expected = n * static_cast<float>(i) + n * (n - 1) / 2;
        wrong += static_cast<int>(
            std::ranges::count_if(data[i], [&](float value) { return value != expected; }));
      }
    }
    return wrong;
  });
  EXPECT_THAT(results, Each(0));
}

TEST_P(OnRanks, GathersDifferentNumbersOfRows) {
  const int n = GetParam();
  const auto results = on_ranks(n, {}, [](const Here& here) {
    std::vector<std::int64_t> all;
    for (int step = 0; step < 2; ++step) {
      std::vector<std::int64_t> in(static_cast<std::size_t>(here.rank + step), here.rank), out;
      std::vector<std::int64_t> same = {here.rank * 10}, same_out;
      std::vector<NamedOperations::Submission> both;
      both.push_back(with_kind(Kind::kAllGather, "a", in, out));
      both.push_back(with_kind(Kind::kAllGather, "b", same, same_out));
      for (const auto& operation : here.named.submit(std::move(both))) here.named.wait(*operation);
      all.insert(all.end(), out.begin(), out.end());
      all.insert(all.end(), same_out.begin(), same_out.end());
    }
    return all;
  });
  std::vector<std::int64_t> expected;
  for (int step = 0; step < 2; ++step) {
    for (int rank = 0; rank < n; ++rank) expected.insert(expected.end(), rank + step, rank);
    for (int rank = 0; rank < n; ++rank) expected.push_back(rank * 10);
  }
  EXPECT_THAT(results, Each(expected));
}

TEST_P(OnRanks, BroadcastsExchangesAndScatters) {
  const int n = GetParam();
  const auto results = on_ranks(n, {}, [](const Here& here) {
    const auto size = static_cast<std::size_t>(here.size);
    std::vector<float> root = {static_cast<float>(here.rank), 5};
    auto submission = with_kind(Kind::kBroadcast, "root", root, root);
    submission.request.root = here.size - 1;
    here.named.wait(*here.named.submit(std::move(submission)));

    std::vector<float> in(size * 2, static_cast<float>(here.rank)), out;
    submission = with_kind(Kind::kAllToAll, "a2a", in, out);
    submission.memory.splits.assign(size, 2);
    here.named.wait(*here.named.submit(std::move(submission)));

    std::vector<float> rows(size + 1, 1), block(here.rank == 0 ? 2 : 1);
    submission = with_kind(Kind::kReduceScatter, "rs", rows, block);
    here.named.wait(*here.named.submit(std::move(submission)));

    std::string wrong;
    if (root[0] != static_cast<float>(here.size - 1)) wrong += "broadcast; ";
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (out[i] != static_cast<float>(i / 2)) wrong += "alltoall; ";
    }
    if (out.size() != 2 * size) wrong += "size of alltoall; ";
    for (const float value : block) {
      if (value != static_cast<float>(here.size)) wrong += "reducescatter; ";
    }
    return wrong;
  });
  EXPECT_THAT(results, Each(""));
}

TEST_P(OnRanks, AdasumAddsOrthogonalVectorsAndKeepsEqualOnes) {
  const int n = GetParam();
  const auto results = on_ranks(n, {}, [](const Here& here) {
    std::vector<double> orthogonal(static_cast<std::size_t>(here.size), 0);
    orthogonal[static_cast<std::size_t>(here.rank)] = here.rank + 1;
    std::vector<double> equal = {3, 4};
    here.named.wait(*here.named.submit(all_reduce("o", orthogonal, Reduction::kAdasum)));
    here.named.wait(*here.named.submit(all_reduce("e", equal, Reduction::kAdasum)));
    orthogonal.insert(orthogonal.end(), equal.begin(), equal.end());
    return orthogonal;
  });
  std::vector<double> expected(static_cast<std::size_t>(n));
  std::iota(expected.begin(), expected.end(), 1);
  expected.insert(expected.end(), {3, 4});
  for (const auto& result : results) {
    EXPECT_THAT(result, ::testing::Pointwise(::testing::DoubleNear(1e-12), expected));
  }
}

TEST(NamedOperations, AdasumFollowsTheFormulaAndGivesTheSameBits) {
  const auto results = on_ranks(2, {}, [](const Here& here) {
    std::vector<double> data =
        here.rank == 0 ? std::vector<double>{1, 2} : std::vector<double>{3, -1};
    here.named.wait(*here.named.submit(all_reduce("x", data, Reduction::kAdasum)));
    return data;
  });
  const double dot = 1, a = 1 - dot / (2 * 5), b = 1 - dot / (2 * 10);
  EXPECT_NEAR(results[0][0], a * 1 + b * 3, 1e-12);
  EXPECT_NEAR(results[0][1], a * 2 - b * 1, 1e-12);
  EXPECT_EQ(results[0], results[1]);
}

TEST(NamedOperations, BarrierDoesNotWaitForPendingOperations) {
  const auto results = on_ranks(2, {}, [](const Here& here) {
    std::vector<float> data = {1};
    OperationPtr pending;
    if (here.rank == 0) pending = here.named.submit(all_reduce("x", data, Reduction::kSum));
    NamedOperations::Submission barrier;
    barrier.request.name = "barrier";
    barrier.request.kind = Kind::kBarrier;
    here.named.wait(*here.named.submit(barrier));
    const bool was_completed = pending && pending->is_completed();
    if (!pending) pending = here.named.submit(all_reduce("x", data, Reduction::kSum));
    here.named.wait(*pending);
    return fmt::format("{} {}", was_completed, data[0]);
  });
  EXPECT_THAT(results, Each("false 2"));
}

TEST(NamedOperations, PollMakesProgressWithoutAWaitingThread) {
  const auto results = on_ranks(2, {}, [](const Here& here) {
    std::vector<float> data = {1};
    const auto operation = here.named.submit(all_reduce("x", data, Reduction::kSum));
    const Deadline deadline = Deadline::after(30s);
    while (!here.named.poll(*operation) && !deadline.passed()) std::this_thread::sleep_for(1ms);
    return operation->is_completed() ? data[0] : -1;
  });
  EXPECT_THAT(results, Each(2));
}

TEST(NamedOperations, ARankThatOnlySubmitsDoesNotBlockTheOthers) {
  const auto results = on_ranks(2, {}, [](const Here& here) {
    std::vector<float> data = {1};
    const auto operation = here.named.submit(all_reduce("x", data, Reduction::kSum));
    if (here.rank == 1) {
      here.named.wait(*operation);
      const char done = 1;
      here.group->send(ConstBuffer(&done, Elements(1), DType::kU8), 0, {.tag = Tag(9)});
    } else {
      char done = 0;  // this rank waits for the other one, and not for the operation
      here.group->recv(Buffer(&done, Elements(1), DType::kU8), 1, {.tag = Tag(9)});
      here.named.wait(*operation);
    }
    return data[0];
  });
  EXPECT_THAT(results, Each(2));
}

TEST(NamedOperations, ThreadsOfOneRankWaitAtOnce) {
  const auto results = on_ranks(2, {}, [](const Here& here) {
    std::vector<std::vector<float>> data(4, std::vector<float>{1});
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < data.size(); ++i) {
      threads.emplace_back([&, i] {
        for (int step = 0; step < 50; ++step) {
          data[i][0] = 1;
          here.named.wait(
              *here.named.submit(all_reduce(fmt::format("x{}", i), data[i], Reduction::kSum)));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    float sum = 0;
    for (const auto& one : data) sum += one[0];
    return sum;
  });
  EXPECT_THAT(results, Each(8));
}

/// The timeline of rank 0: an operation of all ranks, one that fails, and one of the ranks that
/// have not joined.
TEST(NamedOperations, TheTimelineShowsWhichRanksAreReadyAndClosesEachPhase) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "timeline.json").string();
  Options options;
  options.timeline->start(path, Timeline::Rounds::kNotShown);
  on_ranks_with(
      2,
      [&](Rank rank) { return rank == 0 ? options : Options(); },
      [](const Here& here) {
        std::vector<float> data(here.rank == 0 ? 2 : 3, 1);
        thrown(
            [&] { here.named.wait(*here.named.submit(all_reduce("bad", data, Reduction::kSum))); });
        data.resize(1);
        here.named.wait(*here.named.submit(all_reduce("good", data, Reduction::kSum)));
        if (here.rank == 1) {
          here.named.wait(*here.named.submit(all_reduce("others", data, Reduction::kSum)));
        }
        here.named.join();
        return 0;
      });
  options.timeline->stop();
  std::ifstream file(path);
  std::map<int, std::string> names;
  std::map<std::string, std::string> events;
  for (const auto& event : nlohmann::json::parse(file)) {
    const int process = event.at("pid");
    if (event.at("ph") == "M") {
      if (event.at("name") == "process_name") names[process] = event.at("args").at("name");
      continue;
    }
    std::string& text = events[names[process]];
    text += event.at("ph");
    if (event.contains("name")) text += event.at("name");
    text += ' ';
  }
  const std::string negotiation = "BNEGOTIATE_ALLREDUCE ";
  EXPECT_THAT(
      events["bad"],
      ::testing::AnyOf(
          negotiation + "X0 X1 E ", negotiation + "X1 X0 E ", "X1 " + negotiation + "X0 E "));
  EXPECT_THAT(events["good"], ::testing::EndsWith("E BALLREDUCE BPEAL_ALLREDUCE E E "));
  EXPECT_EQ(events["others"], "X1 BALLREDUCE BPEAL_ALLREDUCE E E ");
}

}  // namespace
}  // namespace peal::named
