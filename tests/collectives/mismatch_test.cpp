// Ranks that disagree: every pair of different operations, and every field that can differ. Every
// rank gets an error that shows both sides, and never a wrong result. The error comes within a
// second on a machine without other load (see notice_limit). One case is allowed: a rank may send
// or receive while other ranks are in a collective. That case ends by the timeout.
#include <algorithm>
#include <chrono>
#include <functional>
#include <iostream>
#include <regex>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "peal/base/testing/sanitized.h"

#include "tests/support/fabric.h"
#include "tests/support/notice.h"

namespace peal::testing {
namespace {

constexpr int kRanks = 3;
constexpr Rank kOther = 1;  // the rank that does something else

/// What a rank does: a name for messages, and the operation, followed by a barrier. The operation
/// returns whether its result is right, because a rank without a mismatch may complete it.
struct RankCall {
  std::string name;
  std::function<bool(ProcessGroup&)> run;
};

/// Small fits into every link, large into no link.
constexpr std::int64_t kSmall = 96;
constexpr std::int64_t kLarge = 3 << 20;

/// The input of a rank: `count` times its number plus one.
template <class T>
std::vector<T> of_rank(Rank rank, std::int64_t count) {
  return std::vector<T>(static_cast<std::size_t>(count), T(static_cast<T>(rank + 1)));
}

template <class T>
std::vector<T> nothing(std::int64_t count) {
  return std::vector<T>(static_cast<std::size_t>(count));
}

/// The blocks of all ranks, in order.
template <class T>
std::vector<T> of_all_ranks(std::int64_t block) {
  std::vector<T> all;
  for (Rank rank = 0; rank < kRanks; ++rank) {
    all.insert(all.end(), static_cast<std::size_t>(block), T(static_cast<T>(rank + 1)));
  }
  return all;
}

/// Each collective on `count` elements of a type, all blocks together.
template <class T>
std::vector<RankCall> collectives(std::int64_t count, Rank root, ReduceOp op) {
  const std::int64_t block = count / kRanks;
  const auto reduced = [op](std::int64_t elements) {
    const int value = op == ReduceOp::kMax ? kRanks : kRanks * (kRanks + 1) / 2;
    return of_rank<T>(value - 1, elements);
  };
  return {
      {"broadcast",
       [=](ProcessGroup& g) {
         auto a = of_rank<T>(g.rank(), count);
         g.broadcast(a, root);
         return a == of_rank<T>(root, count);
       }},
      {"all_reduce",
       [=](ProcessGroup& g) {
         auto a = of_rank<T>(g.rank(), count);
         g.all_reduce(a, {.op = op});
         return a == reduced(count);
       }},
      {"reduce",
       [=](ProcessGroup& g) {
         auto a = of_rank<T>(g.rank(), count);
         g.reduce(a, root, {.op = op});
         return g.rank() != root || a == reduced(count);
       }},
      {"scatter",
       [=](ProcessGroup& g) {
         auto a = of_all_ranks<T>(block), b = nothing<T>(block);
         g.scatter(a, b, root);
         return b == of_rank<T>(g.rank(), block);
       }},
      {"gather",
       [=](ProcessGroup& g) {
         auto a = of_rank<T>(g.rank(), block), b = nothing<T>(count);
         g.gather(a, b, root);
         return g.rank() != root || b == of_all_ranks<T>(block);
       }},
      {"all_gather",
       [=](ProcessGroup& g) {
         auto a = of_rank<T>(g.rank(), block), b = nothing<T>(count);
         g.all_gather(a, b);
         return b == of_all_ranks<T>(block);
       }},
      {"reduce_scatter",
       [=](ProcessGroup& g) {
         auto a = of_rank<T>(g.rank(), count), b = nothing<T>(block);
         g.reduce_scatter(a, b, {.op = op});
         return b == reduced(block);
       }},
      {"all_to_all",
       [=](ProcessGroup& g) {
         auto a = of_rank<T>(g.rank(), count), b = nothing<T>(count);
         g.all_to_all(a, b);
         return b == of_all_ranks<T>(block);
       }},
      {"barrier",
       [](ProcessGroup& g) {
         g.barrier();
         return true;
       }},
  };
}

template <class T = float>
std::vector<RankCall> collectives(std::int64_t count, Rank root = 0) {
  return collectives<T>(count, root, ReduceOp::kSum);
}

/// One side of a disagreement, as an error describes it.
struct Side {
  std::string rank;
  std::string operation;
};

/// The two sides that an error about collectives shows; empty if it shows fewer.
std::vector<Side> sides_in(const std::string& error) {
  static const std::regex now(R"(rank (\d) in (\w+).*, rank (\d) in (\w+))");
  static const std::regex earlier(
      R"(rank (\d) is in (\w+).* previous operation was not (\w+).*, the last that rank (\d) entered)");
  std::smatch said;
  if (std::regex_search(error, said, now)) return {{said[1], said[2]}, {said[3], said[4]}};
  if (std::regex_search(error, said, earlier)) return {{said[1], said[2]}, {said[4], said[3]}};
  return {};
}

/// Whether an error names the operation of kOther and that of another rank. Either rank may have
/// gone on to the barrier. Both may have, if neither needed the other before.
bool shows_both_sides(const std::string& error, const RankCall& one, const RankCall& other) {
  static const std::regex message("rank 0 sent .* to rank 1, whose receive expects .*");
  if (std::regex_search(error, message)) return one.name == "send" && other.name == "recv";
  const std::vector<Side> sides = sides_in(error);
  const auto is_others = [](const Side& side) { return side.rank == std::to_string(kOther); };
  const auto is_deeds = [&](const Side& side) {
    const std::string& name = (is_others(side) ? other : one).name;
    return (", " + name + ",").find(" " + side.operation + ",") != std::string::npos;
  };
  const auto is_true = [&](const Side& side) {
    return is_deeds(side) || side.operation == "barrier";
  };
  return std::ranges::count_if(sides, is_others) == 1 && std::ranges::all_of(sides, is_true) &&
         (std::ranges::any_of(sides, is_deeds) ||
          error.find("they differ in an operation before this one") != std::string::npos);
}

/// Under the sanitizers, which take many times as long, only some of the cases are tried.
bool is_tried(std::size_t number) { return !kSanitized || number % 9 == 0; }

class MismatchTest : public ::testing::TestWithParam<Fabric> {
 protected:
  struct End {
    std::string error;
    ErrorKind kind = ErrorKind::kBug;
    Duration took{};
  };

