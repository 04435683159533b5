// The contract of every transport, tested on each of them with ranks as threads.
#include <atomic>
#include <cstddef>
#include <functional>
#include <future>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/transport/link/connect.h"
#include "peal/transport/memory/memory.h"
#include "peal/transport/testing/faulty.h"
#include "peal/transport/testing/testing.h"
#include "peal/transport/transport.h"

namespace peal::transport {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::byte_at;
using testing::bytes_of;
using testing::connect_all;
using testing::fill;
using testing::kHang;
using testing::receive_all;
using testing::run_ranks;
using testing::send_all;
using testing::stream_bytes;
using testing::test_deadline;
using testing::Transports;

struct Kind {
  std::string name;
  std::function<Transports(int ranks)> make;
};

/// Faults that a transport may have: no byte is lost or wrong.
Transports make_faulty_transports(int ranks) {
  Transports transports = make_memory_transports(ranks);
  for (auto& transport : transports) {
    transport = make_faulty(std::move(transport),
                            {.seed = 7,
                             .most_per_call = 3000_B,
                             .idle_calls = 2,
                             .wakeups = Faults::Wakeups::kSpurious});
  }
  return transports;
}

std::vector<Kind> all_kinds() {
  return {
      {"memory", [](int ranks) { return make_memory_transports(ranks); }},
      {"memory_small_rings",
       [](int ranks) {
         return make_memory_transports(ranks, {.data_ring = 4_KiB, .mail_ring = 4_KiB});
       }},
      {"faulty", [](int ranks) { return make_faulty_transports(ranks); }},
      {"shm", [](int ranks) { return connect_all(ranks, {.choice = TransportChoice::kShm}); }},
      {"tcp", [](int ranks) { return connect_all(ranks, {.choice = TransportChoice::kTcp}); }},
      {"tcp_checked",
       [](int ranks) {
         return connect_all(
             ranks, {.protection = LinkProtection::kChecked, .choice = TransportChoice::kTcp});
       }},
      {"tcp_encrypted",
       [](int ranks) {
         return connect_all(
             ranks, {.protection = LinkProtection::kEncrypted, .choice = TransportChoice::kTcp});
       }},
      {"auto_on_two_hosts",  // ranks 0, 2, ... on one host, ranks 1, 3, ... on the other
       [](int ranks) {
         std::vector<std::string> hosts;
         for (int rank = 0; rank < ranks; ++rank) hosts.push_back(rank % 2 == 0 ? "a" : "b");
         return connect_all(ranks, {}, hosts);
       }},
  };
}

class TransportTest : public ::testing::TestWithParam<Kind> {
 protected:
  Transports make(int ranks) const { return GetParam().make(ranks); }
};

/// Sends a stream to every peer and receives every peer's, in pieces of random sizes. Sleeps when
/// nothing moves. Returns how many bytes were wrong or are missing.
class Exchange {
 public:
  Exchange(Channel& channel, Rank self, int ranks, std::uint64_t bytes, unsigned seed)
      : channel_(channel),
        self_(self),
        sent_(static_cast<std::size_t>(ranks), 0),
        received_(static_cast<std::size_t>(ranks), 0),
        bytes_(bytes),
        random_(seed + static_cast<unsigned>(self)) {
    sent_[static_cast<std::size_t>(self)] = received_[static_cast<std::size_t>(self)] = bytes;
  }

  /// The action when nothing moves.
  enum class Idle : unsigned char { kWait, kYield };

  std::uint64_t run(Deadline deadline, Idle idle = Idle::kWait) {
    while (!deadline.passed()) {
      bool moved = false;
      std::vector<Interest> interests;
      for (Rank peer = 0; peer < static_cast<Rank>(sent_.size()); ++peer) {
        if (sent_[index(peer)] < bytes_) {
          moved |= send_some(peer);
          interests.push_back({peer, Readiness::kWritable});
        }
        if (received_[index(peer)] < bytes_) {
          moved |= receive_some(peer);
          interests.push_back({peer, Readiness::kReadable});
        }
      }
      if (interests.empty()) return wrong_;
      if (moved) continue;
      if (idle == Idle::kWait) {
        channel_.wait(interests, deadline);
      } else {
        std::this_thread::yield();
      }
    }
    return ~std::uint64_t{0};
  }

 private:
  static std::size_t index(Rank rank) { return static_cast<std::size_t>(rank); }

