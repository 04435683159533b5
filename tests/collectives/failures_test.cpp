// Every failure ends with the same cause on every rank, in time, and names the rank and the
// operation.
#include <chrono>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/testing/error_of.h"

#include "tests/support/fabric.h"
#include "tests/support/outcomes.h"

namespace peal::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class FailuresTest : public OutcomesTest {};

void expect_mismatch(const Ended& ended, const std::string& one, const std::string& other) {
  for (const auto& outcome : ended) {
    EXPECT_EQ(outcome.kind, ErrorKind::kMismatch) << outcome.error;
    EXPECT_THAT(outcome.error, AllOf(HasSubstr(one), HasSubstr(other)));
    EXPECT_EQ(outcome.details.cause, ErrorCause::kMismatch) << outcome.error;
    EXPECT_NE(outcome.details.operation, "") << outcome.error;
  }
}

TEST_P(FailuresTest, RanksInDifferentOperationsAllGetAMismatchThatShowsBoth) {
  const auto ended = outcomes(3, [](ProcessGroup& group) {
    auto data = some();
    if (group.rank() == 1) {
      group.broadcast(data, 0);
    } else {
      group.all_reduce(data);
    }
    group.barrier();
  });
  expect_mismatch(ended, "broadcast", "all_reduce");
}

TEST_P(FailuresTest, DifferentCountsAreAMismatchThatShowsBoth) {
  const auto ended = outcomes(2, [](ProcessGroup& group) {
    auto data = some(group.rank() == 1 ? 101 : 100);
    group.all_reduce(data);
  });
  expect_mismatch(ended, "sum of 100 f32", "sum of 101 f32");
}

TEST_P(FailuresTest, DifferentRootsAreAMismatchAtTheNextOperationAtTheLatest) {
  for (const std::size_t count : {1, 100}) {
    for (const bool is_broadcast : {true, false}) {
      const auto ended = outcomes(3, [&](ProcessGroup& group) {
        const Rank root =
            group.rank() == 0 ? 0 : 1;  // with two roots their data fits into the links
        std::vector<float> all(count * 3), mine(count);
        if (is_broadcast) {
          group.broadcast(all, root);
        } else {
          group.scatter(all, mine, root);
        }
        group.barrier();
      });
      for (const auto& outcome : ended) {
        EXPECT_EQ(outcome.kind, ErrorKind::kMismatch) << outcome.error;
        EXPECT_THAT(outcome.error, HasSubstr("root"));
      }
    }
  }
}

TEST_P(FailuresTest, DifferentTypesAreAMismatchThatShowsBoth) {
  const auto ended = outcomes(2, [](ProcessGroup& group) {
    if (group.rank() == 1) {
      std::vector<double> data(100, 1);
      group.all_reduce(data);
    } else {
      auto data = some();
      group.all_reduce(data);
    }
  });
  expect_mismatch(ended, "sum of 100 f32", "sum of 100 f64");
}

TEST_P(FailuresTest, DifferentOperatorsAreAMismatchThatShowsBoth) {
  const auto ended = outcomes(2, [](ProcessGroup& group) {
    auto data = some();
    group.all_reduce(data, {.op = group.rank() == 1 ? ReduceOp::kMax : ReduceOp::kSum});
  });
  expect_mismatch(ended, "sum of 100 f32", "max of 100 f32");
}

TEST_P(FailuresTest, ARegisteredMessageThatDoesNotFitItsReceiveIsAMismatchOnBothRanks) {
  const auto ended = outcomes(2, [](ProcessGroup& group) {
    const std::int64_t count = group.rank() == 0 ? 100'000 : 90'000;
    const Memory memory = group.allocate(Bytes(count * 4));
    const std::span values(reinterpret_cast<float*>(memory.get()), static_cast<std::size_t>(count));
    if (group.rank() == 0) {
      group.send(values, 1);
      group.recv(values, 1);
    } else {
      group.recv(values, 0);
    }
  });
  expect_mismatch(ended, "100000 f32", "90000 f32");
}

TEST_P(FailuresTest, AReceiveThatDoesNotFitTheSendIsAMismatchOnBothRanks) {
  const auto ended = outcomes(2, [](ProcessGroup& group) {
    auto data = some(group.rank() == 0 ? 10 : 11);
    if (group.rank() == 0) {
      group.send(data, 1);
      group.recv(data, 1);
    } else {
      group.recv(data, 0);
    }
  });
  expect_mismatch(ended, "10 f32", "11 f32");
}

TEST_P(FailuresTest, ATimeoutNamesTheMissingRankOnEveryRank) {
  std::latch others(2);
  const auto ended = outcomes(3, [&](ProcessGroup& group) {
    auto data = some();
    group.all_reduce(data);
    if (group.rank() == 2) {
      others.wait();
      group.all_reduce(data);  // may succeed: the others have given their parts
      group.barrier();
    } else {
      const Arrival when_it_has_ended(others);
      group.all_reduce(data, {.timeout = kSoon});
    }
  });
  for (const auto& outcome : ended) {
    EXPECT_EQ(outcome.kind, ErrorKind::kTimeout) << outcome.error;
    EXPECT_THAT(outcome.error, AllOf(HasSubstr("all_reduce #2"), HasSubstr("rank 2")));
  }
}