  /// Two ranks run `one` and kOther runs `other`; then all meet in a barrier.
  std::vector<Outcome<End>> ends_of(const RankCall& one, const RankCall& other, Timeout timeout) {
    ++cases_;
    Job job(GetParam(), kRanks);
    const TimePoint begin = Clock::now();
    return on_ranks(kRanks, [&](Rank rank) -> End {
      const ProcessGroupPtr group = job.join(rank, timeout);
      try {
        if (!(rank == kOther ? other : one).run(*group)) return {"a wrong result"};
        group->barrier();
      } catch (const Error& error) {
        return {error.what(), error.kind(), Clock::now() - begin};
      }
      return {"ended well", ErrorKind::kBug, Clock::now() - begin};
    });
  }

  void expect_mismatch(const RankCall& one, const RankCall& other, const std::string& what) {
    const auto ends = ends_of(one, other, std::chrono::minutes(2));
    const std::string name = fmt::format("{} beside {} ({})", one.name, other.name, what);
    for (std::size_t rank = 0; rank < ends.size(); ++rank) {
      const End& end = ends[rank].result;
      EXPECT_EQ(end.kind, ErrorKind::kMismatch) << name << ", rank " << rank << ": " << end.error;
      EXPECT_TRUE(shows_both_sides(end.error, one, other))
          << name << ", rank " << rank << ": " << end.error;
      EXPECT_LE(end.took, notice_limit() + kJoining)
          << name << ", rank " << rank << ": " << end.error;
      slowest_ = std::max(slowest_, end.took);
    }
  }

  /// Ranks may do this on purpose, so the timeout may end it.
  void expect_end(const RankCall& one, const RankCall& other, const std::string& what) {
    constexpr std::chrono::milliseconds kTimeout{kSanitized ? 1000 : 250};
    const auto ends = ends_of(one, other, kTimeout);
    const std::string name = fmt::format("{} beside {} ({})", one.name, other.name, what);
    for (std::size_t rank = 0; rank < ends.size(); ++rank) {
      const End& end = ends[rank].result;
      EXPECT_TRUE(end.kind == ErrorKind::kMismatch || end.kind == ErrorKind::kTimeout)
          << name << ", rank " << rank << ": " << end.error;
      EXPECT_LE(end.took, kTimeout + notice_limit() + kJoining)
          << name << ", rank " << rank << ": " << end.error;
    }
  }

  void TearDown() override {
    std::cout << fmt::format(
        "{} disagreements, the slowest noticed in {} ms\n",
        cases_,
        std::chrono::duration_cast<std::chrono::milliseconds>(slowest_).count());
  }

  /// The time to make the group, before anything goes wrong.
  static constexpr std::chrono::milliseconds kJoining{kSanitized ? 3000 : 500};