  std::size_t some(std::uint64_t left) {
    const std::uint64_t largest = random_() % 4 == 0 ? 50'000 : 1000;
    return static_cast<std::size_t>(std::min<std::uint64_t>(left, 1 + random_() % largest));
  }

  bool send_some(Rank peer) {
    std::uint64_t& sent = sent_[index(peer)];
    const auto bytes = stream_bytes(self_, peer, sent, some(bytes_ - sent));
    const std::size_t cut = bytes.size() / 3;
    const std::vector<ConstPiece> pieces = {std::span(bytes).first(cut),
                                            std::span(bytes).subspan(cut)};
    const Transfer transfer = channel_.try_send(peer, pieces);
    sent += static_cast<std::uint64_t>(transfer.bytes.value);
    wrong_ += transfer.closed;
    return transfer.bytes > 0_B;
  }

  bool receive_some(Rank peer) {
    std::uint64_t& received = received_[index(peer)];
    std::vector<std::byte> bytes(some(bytes_ - received));
    const Transfer transfer = channel_.try_receive(peer, bytes);
    for (std::int64_t i = 0; i < transfer.bytes.value; ++i) {
      wrong_ += bytes[static_cast<std::size_t>(i)] !=
                byte_at(peer, self_, received + static_cast<std::uint64_t>(i));
    }
    received += static_cast<std::uint64_t>(transfer.bytes.value);
    wrong_ += transfer.closed;
    return transfer.bytes > 0_B;
  }

