// Ranks that disagree: each operation beside each other, and each field of one that differs. Every
// rank gets an error that shows both sides, and never a wrong result. The error comes within a
// second, on a machine that does nothing else (see notice_limit). Only a rank that sends or
// receives while others are in a collective may do so on purpose: then the timeout ends it.
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
constexpr Rank kOther = 1;  // the one that does something else

/// What a rank does: a name for messages, and the operation, which a barrier follows. The operation
/// returns whether its result is right: a rank for which nothing goes wrong may end it.
struct Deed {
  std::string name;
  std::function<bool(ProcessGroup&)> run;
};

/// Small fits into every link; large into none.
constexpr std::int64_t kSmall = 96;
constexpr std::int64_t kLarge = 3 << 20;

/// What a rank gives: its number, from one on, as often as asked.
template <class T>
std::vector<T> of_rank(Rank rank, std::int64_t count) {
  return std::vector<T>(static_cast<std::size_t>(count), T(static_cast<T>(rank + 1)));
}

template <class T>
std::vector<T> nothing(std::int64_t count) {
  return std::vector<T>(static_cast<std::size_t>(count));
}

/// Each rank's block in turn.
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
std::vector<Deed> collectives(std::int64_t count, Rank root, ReduceOp op) {
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
         g.all_reduce(a, op);
         return a == reduced(count);
       }},
      {"reduce",
       [=](ProcessGroup& g) {
         auto a = of_rank<T>(g.rank(), count);
         g.reduce(a, root, op);
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
         g.reduce_scatter(a, b, op);
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
std::vector<Deed> collectives(std::int64_t count, Rank root = 0) {
  return collectives<T>(count, root, ReduceOp::kSum);
}

/// One side of a disagreement as an error tells it.
struct Side {
  std::string rank;
  std::string operation;
};

/// The two sides that an error about collectives shows; none where it shows less.
std::vector<Side> sides_in(const std::string& error) {
  static const std::regex now(R"(rank (\d) in (\w+).*, rank (\d) in (\w+))");
  static const std::regex earlier(
      R"(rank (\d) is in (\w+).* something else than (\w+).*, the last that rank (\d) has entered)");
  std::smatch said;
  if (std::regex_search(error, said, now)) return {{said[1], said[2]}, {said[3], said[4]}};
  if (std::regex_search(error, said, earlier)) return {{said[1], said[2]}, {said[4], said[3]}};
  return {};
}

/// Whether an error says what kOther was in and what one of those beside it was in. Either may have
/// gone on to the barrier; both, where neither needed the other before.
bool shows_both_sides(const std::string& error, const Deed& one, const Deed& other) {
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

/// Under the sanitizers, which take many times as long, a part of the cases is tried.
bool is_tried(std::size_t number) { return !kSanitized || number % 9 == 0; }

class MismatchTest : public ::testing::TestWithParam<Fabric> {
 protected:
  struct End {
    std::string error;
    ErrorKind kind = ErrorKind::kBug;
    Duration took{};
  };

  /// Two ranks do `one` and kOther does `other`; then all meet in a barrier.
  std::vector<Outcome<End>> ends_of(const Deed& one, const Deed& other, Timeout timeout) {
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

  void expect_mismatch(const Deed& one, const Deed& other, const std::string& what) {
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

  /// Where ranks may mean something else by it, the timeout ends it.
  void expect_end(const Deed& one, const Deed& other, const std::string& what) {
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

  /// Making the group, before anything goes wrong.
  static constexpr std::chrono::milliseconds kJoining{kSanitized ? 3000 : 500};

 private:
  int cases_ = 0;
  Duration slowest_{};
};

TEST_P(MismatchTest, EveryOperationBesideEveryOtherIsAMismatch) {
  for (const std::int64_t count : {kSmall, kLarge}) {
    const std::vector<Deed> all = collectives(count);
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
    const std::vector<Deed> as_agreed = collectives(count);
    const std::vector<Deed> counts = collectives(count + kRanks);
    const std::vector<Deed> types = collectives<std::int32_t>(count);
    const std::vector<Deed> wide = collectives<double>(count);
    const std::vector<Deed> roots = collectives(count, 2);
    const std::vector<Deed> ops = collectives<float>(count, 0, ReduceOp::kMax);
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
  const std::vector<Deed> all = collectives(kSmall);
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const auto both = [](const Deed& a, const Deed& b) {
        return Deed{a.name + ", " + b.name,
                    [a, b](ProcessGroup& g) { return a.run(g) && b.run(g); }};
      };
      expect_mismatch(both(all[i], all[j]), both(all[j], all[i]), "order");
    }
  }
}

/// From rank 0 to kOther; rank 2 has nothing to do with it.
template <class T>
Deed sends(std::int64_t count) {
  return {"send", [=](ProcessGroup& g) {
            if (g.rank() == 0) g.send(of_rank<T>(0, count), kOther);
            return true;
          }};
}

template <class T>
Deed receives(std::int64_t count) {
  return {"recv", [=](ProcessGroup& g) {
            auto a = nothing<T>(count);
            g.recv(a, 0);
            return a == of_rank<T>(0, count);
          }};
}

TEST_P(MismatchTest, AMessageOfAnotherShapeThanItsReceiveIsAMismatch) {
  for (const std::int64_t count : {kSmall, kLarge}) {
    const std::string elements = fmt::format("{} elements", count);
    const Deed send = sends<float>(count);
    expect_mismatch(send, receives<float>(count + 1), "longer, " + elements);
    expect_mismatch(send, receives<float>(count - 1), "shorter, " + elements);
    expect_mismatch(send, receives<std::int32_t>(count), "type, " + elements);
    expect_mismatch(send, receives<double>(count), "width, " + elements);
    expect_mismatch(send, receives<double>(count / 2), "as many bytes, " + elements);
  }
}

/// Another thread of the rank could still do what its peers wait for.
TEST_P(MismatchTest, AMessageBesideACollectiveEndsAtTheTimeoutAtTheLatest) {
  const std::vector<Deed> all = collectives(kSmall);
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {  // the barrier is what follows the message
    if (!is_tried(i)) continue;
    expect_end(all[i], receives<float>(kSmall), "a receive");
    for (const std::int64_t count : {kSmall, kLarge}) {
      const Deed send{"send", [=](ProcessGroup& g) {
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
