// Sends and receives between ranks, alone and beside collectives, over every transport.
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <numeric>
#include <thread>

#include <gtest/gtest.h>

#include "peal/base/testing/sanitized.h"

#include "tests/support/fabric.h"

namespace peal::testing {
namespace {

std::vector<float> numbers(std::int64_t count, float first) {
  std::vector<float> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), first);
  return values;
}

std::string check(const std::vector<float>& actual, float first) {
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (actual[i] != first + static_cast<float>(i))
      return "element " + std::to_string(i) + " is wrong";
  }
  return "";
}

class MessagesTest : public ::testing::TestWithParam<Fabric> {
 protected:
  /// Runs the body on every rank and expects no error text.
  template <class Body>
  void expect_well(int ranks, Body body) {
    Job job(GetParam(), ranks);
    EXPECT_EQ(complaints(on_group(job, body)), "");
  }
};

TEST_P(MessagesTest, MessagesOfEverySizeArriveComplete) {
  expect_well(2, [](ProcessGroup& group) -> std::string {
    for (const std::int64_t count : {0, 1, 7, 4096, 4097, 300'000}) {
      std::vector<float> data = numbers(count, 3);
      if (group.rank() == 0) {
        group.send(data, 1);
      } else {
        std::fill(data.begin(), data.end(), 0.F);
        if (group.recv(data, 0) != 0) return "wrong source";
        if (const auto wrong = check(data, 3); !wrong.empty()) return wrong;
      }
    }
    return "";
  });
}

/// Numbers in memory that peers map, if the fabric supports this.
class Registered {
 public:
  Registered(ProcessGroup& group, std::int64_t count)
      : memory_(group.allocate(bytes_of(Elements(count), DType::kF32))),
        values_(reinterpret_cast<float*>(memory_.get()), static_cast<std::size_t>(count)) {}

  std::span<float> values() const { return values_; }

 private:
  Memory memory_;
  std::span<float> values_;
};

TEST_P(MessagesTest, RegisteredMemoryCanBeSentAndReceivedInto) {
  expect_well(2, [](ProcessGroup& group) -> std::string {
    // More than is copied at a time, and less; also from the middle of an allocation.
    for (const std::int64_t count : {1, 4096, 4097, 300'000, 600'001}) {
      const Registered memory(group, count + 3);
      const std::span<float> values = memory.values().subspan(3);
      for (const Rank sender : {0, 1}) {
        std::vector<float> foreign(values.size());
        if (group.rank() == sender) {
          std::iota(values.begin(), values.end(), 7.F);
          group.send(values, 1 - sender);
          group.send(values, 1 - sender);
          std::fill(values.begin(), values.end(), 0.F);  // the memory may be written again
          continue;
        }
        group.recv(values, sender);
        group.recv(foreign, sender);
        if (!std::equal(values.begin(), values.end(), foreign.begin()))
          return "the two copies differ";
        if (const auto wrong = check(foreign, 7); !wrong.empty()) return wrong;
      }
    }
    return "";
  });
}

TEST_P(MessagesTest, RegisteredMessagesWaitForLateReceivesInAnotherOrder) {
  expect_well(2, [](ProcessGroup& group) -> std::string {
    constexpr std::int64_t kCount = 20'000;
    const Registered memory(group, 3 * kCount);
    const auto part = [&](int i) { return memory.values().subspan(i * kCount, kCount); };
    std::vector<WorkPtr> works;
    if (group.rank() == 0) {
      for (const int i : {0, 1, 2}) {
        std::fill(part(i).begin(), part(i).end(), static_cast<float>(i));
        works.push_back(group.isend(part(i), 1, {.tag = Tag{i}}));
      }
      group.barrier();  // all are offered, and no receive is posted
    } else {
      group.barrier();
      for (const int i : {2, 0, 1}) works.push_back(group.irecv(part(i), 0, {.tag = Tag{i}}));
    }
    for (const WorkPtr& work : works) work->wait();
    for (const int i : {0, 1, 2}) {
      if (part(i).front() != static_cast<float>(i) || part(i).back() != static_cast<float>(i)) {
        return "message " + std::to_string(i) + " is wrong";
      }
    }
    return "";
  });
}

TEST_P(MessagesTest, MessagesOfOneTagDoNotOvertakeEachOther) {
  expect_well(2, [](ProcessGroup& group) -> std::string {
    for (int i = 0; i < 200; ++i) {
      // Large messages are offered, small ones come at once. They must keep their order.
      std::vector<float> data(i % 3 == 0 ? 20'000 : 10, static_cast<float>(i));
      if (group.rank() == 0) {
        group.send(data, 1);
      } else {
        std::fill(data.begin(), data.end(), -1.F);
        group.recv(data, 0);
        if (data.front() != static_cast<float>(i) || data.back() != static_cast<float>(i)) {
          return "message " + std::to_string(i) + " is out of order";
        }
      }
    }
    return "";
  });
}

TEST_P(MessagesTest, AReceiveTakesOnlyItsTag) {
  expect_well(2, [](ProcessGroup& group) -> std::string {
    std::vector<float> one = {1};
    std::vector<float> large(10'000, 2);
    if (group.rank() == 0) {
      const WorkPtr first = group.isend(one, 1, {.tag = Tag{1}});
      const WorkPtr second = group.isend(large, 1, {.tag = Tag{2}});
      first->wait();
      second->wait();
      return "";
    }
    std::vector<float> got_large(10'000);
    std::vector<float> got_one(1);
    group.recv(got_large, 0, {.tag = Tag{2}});
    group.recv(got_one, 0, {.tag = Tag{1}});
    return got_large == large && got_one == one ? "" : "mixed up";
  });
}

TEST_P(MessagesTest, AReceiveFromAnySourceReturnsTheSender) {
  expect_well(4, [](ProcessGroup& group) -> std::string {
    if (group.rank() != 0) {
      std::vector<float> data(group.rank() == 2 ? 9'000 : 5, static_cast<float>(group.rank()));
      group.send(data, 0, {.tag = Tag{group.rank() == 2 ? 7 : 3}});
      return "";
    }
    std::vector<float> small(5);
    int sum = 0;
    for (int i = 0; i < 2; ++i) {
      const Rank source = group.recv(small, kAnySource, {.tag = Tag{3}});
      if (small[0] != static_cast<float>(source)) return "the source is not the sender";
      sum += source;
    }
    std::vector<float> large(9'000);
    sum += group.recv(large, kAnySource, {.tag = Tag{7}});
    return sum == 6 && large[8'999] == 2 ? "" : "a message is missing";
  });
}

TEST_P(MessagesTest, ABatchMayBeInAnyOrder) {
  expect_well(3, [](ProcessGroup& group) -> std::string {
    const int n = group.size();
    std::vector<std::vector<float>> out;
    std::vector<std::vector<float>> in;
    for (Rank peer = 0; peer < n; ++peer) {
      out.push_back(numbers(30'000, static_cast<float>(100 * group.rank() + peer)));
      in.emplace_back(30'000);
    }
    std::vector<PointToPoint> batch;
    using Kind = PointToPoint::Kind;
    for (Rank peer = n - 1; peer >= 0; --peer) {
      if (peer == group.rank()) continue;
      const auto p = static_cast<std::size_t>(peer);
      const bool send_first = group.rank() % 2 == 0;
      batch.push_back(
          {send_first ? Kind::kSend : Kind::kRecv, send_first ? out[p] : in[p], peer, {}});
      batch.push_back(
          {send_first ? Kind::kRecv : Kind::kSend, send_first ? in[p] : out[p], peer, {}});
    }
    group.batch_isend_irecv(batch)->wait();
    for (Rank peer = 0; peer < n; ++peer) {
      if (peer == group.rank()) continue;
      const auto wrong =
          check(in[static_cast<std::size_t>(peer)], static_cast<float>(100 * peer + group.rank()));
      if (!wrong.empty()) return wrong;
    }
    return "";
  });
}

TEST_P(MessagesTest, ARankMaySendToItself) {
  for (const int ranks : {1, 2}) {
    expect_well(ranks, [](ProcessGroup& group) -> std::string {
      std::vector<float> in(20'000);
      const WorkPtr receive = group.irecv(in, group.rank(), {.tag = Tag{4}});
      group.send(numbers(20'000, 5), group.rank(), {.tag = Tag{4}});
      receive->wait();
      return receive->source() == group.rank() ? check(in, 5) : "wrong source";
    });
  }
}

/// More small messages than a rank keeps for a peer, both ways, beside a collective.
TEST_P(MessagesTest, SendsThatAreHeldBackContinueAsTheirMessagesAreReceived) {
  if (kSanitized && GetParam() == Fabric::kShortWrites) {
    GTEST_SKIP() << "16 MiB in short pieces; peal/mail/flow_test.cpp has them with a small bound";
  }
  constexpr int kMessages = 1'100;
  constexpr int kSurelyKept = 500;
  expect_well(2, [](ProcessGroup& group) -> std::string {
    const Rank peer = 1 - group.rank();
    std::vector<std::vector<std::int64_t>> out;
    std::vector<WorkPtr> works;
    for (int i = 0; i < kMessages; ++i) {
      out.emplace_back(2'048, i);
      works.push_back(group.isend(out.back(), peer));
    }
    for (int i = 0; i < kSurelyKept; ++i) works[static_cast<std::size_t>(i)]->wait();
    if (works.back()->is_completed()) return "the last message was not held back";
    group.barrier();
    std::vector<std::int64_t> in(2'048);
    for (int i = 0; i < kMessages; ++i) {
      group.recv(in, peer);
      if (in.front() != i || in.back() != i) return "message " + std::to_string(i) + " is wrong";
    }
    for (const WorkPtr& work : works) work->wait();
    return "";
  });
}

/// Rank 0 waits in its sends while rank 1 receives one message after the other.
TEST_P(MessagesTest, BlockingSendsKeepPaceWithTheReceives) {
  if (kSanitized && GetParam() == Fabric::kShortWrites) {
    GTEST_SKIP() << "16 MiB in short pieces; peal/mail/flow_test.cpp has them with a small bound";
  }
  constexpr int kMessages = 1'500;
  std::atomic<int> sent = 0;
  expect_well(2, [&](ProcessGroup& group) -> std::string {
    std::vector<std::int64_t> data(2'048);
    if (group.rank() == 0) {
      for (int i = 0; i < kMessages; ++i) {
        data.front() = data.back() = i;
        group.send(data, 1);
        sent = i + 1;
      }
      return "";
    }
    while (sent < 900) std::this_thread::yield();  // 16 MiB are 1008 messages
    for (int i = 0; i < kMessages; ++i) {
      group.recv(data, 0);
      if (data.front() != i || data.back() != i)
        return "message " + std::to_string(i) + " is wrong";
      if (sent > i + 1'200) return "more was sent than the bound allows";
    }
    return "";
  });
}

TEST_P(MessagesTest, MessagesAndCollectivesDoNotBlockEachOther) {
  expect_well(3, [](ProcessGroup& group) -> std::string {
    const Rank next = (group.rank() + 1) % group.size();
    const Rank before = (group.rank() + group.size() - 1) % group.size();
    std::vector<float> sum = numbers(50'000, 0);
    std::vector<float> out = numbers(50'000, static_cast<float>(group.rank()));
    std::vector<float> in(50'000);
    for (int round = 0; round < 5; ++round) {
      std::iota(sum.begin(), sum.end(), 0.F);
      const WorkPtr reduced = group.all_reduce_async(sum);
      const WorkPtr sent = group.isend(out, next);
      group.recv(in, before);
      sent->wait();
      reduced->wait();
      if (const auto wrong = check(in, static_cast<float>(before)); !wrong.empty()) return wrong;
      for (std::size_t i = 0; i < sum.size(); ++i) {
        if (sum[i] != 3.F * static_cast<float>(i)) return "the sum is wrong";
      }
    }
    return "";
  });
}

TEST_P(MessagesTest, AWorkReportsWhetherItHasEnded) {
  expect_well(2, [](ProcessGroup& group) -> std::string {
    std::vector<float> data = {1};
    if (group.rank() == 0) {
      const WorkPtr receive = group.irecv(data, 1);
      if (receive->is_completed()) return "ended before anything was sent";
      try {
        receive->wait(std::chrono::milliseconds(1));
        return "did not time out";
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::kTimeout) return error.what();
      }
      group.send(data, 1);  // now rank 1 may send
      receive->wait();
      return receive->is_completed() && !receive->exception() && receive->source() == 1 &&
                     data[0] == 42
                 ? ""
                 : "not ended well";
    }
    group.recv(data, 0);
    data[0] = 42;
    group.send(data, 0);
    return "";
  });
}

TEST_P(MessagesTest, ManyThreadsMaySendAndReceiveAtOnce) {
  expect_well(2, [](ProcessGroup& group) -> std::string {
    const Rank peer = 1 - group.rank();
    std::vector<std::string> wrong(4);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        std::vector<float> in(t % 2 == 0 ? 100 : 8'000);
        for (int i = 0; i < 50; ++i) {
          const auto first = static_cast<float>(100 * t + i);
          const auto out = numbers(static_cast<std::int64_t>(in.size()), first);
          const WorkPtr sent = group.isend(out, peer, {.tag = Tag{t}});
          group.recv(in, peer, {.tag = Tag{t}});
          if (const auto bad = check(in, first); !bad.empty())
            wrong[static_cast<std::size_t>(t)] = bad;
          sent->wait();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return wrong[0] + wrong[1] + wrong[2] + wrong[3];
  });
}

TEST_P(MessagesTest, EndedMessagesLeaveNoMemoryBehind) {
  if (kSanitized) GTEST_SKIP() << "mallinfo2 does not report the sanitizers' allocator";
  constexpr int kMessages = 4000;
  constexpr std::size_t kLeast = 100;  // the least that each message would occupy if it were kept
  Job job(GetParam(), 2);
  const auto ended = on_group(job, [&](ProcessGroup& group) {
    float value = 1;
    const auto exchange = [&] {
      const Buffer data(&value, Elements(1), DType::kF32);
      for (int i = 0; i < kMessages; ++i) {
        if (group.rank() == 0) group.isend(data, 1)->wait();
        if (group.rank() == 1) group.recv(data, 0);
      }
      group.barrier();
    };
    exchange();
    const std::size_t before = ::mallinfo2().uordblks;
    group.barrier();
    exchange();
    const std::size_t after = ::mallinfo2().uordblks;
    return after - std::min(before, after);
  });
  for (const auto& end : ended) EXPECT_LT(end.result, kMessages * kLeast) << end.error;
}

/// Between processes of one machine: there a message of this size passes the channel in many
/// pieces.
class ProgressTest : public ::testing::TestWithParam<Fabric> {};

/// The loop's thread leaves the mailbox to calls, but not for ever.
TEST_P(ProgressTest, ALargeMessageArrivesWhileSmallOnesAreSentToAnotherRank) {
  constexpr std::int64_t kLarge = 8 << 20;
  Job job(GetParam(), 3);
  const auto ended = on_group(job, [](ProcessGroup& group) -> std::string {
    std::vector<float> small = {1};
    if (group.rank() == 2) group.send(numbers(kLarge, 7), 0);
    if (group.rank() == 1) {
      while (small[0] > 0) group.recv(small, 0);
    }
    if (group.rank() != 0) return "";
    std::vector<float> large(kLarge);
    const WorkPtr received = group.irecv(large, 2);
    while (!received->is_completed()) {  // an error ends this too, at the group's timeout
      group.send(small, 1);
      // like the time between two steps
      std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
    received->wait();
    small[0] = 0;
    group.send(small, 1);
    return check(large, 7);
  });
  EXPECT_EQ(complaints(ended), "");
}

INSTANTIATE_TEST_SUITE_P(Fabrics,
                         ProgressTest,
                         ::testing::Values(Fabric::kShm, Fabric::kTcp),
                         [](const auto& p) { return name_of(p.param); });

INSTANTIATE_TEST_SUITE_P(Fabrics,
                         MessagesTest,
                         ::testing::ValuesIn(kAllFabrics),
                         [](const auto& instance) { return name_of(instance.param); });

}  // namespace
}  // namespace peal::testing
