#include "peal/named/named_operations.h"

#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <future>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/init/init.h"

namespace peal::named {
namespace {

using namespace std::chrono_literals;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "peal-named-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// A rank as a thread of the test.
struct Here {
  ProcessGroupPtr group;
  NamedOperations& named;
  Rank rank;
  int size;
};

template <class Body>
auto on_ranks(int ranks, const Options& options, Body body) {
  using Result = std::invoke_result_t<Body, const Here&>;
  const TemporaryFolder folder;
  std::vector<std::future<Result>> running;
  for (Rank rank = 0; rank < ranks; ++rank) {
    running.push_back(std::async(std::launch::async, [&, rank] {
      InitOptions init;
      init.init_method = "file://" + (folder.path() / "store").string();
      init.rank = rank;
      init.world_size = ranks;
      init.timeout = 60s;
      const ProcessGroupPtr group = init_process_group(init);
      NamedOperations named(group, options);
      return body(Here{group, named, rank, ranks});
    }));
  }
  std::vector<Result> results;
  for (auto& one : running) results.push_back(one.get());
  return results;
}

template <class T>
NamedOperations::Submission all_reduce(std::string name, std::vector<T>& data, Reduction op) {
  NamedOperations::Submission submission;
  submission.request.name = std::move(name);
  submission.request.dtype = dtype_of<T>;
  submission.request.reduction = op;
  submission.request.shape = {static_cast<std::int64_t>(data.size())};
  submission.memory.output = data;
  return submission;
}

template <class T>
NamedOperations::Submission with_kind(Kind kind,
                                      std::string name,
                                      std::vector<T>& in,
                                      std::vector<T>& out) {
  NamedOperations::Submission submission;
  submission.request.name = std::move(name);
  submission.request.kind = kind;
  submission.request.dtype = dtype_of<T>;
  submission.request.shape = {static_cast<std::int64_t>(in.size())};
  submission.memory.input = in;
  submission.memory.output = out;
  submission.memory.allocate = [&out](std::span<const std::int64_t> rows) {
    out.resize(
        static_cast<std::size_t>(std::accumulate(rows.begin(), rows.end(), std::int64_t{0})));
    return Buffer(out);
  };
  return submission;
}

/// The kind and the text of the error that `call` throws.
template <class Call>
std::string thrown(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

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

TEST(NamedOperations, ReportsAMismatchOnAllRanksAndContinues) {
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

TEST(NamedOperations, RefusesDifferentOptionsOnAllRanks) {
  const auto results = on_ranks(2, {}, [](const Here& here) {
    const ProcessGroupPtr other = here.group->split(0);
    return thrown([&] { NamedOperations(other, {.cache_capacity = 1024 + here.rank}); });
  });
  EXPECT_THAT(results, Each(HasSubstr("is 1024 on rank 0, but 1025 on rank 1")));
}

TEST(NamedOperations, RefusesANameInFlight) {
  const auto results = on_ranks(2, {}, [](const Here& here) {
    std::vector<float> data = {1}, other = {1};
    std::string text;
    if (here.rank == 0) {
      const auto first = here.named.submit(all_reduce("x", data, Reduction::kSum));
      text = thrown([&] { here.named.submit(all_reduce("x", other, Reduction::kSum)); });
      here.group->barrier();
      here.named.wait(*first);
    } else {
      here.group->barrier();
      here.named.wait(*here.named.submit(all_reduce("x", data, Reduction::kSum)));
    }
    return text + fmt::format("{}", data[0]);
  });
  EXPECT_THAT(results[0], HasSubstr("usage: Requested to allreduce"));
  EXPECT_THAT(results[1], "2");
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

TEST(NamedOperations, JoinContributesNeutralElements) {
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

TEST(NamedOperations, JoinRefusesOtherOperations) {
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

TEST(NamedOperations, RanksWithoutDataCanTakePartInAllOperations) {
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

TEST(NamedOperations, AnAbortFailsWhatIsPendingOnAllRanks) {
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

TEST(NamedOperations, TheEndOfARankFailsTheOperationsOfTheOthers) {
  const auto results = on_ranks(2, {}, [](const Here& here) -> std::string {
    if (here.rank == 1) return "left";
    std::vector<float> data = {1};
    return thrown(
        [&] { here.named.wait(*here.named.submit(all_reduce("x", data, Reduction::kSum))); });
  });
  EXPECT_THAT(results[0], HasSubstr("peer_lost"));
}

TEST(NamedOperations, EndsWithPendingOperations) {
  on_ranks(2, {}, [](const Here& here) {
    static std::vector<float> data = {1};
    // All ranks have begun. The other rank may already have ended the group.
    thrown([&] { here.group->barrier(); });
    if (here.rank == 0) here.named.submit(all_reduce("x", data, Reduction::kSum));
    return 0;
  });
}

TEST(NamedOperations, ReportsWhichRanksAreMissing) {
  std::mutex mutex;
  std::string reports;
  Options options;
  options.stall_warning = 100ms;
  options.report = [&](std::string_view text) {
    const std::lock_guard lock(mutex);
    reports += text;
  };
  options.whereabouts = [] { return std::string("in load_data()"); };
  on_ranks(3, options, [&](const Here& here) {
    std::vector<float> data = {1};
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

TEST(NamedOperations, AStallEndsTheGroupIfAsked) {
  Options options;
  options.stall_warning = 20ms;
  options.stall_shutdown = 100ms;
  const auto results = on_ranks(2, options, [&](const Here& here) {
    std::vector<float> data = {1};
    const std::string name = here.rank == 0 ? "x" : "y";
    return thrown(
        [&] { here.named.wait(*here.named.submit(all_reduce(name, data, Reduction::kSum))); });
  });
  EXPECT_THAT(results, Each(HasSubstr("the limit of the stall check")));
}

}  // namespace
}  // namespace peal::named