TEST_P(FailuresTest, AReceiveWithoutASendTimesOut) {
  const auto ended = outcomes(2, [](ProcessGroup& group) {
    auto data = some();
    if (group.rank() == 0) {
      group.recv(data, 1, {.tag = Tag{5}, .timeout = kSoon});
    } else {
      group.barrier();
    }
  });
  for (const auto& outcome : ended) {
    EXPECT_EQ(outcome.kind, ErrorKind::kTimeout) << outcome.error;
    EXPECT_THAT(outcome.error, AllOf(HasSubstr("recv of 100 f32 from rank 1, tag 5")));
  }
}

TEST_P(FailuresTest, AMonitoredBarrierNamesEveryMissingRank) {
  std::latch others(2);
  std::latch rank_2_comes(1);
  const auto ended = outcomes(4, [&](ProcessGroup& group) {
    group.monitored_barrier();
    if (group.rank() == 1 || group.rank() == 3) {
      others.wait();
      group.monitored_barrier();
    } else {
      const Arrival when_it_has_ended(others);
      if (group.rank() == 0) rank_2_comes.wait();
      if (group.rank() == 2) rank_2_comes.count_down();
      group.monitored_barrier(
          {.timeout = 3 * kSoon});  // rank 2 may still be a little late on a busy machine
    }
  });
  for (const auto& outcome : ended) {
    EXPECT_EQ(outcome.kind, ErrorKind::kTimeout) << outcome.error;
    EXPECT_THAT(outcome.error, HasSubstr("ranks 1, 3 did not come within 900 ms"));
  }
}

TEST_P(FailuresTest, AnAbortEndsBlockedAndLaterCallsEverywhere) {
  std::latch about_to_block(3);
  const auto ended = outcomes(3, [&](ProcessGroup& group) -> std::string {
    auto data = some();
    std::thread aborter;
    if (group.rank() == 0) {
      aborter = std::thread([&] {
        about_to_block.wait();
        // Nothing shows that a call blocks. An abort that comes too early is a valid test too.
        std::this_thread::sleep_for(kSoon / 10);
        group.abort("enough");
      });
    }
    const std::string wrong = missing_error("the blocked call", [&] {
      about_to_block.count_down();
      if (group.rank() == 2) {
        group.recv(data, 0);
      } else {
        group.all_reduce(data);
      }
    });
    if (aborter.joinable()) aborter.join();
    if (wrong.empty()) group.barrier();
    return wrong;
  });
  for (const auto& outcome : ended) {
    EXPECT_EQ(outcome.result, "");
    EXPECT_EQ(outcome.kind, ErrorKind::kAborted) << outcome.error;
    EXPECT_THAT(outcome.error, AllOf(HasSubstr("rank 0"), HasSubstr("enough")));
    EXPECT_EQ(outcome.details.rank, 0);
    EXPECT_EQ(outcome.details.cause, ErrorCause::kAborted);
    EXPECT_EQ(outcome.details.reason, "enough");
  }
}

TEST_P(FailuresTest, AnAbortEndsTheWaitForASubGroup) {
  // other fabrics do not wait
  if (GetParam() != Fabric::kShm && GetParam() != Fabric::kTcp) return;
  std::latch over(1);
  const auto ended = outcomes(2, [&](ProcessGroup& group) {
    if (group.rank() == 1) return over.wait();
    const Arrival when_it_has_ended(over);
    std::thread aborter([&] {
      std::this_thread::sleep_for(kSoon / 10);
      group.abort("enough");
    });
    const std::vector<Rank> all = {0, 1};
    const Error error = error_of([&] { group.new_group(all); });
    aborter.join();
    throw Error(error);
  });
  EXPECT_EQ(ended[0].kind, ErrorKind::kAborted) << ended[0].error;
  EXPECT_THAT(ended[0].error, HasSubstr("enough"));
}

TEST_P(FailuresTest, WorksInFlightEndWithTheCauseToo) {
  std::latch under_way(1);
  const auto ended = outcomes(2, [&](ProcessGroup& group) -> std::string {
    auto data = some();
    auto more = some();
    if (group.rank() == 1) {
      under_way.wait();
      group.abort("enough");
      return "";
    }
    const WorkPtr reduce = group.all_reduce_async(data);
    const WorkPtr receive = group.irecv(more, 1);
    under_way.count_down();
    const std::string wrong = missing_error("the receive", [&] { receive->wait(); });
    if (!wrong.empty()) return wrong;
    if (!receive->exception()) return "the receive has no exception";
    reduce->wait();
    return "";
  });
  EXPECT_EQ(ended[0].result, "");
  EXPECT_EQ(ended[1].error, "");
  EXPECT_EQ(ended[0].kind, ErrorKind::kAborted) << ended[0].error;
  EXPECT_THAT(ended[0].error, HasSubstr("enough"));
}

INSTANTIATE_TEST_SUITE_P(Fabrics,
                         FailuresTest,
                         ::testing::ValuesIn(kAllFabrics),
                         [](const auto& instance) { return name_of(instance.param); });

}  // namespace
}  // namespace peal::testing
