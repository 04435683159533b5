// A callback for the end of an operation (Work::when_completed) runs once, and may use the group.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/base/guarded.h"
#include "peal/base/testing/sanitized.h"

#include "tests/support/fabric.h"

namespace peal::testing {
namespace {

using std::chrono::seconds;
using Values = std::vector<float>;

constexpr float kSum = 3;  // of 1 and 2

Values own_values(const ProcessGroup& group) {
  return Values(1000, static_cast<float>(group.rank() + 1));
}

/// An event that another thread causes once, and soon.
class Event {
 public:
  void come() {
    has_come_.update([](bool& come) { come = true; });
  }
  /// If the event does not come, a stuck thread still uses data of this test. So the process
  /// aborts.
  void await() {
    const bool came = has_come_.wait(
        Deadline::after(seconds(60)), [](const bool& come) { return come; }, [](bool&) {});
    if (!came) std::abort();
  }

 private:
  Guarded<bool> has_come_;
};

PointToPoint send_of(Values& values, Rank to) {
  return {PointToPoint::Kind::kSend, Buffer(values), to, {}};
}
PointToPoint recv_of(Values& values, Rank from) {
  return {PointToPoint::Kind::kRecv, Buffer(values), from, {}};
}

class CompletionTest : public ::testing::TestWithParam<Fabric> {
 protected:
  /// `body` returns an error text, or "".
  template <class Body>
  void expect_well(int ranks, Body body) const {
    Job job(GetParam(), ranks);
    EXPECT_EQ(
        complaints(on_group(job, [&](ProcessGroup& group) -> std::string { return body(group); })),
        "");
  }
};

TEST_P(CompletionTest, TheCallbackRunsOnceAfterACollectiveHasEnded) {
  expect_well(2, [](ProcessGroup& group) -> std::string {
    Values values = own_values(group);
    std::atomic<int> calls = 0;
    Event first;
    const WorkPtr work = group.all_reduce_async(values);
    work->when_completed([&] {
      if (work->is_completed() && ++calls == 1) first.come();
    });
    first.await();
    work->wait();
    group.barrier();
    if (values != Values(1000, kSum)) return "wrong sum";
    return calls == 1 ? "" : "notified more than once";
  });
}

TEST_P(CompletionTest, TheCallbackRunsOnceAfterMessagesHaveEnded) {
  expect_well(2, [](ProcessGroup& group) -> std::string {
    const Rank peer = 1 - group.rank();
    Values out = own_values(group);
    Values in(out.size());
    const std::vector<PointToPoint> both = {send_of(out, peer), recv_of(in, peer)};
    std::atomic<int> calls = 0;
    Event first;
    const WorkPtr work = group.batch_isend_irecv(both);
    work->when_completed([&] {
      if (work->is_completed() && ++calls == 1) first.come();
    });
    first.await();
    group.barrier();
    if (in != Values(1000, static_cast<float>(peer + 1))) return "wrong message";
    return calls == 1 ? "" : "notified more than once";
  });
}

TEST_P(CompletionTest, ForAnEndedOperationTheCallbackRunsAtOnceOnTheCallersThread) {
  expect_well(2, [](ProcessGroup& group) -> std::string {
    Values values = own_values(group);
    Values out = own_values(group);
    Values in(values.size());
    const Rank peer = 1 - group.rank();
    for (const WorkPtr& work :
         {group.all_reduce_async(values), group.isend(out, peer), group.irecv(in, peer)}) {
      work->wait();
      std::thread::id where;
      work->when_completed([&] { where = std::this_thread::get_id(); });
      if (where != std::this_thread::get_id()) return "not notified on this thread";
    }
    return "";
  });
}

TEST_P(CompletionTest, TheCallbackRunsAfterFailuresToo) {
  Job job(GetParam(), 2);
  std::latch under_way(1);
  const auto ended = on_ranks(2, [&](Rank rank) -> std::string {
    const ProcessGroupPtr group = job.join(rank);
    if (rank == 1) {
      under_way.wait();
      group->abort("on purpose");
      return "";
    }
    Values values = own_values(*group);
    Values in(10);
    const WorkPtr works[] = {group->all_reduce_async(values), group->irecv(in, 1)};
    under_way.count_down();
    for (const WorkPtr& work : works) {
      Event first;
      work->when_completed([&] { first.come(); });
      first.await();
      if (!work->is_completed() || work->exception() == nullptr) return "no failure";
    }
    return "";
  });
  EXPECT_EQ(complaints(ended), "");
}

TEST_P(CompletionTest, ACallbackMayStartTheNextCollectiveAndWaitForIt) {
  expect_well(2, [](ProcessGroup& group) -> std::string {
    Values values = own_values(group);
    Values in(values.size());
    const Rank peer = 1 - group.rank();
    Event last;
    const WorkPtr first = group.all_reduce_async(values);
    first->when_completed([&] {
      group.all_reduce_async(values)->wait();
      group.all_reduce(values);  // the blocking form, too
      const WorkPtr message = group.irecv(in, peer);
      group.send(values, peer);
      message->wait();
      last.come();
    });
    last.await();
    return in == Values(1000, 4 * kSum) ? "" : "wrong values";
  });
}

TEST_P(CompletionTest, ACallbackMayWaitForCollectivesThatWereStartedBefore) {
  expect_well(2, [](ProcessGroup& group) -> std::string {
    for (int round = 0; round < 20; ++round) {
      Values values[] = {own_values(group), own_values(group), own_values(group)};
      std::vector<WorkPtr> works;
      for (Values& some : values) works.push_back(group.all_reduce_async(some));
      Event ends[2];
      for (const std::size_t i : {0u, 1u}) {
        works[i]->when_completed([&, i] {
          works[i + 1]->wait();
          ends[i].come();
        });
      }
      for (Event& end : ends) {
        end.await();
      }
      for (const Values& some : values) {
        if (some != Values(1000, kSum)) return "wrong sum";
      }
    }
    return "";
  });
}

TEST_P(CompletionTest, AChainOfCallbacksThatEachStartTheNextEnds) {
  constexpr int kLong = kSanitized ? 10 : 50;
  expect_well(2, [](ProcessGroup& group) -> std::string {
    Values values = own_values(group);
    Event end;
    std::function<void(int)> go_on = [&](int left) {
      if (left == 0) return end.come();
      const WorkPtr work = group.all_reduce_async(values);
      work->when_completed([&, left] { go_on(left - 1); });
      work->wait();
    };
    go_on(kLong);
    end.await();
    return "";
  });
}

TEST_P(CompletionTest, ACallbackOfAMessageMayStartMessagesAndWaitForThem) {
  expect_well(2, [](ProcessGroup& group) -> std::string {
    const Rank peer = 1 - group.rank();
    Values values = own_values(group);
    Values in(values.size());
    Event last;
    group.send(values, peer);  // before this thread may run the callback
    const WorkPtr receive = group.irecv(in, peer);
    receive->when_completed([&] {
      const WorkPtr again = group.irecv(in, peer, {.tag = Tag{1}});
      group.send(values, peer, {.tag = Tag{1}});
      again->wait();
      group.all_reduce(values);
      group.all_reduce_async(values)->wait();
      last.come();
    });
    last.await();
    return values == Values(1000, 2 * kSum) ? "" : "wrong values";
  });
}

TEST_P(CompletionTest, ACallbackMayReleaseTheLastReferenceToTheWork) {
  expect_well(2, [](ProcessGroup& group) -> std::string {
    const Rank peer = 1 - group.rank();
    for (int round = 0; round < 50; ++round) {
      Values values = own_values(group);
      Values in(values.size());
      Values out = own_values(group);
      const std::vector<PointToPoint> both = {send_of(out, peer), recv_of(in, peer)};
      WorkPtr works[] = {group.all_reduce_async(values), group.batch_isend_irecv(both)};
      for (WorkPtr& work : works) {
        const std::weak_ptr<Work> rest = work;
        Event gone;
        Work& borrowed = *work;
        borrowed.when_completed([held = std::move(work), &gone]() mutable {
          held.reset();
          gone.come();
        });
        gone.await();
        // the thread that called the callback may hold it for a moment
        const Deadline deadline = Deadline::after(std::chrono::seconds(60));
        while (!rest.expired()) {
          if (deadline.passed()) return "it is still held";
          std::this_thread::yield();
        }
      }
      group.barrier();
    }
    return "";
  });
}

/// The message is never sent, so the group's end fails the wait. That end waits for the callback.
TEST_P(CompletionTest, AGroupEndsWhileACallbackStillWaits) {
  constexpr Tag kGo{1};
  constexpr Tag kReady{2};
  Job job(GetParam(), 2);
  std::latch both(2);
  const auto ended = on_ranks(2, [&](Rank rank) -> std::string {
    const ProcessGroupPtr group = job.join(rank);
    Values values = own_values(*group);
    Values in(10);
    Values note(10);
    Event called;
    std::atomic<bool> failed = false;
    const WorkPtr work =
        rank == 0 ? group->all_reduce_async(values) : group->irecv(note, 0, {.tag = kGo});
    work->when_completed([&] {
      called.come();
      try {
        group->irecv(in, 1 - rank)->wait();
      } catch (const Error&) {
        failed = true;
      }
    });
    if (rank == 0) {
      group->recv(note, 1, {.tag = kReady});
      group->send(note, 1, {.tag = kGo});
      called.await();
    } else {
      group->send(Values(10), 0, {.tag = kReady});
      called.await();
      group->all_reduce(values);
    }
    both.arrive_and_wait();  // each callback runs before the other rank leaves
    const TimePoint begin = Clock::now();
    group->destroy();
    if (Clock::now() - begin > std::chrono::minutes(5)) return "it took long";
    return failed ? "" : "the wait goes on";
  });
  EXPECT_EQ(complaints(ended), "");
}

INSTANTIATE_TEST_SUITE_P(Fabrics,
                         CompletionTest,
                         ::testing::Values(Fabric::kMemory, Fabric::kMessages, Fabric::kTcp),
                         [](const auto& instance) { return name_of(instance.param); });

}  // namespace
}  // namespace peal::testing
