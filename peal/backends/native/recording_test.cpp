// What the backend's ranks write to their flight recorders.
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/backends/native/testing/join.h"
#include "peal/base/clock.h"
#include "peal/base/error.h"
#include "peal/group/process_group.h"
#include "peal/observe/flight_file.h"
#include "peal/observe/testing/flight_files.h"
#include "peal/transport/memory/memory.h"

namespace peal::native {
namespace {

using observe::Flight;
using observe::FlightOperation;
using Sharing = transport::MemoryOptions::Sharing;
using testing::ElementsAre;
using testing::SizeIs;

/// Two ranks as threads, each with a recorder.
class Job {
 public:
  explicit Job(Sharing sharing = Sharing::kWindow)
      : transports_(transport::make_memory_transports(2, {.sharing = sharing})) {}

  ProcessGroupPtr join(Rank rank) {
    observe::RecorderOptions recorder;
    recorder.rank = rank;
    recorder.world_size = 2;
    recorder.path = observe::flight_file_in(folder_.path(), rank);
    Options options;
    options.recorder = observe::FlightRecorder::make(recorder);
    return join_pair(rank,
                     std::move(transports_[static_cast<std::size_t>(rank)]),
                     std::chrono::minutes(5),
                     std::move(options));
  }

  /// Calls body(group) on both ranks, each on a thread of its own.
  template <class Body>
  void run(Body body) {
    auto other = std::async(std::launch::async, [&] { body(join(1)); });
    body(join(0));
    other.get();
  }

  Flight flight(Rank rank) const {
    return observe::parse_flight(read_text_file(observe::flight_file_in(folder_.path(), rank)));
  }

  /// Whether a rank has begun an operation.
  bool has_begun(Rank rank) const { return last_of(rank).has_value(); }

  /// Whether a rank waits for another.
  bool waits(Rank rank, Rank peer) const {
    const auto last = last_of(rank);
    return last && last->waited_for == peer;
  }

 private:
  /// The last operation that a rank has begun. A rank that has not joined yet has no record.
  std::optional<FlightOperation> last_of(Rank rank) const {
    try {
      const Flight now = flight(rank);
      return now.operations.empty() ? std::nullopt : std::optional(now.operations.back());
    } catch (const Error&) {
      return std::nullopt;
    }
  }

  observe::TestFolder folder_;
  std::vector<std::unique_ptr<transport::Transport>> transports_;
};

TEST(RecordingTest, CollectivesAreRecordedWithNumbersAndTheDeparture) {
  Job job;
  job.run([](const ProcessGroupPtr& group) {
    std::vector<float> values(10, 1.0F);
    group->all_reduce(std::span<float>(values));
    group->barrier();
    group->destroy();
  });
  for (const Rank rank : {0, 1}) {
    const Flight flight = job.flight(rank);
    EXPECT_THAT(flight.groups, ElementsAre(observe::FlightGroup{"world", 2, {0, 1}}));
    ASSERT_THAT(flight.operations, SizeIs(2));
    EXPECT_EQ(flight.operations[0].kind.operation, Operation::kAllReduce);
    EXPECT_EQ(flight.operations[0].kind.dtype, DType::kF32);
    EXPECT_EQ(flight.operations[0].count, Elements(10));
    EXPECT_EQ(flight.operations[1].kind.operation, Operation::kBarrier);
    EXPECT_EQ(flight.operations[1].sequence, 2U);
    for (const FlightOperation& operation : flight.operations) {
      EXPECT_FALSE(operation.is_unfinished());
      EXPECT_TRUE(operation.past_waiting);
    }
    ASSERT_TRUE(flight.departure);
    EXPECT_EQ(flight.departure->how, Departure::kNormal);
    EXPECT_EQ(flight.first_error, std::nullopt) << "leaving is not a failure";
  }
}

/// Waits until holds(), or until only a hang explains the wait.
void await(const std::function<bool()>& holds) {
  const Deadline limit = Deadline::after(std::chrono::minutes(5));
  while (!holds() && !limit.passed()) std::this_thread::yield();
}

TEST(RecordingTest, ARankThatWaitsLongRecordsTheMissingPeer) {
  Job job;
  job.run([&](const ProcessGroupPtr& group) {
    if (group->rank() == 1) {
      await([&] { return job.waits(0, 1); });
      std::this_thread::sleep_for(std::chrono::milliseconds(60));
    }
    group->barrier();
    group->destroy();
  });
  const FlightOperation operation = job.flight(0).operations.at(0);
  EXPECT_EQ(operation.waited_for, 1);
  EXPECT_GE(operation.waited, std::chrono::milliseconds(50));
  EXPECT_GE(*operation.past_waiting - operation.start, std::chrono::milliseconds(50));
}

/// The operation fails early: while its rank polls or yields, or soon after the first sleep.
TEST(RecordingTest, AFailedOperationNamesTheRankThatItWaitedFor) {
  for (const auto sharing : {Sharing::kWindow, Sharing::kMessagesOnly}) {
    for (int i = 0; i < 20; ++i) {
      Job job(sharing);
      job.run([&](const ProcessGroupPtr& group) {
        if (group->rank() == 0) {
          EXPECT_THROW(group->barrier(), Error);
          return;
        }
        await([&] { return job.has_begun(0); });
        if (i % 2 == 0) group->abort("the test ends the group");
      });
      EXPECT_EQ(job.flight(0).operations.at(0).waited_for, 1);
    }
  }
}

TEST(RecordingTest, MessagesAreRecordedWithPeerAndTagInEverySize) {
  Job job;
  job.run([](const ProcessGroupPtr& group) {
    std::vector<float> little(1, 1.0F);
    std::vector<float> much(1 << 20, 1.0F);
    for (const std::span<float> values : {std::span(little), std::span(much)}) {
      if (group->rank() == 0) {
        group->send(values, 1, {.tag = Tag{7}});
      } else {
        group->recv(values, 0, {.tag = Tag{7}});
      }
    }
    group->destroy();
  });
  for (const Rank rank : {0, 1}) {
    const Flight flight = job.flight(rank);
    ASSERT_THAT(flight.operations, SizeIs(2));
    for (const FlightOperation& operation : flight.operations) {
      EXPECT_EQ(operation.kind.operation, rank == 0 ? Operation::kSend : Operation::kRecv);
      EXPECT_EQ(operation.kind.root, 1 - rank);
      EXPECT_EQ(operation.sequence, 7U);
      EXPECT_FALSE(operation.is_unfinished());
    }
    EXPECT_EQ(flight.operations[1].count, Elements(1 << 20));
  }
}

TEST(RecordingTest, AFailureIsRecordedOnBothRanksWithTheirOperations) {
  Job job;
  job.run([&](const ProcessGroupPtr& group) {
    std::vector<float> values(1);
    if (group->rank() == 1) {
      EXPECT_THROW(group->recv(std::span<float>(values), 0), Error);
      return;
    }
    await([&] { return job.has_begun(1); });
    EXPECT_THROW(group->barrier({.timeout = std::chrono::milliseconds(200)}), Error);
  });
  for (const Rank rank : {0, 1}) {
    const Flight flight = job.flight(rank);
    ASSERT_TRUE(flight.first_error);
    EXPECT_EQ(flight.first_error->kind, ErrorKind::kTimeout);
    ASSERT_THAT(flight.operations, SizeIs(1));
    EXPECT_TRUE(flight.operations[0].failed);
  }
}

}  // namespace
}  // namespace peal::native
