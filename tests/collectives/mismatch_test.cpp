// Ranks that disagree: each operation beside each other, and each field of one that differs. Every
// rank gets an error that shows both sides within a second, and never a wrong result. Only a rank
// that sends or receives while others are in a collective may mean to: then the timeout ends it.
#include <chrono>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "peal/base/testing/sanitized.h"

#include "tests/support/fabric.h"

namespace peal::testing {
namespace {

constexpr std::chrono::milliseconds kNotice{kSanitized ? 4000 : 1000};
constexpr int kRanks = 3;
constexpr Rank kOther = 1;  // the one that does something else

/// What a rank does: a name for messages, and the operation, which a barrier follows.
struct Deed {
  std::string name;
  std::function<void(ProcessGroup&)> run;
};

/// Small fits into every link; large into none.
constexpr std::int64_t kSmall = 96;
constexpr std::int64_t kLarge = 3 << 20;

template <class T>
std::vector<T> some(std::int64_t count) {
  return std::vector<T>(static_cast<std::size_t>(count), T{1});
}

/// Each collective on `count` elements of a type, all blocks together.
template <class T>
std::vector<Deed> collectives(std::int64_t count, Rank root, ReduceOp op) {
  const std::int64_t block = count / kRanks;
  return {
      {"broadcast",
       [=](ProcessGroup& g) {
         auto a = some<T>(count);
         g.broadcast(a, root);
       }},
      {"all_reduce",
       [=](ProcessGroup& g) {
         auto a = some<T>(count);
         g.all_reduce(a, op);
       }},
      {"reduce",
       [=](ProcessGroup& g) {
         auto a = some<T>(count);
         g.reduce(a, root, op);
       }},
      {"scatter",
       [=](ProcessGroup& g) {
         auto a = some<T>(count), b = some<T>(block);
         g.scatter(a, b, root);
       }},
      {"gather",
       [=](ProcessGroup& g) {
         auto a = some<T>(block), b = some<T>(count);
         g.gather(a, b, root);
       }},
      {"all_gather",
       [=](ProcessGroup& g) {
         auto a = some<T>(block), b = some<T>(count);
         g.all_gather(a, b);
       }},
      {"reduce_scatter",
       [=](ProcessGroup& g) {
         auto a = some<T>(count), b = some<T>(block);
         g.reduce_scatter(a, b, op);
       }},
      {"all_to_all",
       [=](ProcessGroup& g) {
         auto a = some<T>(count), b = some<T>(count);
         g.all_to_all(a, b);
       }},
      {"barrier", [](ProcessGroup& g) { g.barrier(); }},
  };
}

template <class T = float>
std::vector<Deed> collectives(std::int64_t count, Rank root = 0) {
  return collectives<T>(count, root, ReduceOp::kSum);
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
        (rank == kOther ? other : one).run(*group);
        group->barrier();
      } catch (const Error& error) {
        return {error.what(), error.kind(), Clock::now() - begin};
      }
      return {"ended well", ErrorKind::kBug, Clock::now() - begin};
    });
  }

  void expect_mismatch(const Deed& one, const Deed& other, const std::string& what) {
    const auto ends = ends_of(one, other, std::chrono::seconds(30));
    const std::string name = fmt::format("{} beside {} ({})", one.name, other.name, what);
    for (std::size_t rank = 0; rank < ends.size(); ++rank) {
      const End& end = ends[rank].result;
      EXPECT_EQ(end.kind, ErrorKind::kMismatch) << name << ", rank " << rank << ": " << end.error;
      EXPECT_LE(end.took, kNotice + kJoining) << name << ", rank " << rank << ": " << end.error;
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
      EXPECT_LE(end.took, kTimeout + kNotice + kJoining)
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
  static constexpr std::chrono::milliseconds kJoining{kSanitized ? 2000 : 500};

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
        return Deed{a.name + ", " + b.name, [a, b](ProcessGroup& g) {
                      a.run(g);
                      b.run(g);
                    }};
      };
      expect_mismatch(both(all[i], all[j]), both(all[j], all[i]), "order");
    }
  }
}

/// From rank 0 to kOther; rank 2 has nothing to do with it.
template <class T>
Deed sends(std::int64_t count) {
  return {"send", [=](ProcessGroup& g) {
            if (g.rank() == 0) g.send(some<T>(count), kOther);
          }};
}

template <class T>
Deed receives(std::int64_t count) {
  return {"recv", [=](ProcessGroup& g) {
            auto a = some<T>(count);
            g.recv(a, 0);
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
      const Deed send{"send", [=](ProcessGroup& g) { g.send(some<float>(count), 0); }};
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