  Channel& channel_;
  Rank self_;
  std::vector<std::uint64_t> sent_;
  std::vector<std::uint64_t> received_;
  std::uint64_t bytes_;
  std::mt19937 random_;
  std::uint64_t wrong_ = 0;
};

TEST_P(TransportTest, StreamsBetweenAllPairsAtOnceKeepOrderAndBytes) {
  constexpr unsigned kSeed = 2024;
  for (const int ranks : {2, 3, 5}) {
    SCOPED_TRACE(ranks);
    const std::uint64_t bytes =
        700'000u / static_cast<unsigned>(ranks);  // mostly more than a ring holds
    const Transports transports = make(ranks);
    const auto wrong = run_ranks(ranks, [&](Rank self) {
      Transport& transport = *transports[static_cast<std::size_t>(self)];
      auto mail = std::async(std::launch::async, [&] {
        return Exchange(transport.mail(), self, ranks, bytes / 10, kSeed + 100)
            .run(test_deadline());
      });
      return Exchange(transport.data(), self, ranks, bytes, kSeed).run(test_deadline()) +
             mail.get();
    });
    EXPECT_EQ(wrong, std::vector<std::uint64_t>(static_cast<std::size_t>(ranks), 0)) << kSeed;
  }
}

TEST_P(TransportTest, ALargeMessageArrivesWhole) {
  const Transports transports = make(2);
  const auto message = stream_bytes(0, 1, 0, 3'000'000);
  auto sending = std::async(std::launch::async,
                            [&] { send_all(transports[0]->data(), 1, message, test_deadline()); });
  const auto got = receive_all(transports[1]->data(), 0, message.size(), test_deadline());
  sending.get();
  EXPECT_TRUE(got == message);
}

TEST_P(TransportTest, AFullDataStreamDoesNotStopTheMail) {
  const Transports transports = make(2);
  const std::uint64_t filled = fill(transports[0]->data(), 0, 1, test_deadline());
  EXPECT_GT(filled, 0u);

  const auto letter = bytes_of("the mail must go through");
  send_all(transports[0]->mail(), 1, letter, test_deadline());
  EXPECT_EQ(receive_all(transports[1]->mail(), 0, letter.size(), test_deadline()), letter);

  auto flushing = std::async(std::launch::async,
                             [&] { testing::flush(transports[0]->data(), 1, test_deadline()); });
  const auto got = receive_all(transports[1]->data(), 0, filled, test_deadline());
  flushing.get();
  EXPECT_TRUE(got == stream_bytes(0, 1, 0, filled));
}

TEST_P(TransportTest, EmptyTransfersMoveNothing) {
  const Transports transports = make(2);
  const Transfer sent = transports[0]->data().try_send(1, {});
  EXPECT_EQ(sent.bytes, 0_B);
  EXPECT_FALSE(sent.closed);
  const Transfer got = transports[0]->data().try_receive(1, {});
  EXPECT_EQ(got.bytes, 0_B);
  EXPECT_FALSE(got.closed);
}

TEST_P(TransportTest, AWaitEndsWhenBytesCome) {
  const Transports transports = make(2);
  auto receiving = std::async(std::launch::async, [&] {
    return receive_all(transports[1]->data(), 0, 5, test_deadline());
  });
  send_all(transports[0]->data(), 1, bytes_of("hello"), test_deadline());
  EXPECT_EQ(receiving.get(), bytes_of("hello"));
}

TEST_P(TransportTest, AWaitEndsWhenTheStreamHasRoomAgain) {
  const Transports transports = make(2);
  const std::uint64_t filled = fill(transports[0]->data(), 0, 1, test_deadline());
  auto sending = std::async(std::launch::async, [&] {
    send_all(transports[0]->data(), 1, stream_bytes(0, 1, filled, 100'000), test_deadline());
  });
  const auto got = receive_all(transports[1]->data(), 0, filled + 100'000, test_deadline());
  sending.get();
  EXPECT_TRUE(got == stream_bytes(0, 1, 0, filled + 100'000));
}

TEST_P(TransportTest, ASleeperIsWokenByBytesThatAnotherThreadLeaves) {
  const Transports transports = make(2);
  for (int i = 0; i < 50; ++i) {
    auto sleeping = std::async(std::launch::async, [&] {
      const Interest interest{1, Readiness::kReadable};
      const TimePoint begin = Clock::now();
      transports[0]->mail().wait({&interest, 1}, test_deadline());
      return Clock::now() - begin;
    });
    // the other thread most likely sleeps
    if (i % 2 == 0) std::this_thread::sleep_for(milliseconds(1));
    send_all(transports[1]->mail(), 0, bytes_of("two"), test_deadline());
    std::vector<std::byte> one(1);
    while (transports[0]->mail().try_receive(1, one).bytes == 0_B) std::this_thread::yield();
    ASSERT_LT(sleeping.get(), kHang);
    EXPECT_EQ(receive_all(transports[0]->mail(), 1, 2, test_deadline()), bytes_of("wo"));
  }
}

TEST_P(TransportTest, AWaitEndsAtItsDeadline) {
  const Transports transports = make(2);
  const Interest interest{1, Readiness::kReadable};
  const Deadline deadline = Deadline::after(milliseconds(50));
  const TimePoint begin = Clock::now();
  while (!deadline.passed()) transports[0]->data().wait({&interest, 1}, deadline);
  EXPECT_LT(Clock::now() - begin, kHang);
}

TEST_P(TransportTest, AnInterruptEndsTheCurrentOrTheNextWait) {
  const Transports transports = make(2);
  for (Channel* channel : {&transports[0]->data(), &transports[0]->mail()}) {
    const Interest interest{1, Readiness::kReadable};
    const TimePoint begin = Clock::now();
    channel->interrupt();
    channel->wait({&interest, 1}, test_deadline());

    std::atomic<bool> stop = false;
    auto waiting = std::async(std::launch::async, [&] {
      while (!stop) channel->wait({&interest, 1}, test_deadline());
    });
    std::this_thread::sleep_for(milliseconds(5));  // so that the other thread most likely sleeps
    stop = true;
    channel->interrupt();
    waiting.get();
    ASSERT_LT(Clock::now() - begin, kHang);
  }
}

TEST_P(TransportTest, AWaitWithoutInterestsEndsByAnInterrupt) {
  const Transports transports = make(2);
  transports[0]->mail().interrupt();
  const TimePoint begin = Clock::now();
  transports[0]->mail().wait({}, test_deadline());
  EXPECT_LT(Clock::now() - begin, kHang);
}

TEST_P(TransportTest, OneThreadMayWaitWhileAnotherMovesBytes) {
  const Transports transports = make(2);
  std::atomic<bool> stop = false;
  auto waiting = std::async(std::launch::async, [&] {
    const std::vector<Interest> interests = {{1, Readiness::kReadable}};
    while (!stop) transports[0]->mail().wait(interests, test_deadline());
  });
  const auto wrong = run_ranks(2, [&](Rank self) {
    const auto idle = self == 0 ? Exchange::Idle::kYield : Exchange::Idle::kWait;
    return Exchange(transports[static_cast<std::size_t>(self)]->mail(), self, 2, 100'000, 5)
        .run(test_deadline(), idle);
  });
  stop = true;
  transports[0]->mail().interrupt();
  waiting.get();
  EXPECT_EQ(wrong, (std::vector<std::uint64_t>{0, 0}));
}

TEST_P(TransportTest, BytesSentBeforeAPeerLeftArriveAndThenTheStreamIsClosed) {
  Transports transports = make(3);
  send_all(transports[0]->data(), 1, bytes_of("last words"), test_deadline());
  transports[0].reset();
  EXPECT_EQ(receive_all(transports[1]->data(), 0, 100, test_deadline()), bytes_of("last words"));

  Channel& data = transports[1]->data();
  std::vector<std::byte> into(1);
  EXPECT_TRUE(data.try_receive(0, into).closed);
  // The other ranks continue.
  send_all(transports[1]->data(), 2, bytes_of("still here"), test_deadline());
  EXPECT_EQ(receive_all(transports[2]->data(), 1, 10, test_deadline()), bytes_of("still here"));
}

TEST_P(TransportTest, DeliveredBytesAlsoReachAPeerThatStillSendsToTheRankThatLeft) {
  Transports transports = make(2);
  const std::uint64_t filled = fill(transports[0]->mail(), 0, 1, test_deadline());
  Channel& mail = transports[1]->mail();
  std::vector<std::byte> got;
  for (const Deadline deadline = test_deadline(); transports[0]->mail().unacknowledged(1) > 0_B;) {
    ASSERT_FALSE(deadline.passed());
    transports[0]->mail().try_flush(1);
    std::vector<std::byte> some(4000);
    some.resize(static_cast<std::size_t>(mail.try_receive(0, some).bytes.value));
    got.insert(got.end(), some.begin(), some.end());
  }
  transports[0].reset();
  const auto unread = bytes_of("are you there?");
  const ConstPiece piece(unread);
  const Interest interest{0, Readiness::kWritable};
  for (int i = 0; i < 3; ++i) {  // the first may bring the answer that the peer is gone
    mail.try_send(0, {&piece, 1});
    mail.wait({&interest, 1}, Deadline::after(milliseconds(1)));
  }
  const auto rest = receive_all(mail, 0, filled - got.size(), test_deadline());
  got.insert(got.end(), rest.begin(), rest.end());
  EXPECT_TRUE(got == stream_bytes(0, 1, 0, filled)) << got.size() << " of " << filled;
}

TEST_P(TransportTest, SendingToAPeerThatLeftEventuallyReportsClosed) {
  Transports transports = make(2);
  transports[1].reset();
  const auto bytes = bytes_of("anyone?");
  const ConstPiece piece(bytes);
  const Interest interest{1, Readiness::kWritable};
  const Deadline deadline = test_deadline();
  bool closed = false;
  while (!closed && !deadline.passed()) {
    closed = transports[0]->data().try_send(1, {&piece, 1}).closed;
    if (!closed) transports[0]->data().wait({&interest, 1}, Deadline::after(milliseconds(10)));
  }
  EXPECT_TRUE(closed);
}

TEST_P(TransportTest, AWaitForAPeerEndsWhenItLeaves) {
  Transports transports = make(3);
  auto waiting = std::async(std::launch::async, [&] {
    const std::vector<Interest> interests = {{1, Readiness::kReadable}, {2, Readiness::kReadable}};
    const Deadline deadline = test_deadline();
    std::vector<std::byte> into(1);
    while (!deadline.passed()) {
      if (transports[0]->mail().try_receive(2, into).closed) return true;
      transports[0]->mail().wait(interests, deadline);
    }
    return false;
  });
  transports[2].reset();
  EXPECT_TRUE(waiting.get());
}

TEST_P(TransportTest, TransfersToThisRankOrToUnknownRanksAreRejected) {
  const Transports transports = make(2);
  std::vector<std::byte> into(1);
  for (const Rank nobody : {0, 2, -1}) {
    EXPECT_THROW(transports[0]->data().try_receive(nobody, into), Error);
    EXPECT_THROW(transports[0]->data().try_send(nobody, {}), Error);
  }
}

TEST_P(TransportTest, DescribeReturnsText) { EXPECT_FALSE(make(2)[0]->describe(1).empty()); }

INSTANTIATE_TEST_SUITE_P(All,
                         TransportTest,
                         ::testing::ValuesIn(all_kinds()),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace peal::transport