 private:
  int cases_ = 0;
  Duration slowest_{};
};

TEST_P(MismatchTest, EveryPairOfDifferentOperationsIsAMismatch) {
  for (const std::int64_t count : {kSmall, kLarge}) {
    const std::vector<RankCall> all = collectives(count);
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (std::size_t j = 0; j < all.size(); ++j) {
        if (i != j && is_tried(i + j))
          expect_mismatch(all[i], all[j], fmt::format("{} elements", count));
      }
    }
  }
}

TEST_P(MismatchTest, EveryFieldThatDiffersIsAMismatch) {
  for (const std::int64_t count : {kSmall, kLarge}) {
    const std::vector<RankCall> as_agreed = collectives(count);
    const std::vector<RankCall> counts = collectives(count + kRanks);
    const std::vector<RankCall> types = collectives<std::int32_t>(count);
    const std::vector<RankCall> wide = collectives<double>(count);
    const std::vector<RankCall> roots = collectives(count, 2);
    const std::vector<RankCall> ops = collectives<float>(count, 0, ReduceOp::kMax);
    for (std::size_t i = 0; i + 1 < as_agreed.size(); ++i) {  // all but the barrier
      if (!is_tried(i)) continue;
      const std::string& name = as_agreed[i].name;
      const bool reduces = name.find("reduce") != std::string::npos;
      const bool rooted =
          name == "broadcast" || name == "reduce" || name == "scatter" || name == "gather";
      expect_mismatch(as_agreed[i], counts[i], fmt::format("count, {} elements", count));
      expect_mismatch(as_agreed[i], types[i], fmt::format("type, {} elements", count));
      expect_mismatch(as_agreed[i], wide[i], fmt::format("width, {} elements", count));
      if (rooted) expect_mismatch(as_agreed[i], roots[i], fmt::format("root, {} elements", count));
      if (reduces) expect_mismatch(as_agreed[i], ops[i], fmt::format("op, {} elements", count));
    }
  }
}

TEST_P(MismatchTest, TheSameOperationsInAnotherOrderAreAMismatch) {
  const std::vector<RankCall> all = collectives(kSmall);
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const auto both = [](const RankCall& a, const RankCall& b) {
        return RankCall{a.name + ", " + b.name,
                        [a, b](ProcessGroup& g) { return a.run(g) && b.run(g); }};
      };
      expect_mismatch(both(all[i], all[j]), both(all[j], all[i]), "order");
    }
  }
}

/// From rank 0 to kOther; rank 2 does nothing.
template <class T>
RankCall sends(std::int64_t count) {
  return {"send", [=](ProcessGroup& g) {
            if (g.rank() == 0) g.send(of_rank<T>(0, count), kOther);
            return true;
          }};
}

template <class T>
RankCall receives(std::int64_t count) {
  return {"recv", [=](ProcessGroup& g) {
            auto a = nothing<T>(count);
            g.recv(a, 0);
            return a == of_rank<T>(0, count);
          }};
}

TEST_P(MismatchTest, AMessageThatDoesNotFitItsReceiveIsAMismatch) {
  for (const std::int64_t count : {kSmall, kLarge}) {
    const std::string elements = fmt::format("{} elements", count);
    const RankCall send = sends<float>(count);
    expect_mismatch(send, receives<float>(count + 1), "longer, " + elements);
    expect_mismatch(send, receives<float>(count - 1), "shorter, " + elements);
    expect_mismatch(send, receives<std::int32_t>(count), "type, " + elements);
    expect_mismatch(send, receives<double>(count), "width, " + elements);
    expect_mismatch(send, receives<double>(count / 2), "as many bytes, " + elements);
  }
}

/// Another thread of the rank could still run the operation that its peers wait for.
TEST_P(MismatchTest, AMessageBesideACollectiveEndsAtTheTimeoutAtTheLatest) {
  const std::vector<RankCall> all = collectives(kSmall);
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {  // the barrier follows the message
    if (!is_tried(i)) continue;
    expect_end(all[i], receives<float>(kSmall), "a receive");
    for (const std::int64_t count : {kSmall, kLarge}) {
      const RankCall send{"send", [=](ProcessGroup& g) {
                            g.send(of_rank<float>(kOther, count), 0);
                            return true;
                          }};
      expect_end(all[i], send, fmt::format("a send of {} elements", count));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Fabrics,
    MismatchTest,
    ::testing::Values(Fabric::kMemory, Fabric::kMessages, Fabric::kShm, Fabric::kTcp),
    [](const auto& instance) { return name_of(instance.param); });

}  // namespace
}  // namespace peal::testing
