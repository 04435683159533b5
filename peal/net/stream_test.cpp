// Tests that every kind of stream must pass, and tests for the kinds that protect their bytes.
#include "peal/net/stream.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <future>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/base/serialize.h"
#include "peal/base/testing/soon.h"
#include "peal/net/checked_stream.h"
#include "peal/net/encrypted_stream.h"
#include "peal/net/plain_stream.h"
#include "peal/net/socket.h"
#include "peal/net/testing/wire.h"

namespace peal::net {
namespace {

/// Shrinks the send buffer to the system's minimum, a few kilobytes.
void shrink_buffer(int fd) {
  const int least = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &least, sizeof least);
}

struct Kind {
  std::string name;
  MakeStream make;
  bool guards = true;
};

std::vector<Kind> all_kinds() {
  return {
      {"plain", [](Fd fd, Role) { return std::make_unique<PlainStream>(std::move(fd)); }, false},
      {"checked", [](Fd fd, Role) { return std::make_unique<CheckedStream>(std::move(fd)); }},
      {"encrypted", make_encrypted},
  };
}

std::vector<Kind> guarding_kinds() {
  std::vector<Kind> kinds = all_kinds();
  std::erase_if(kinds, [](const Kind& kind) { return !kind.guards; });
  return kinds;
}

/// Makes two connected streams.
std::pair<StreamPtr, StreamPtr> make_streams(const Kind& kind) {
  SocketPair pair = make_socket_pair();
  auto a = kind.make(std::move(pair.a), Role::kConnector);
  auto b = kind.make(std::move(pair.b), Role::kAcceptor);
  auto* const connector = dynamic_cast<EncryptedStream*>(a.get());
  auto* const acceptor = dynamic_cast<EncryptedStream*>(b.get());
  for (bool done = connector == nullptr; !done;) {
    const bool one = connector->try_handshake();
    const bool other = acceptor->try_handshake();
    done = one && other;
  }
  return {std::move(a), std::move(b)};
}

std::string random_text(std::size_t size) {
  std::string text(size, '\0');
  std::uint32_t state = 1;
  for (char& c : text) c = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  return text;
}

class StreamTest : public testing::TestWithParam<Kind> {};
class GuardedStreamTest : public testing::TestWithParam<Kind> {};

std::string name_of_kind(const testing::TestParamInfo<Kind>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(All, StreamTest, testing::ValuesIn(all_kinds()), name_of_kind);
INSTANTIATE_TEST_SUITE_P(Guarding,
                         GuardedStreamTest,
                         testing::ValuesIn(guarding_kinds()),
                         name_of_kind);

TEST_P(StreamTest, AnyAmountArrivesInPiecesOfAnySizeThroughAnyBuffer) {
  constexpr std::size_t kRecord = 64 << 10;
  std::mt19937 random(11);
  for (const std::size_t size : {std::size_t{1},
                                 std::size_t{12},
                                 kRecord / 4 - 1,
                                 kRecord / 4,
                                 kRecord / 4 + 1,
                                 kRecord - 1,
                                 kRecord,
                                 kRecord + 1,
                                 2 * kRecord,
                                 5 * kRecord + 17}) {
    for (const bool small : {false, true}) {
      auto [a, b] = make_streams(GetParam());
      if (small) shrink_buffer(a->fd());
      const std::string sent = random_text(size);
      std::string received;
      std::size_t done = 0;
      while (received.size() < size) {
        const std::string_view rest = std::string_view(sent).substr(done);
        const std::size_t first = std::min<std::size_t>(rest.size(), random() % 9000);
        const std::size_t second = random() % (rest.size() - first + 1);
        const std::vector<std::span<const std::byte>> pieces = {
            bytes_of(rest.substr(0, first)), {}, bytes_of(rest.substr(first, second))};
        const Moved moved = a->try_write(pieces);
        ASSERT_FALSE(moved.closed);
        ASSERT_EQ(moved.held, a->has_unsent());
        done += static_cast<std::size_t>(moved.bytes.value);
        const ReadOutcome outcome = read_all_there_is(*b, 1 + random() % 30'000);
        ASSERT_FALSE(outcome.error) << outcome.error->what();
        received += outcome.text;
      }
      EXPECT_EQ(received, sent) << size;
      EXPECT_TRUE(a->try_flush());
      EXPECT_FALSE(b->has_read_ahead());
    }
  }
}

TEST_P(StreamTest, BothDirectionsMoveAtOnce) {
  auto [a, b] = make_streams(GetParam());
  for (int i = 0; i < 50; ++i) {
    const std::string there = random_text(static_cast<std::size_t>(1 + i * 37));
    const std::string back = random_text(static_cast<std::size_t>(2000 - i * 37));
    write(*a, there);
    write(*b, back);
    EXPECT_EQ(read_all_there_is(*b).text, there);
    EXPECT_EQ(read_all_there_is(*a).text, back);
  }
}

TEST_P(StreamTest, FlushSendsTheHeldBytes) {
  auto [a, b] = make_streams(GetParam());
  shrink_buffer(a->fd());
  const std::string text = random_text(1 << 20);
  const Moved moved = write(*a, text);
  const auto taken = static_cast<std::size_t>(moved.bytes.value);
  ASSERT_GT(taken, 0U);
  ASSERT_LT(taken, text.size());
  EXPECT_GT(a->unacknowledged(), 0_B);
  std::string received;
  while (!a->try_flush()) received += read_all_there_is(*b).text;
  EXPECT_FALSE(a->has_unsent());
  received += read_all_there_is(*b).text;
  EXPECT_EQ(received, text.substr(0, taken));
}

TEST_P(StreamTest, BytesThatPollDoesNotReportAreReportedAsReadAhead) {
  auto [a, b] = make_streams(GetParam());
  for (const char* text : {"one", "two", "three"}) write(*a, text);
  std::array<std::byte, 2> some;
  EXPECT_EQ(b->try_read(some).bytes, 2_B);
  pollfd entry{b->fd(), POLLIN, 0};
  EXPECT_TRUE(b->has_read_ahead() || poll_until({&entry, 1}, Deadline(Clock::now())));
  EXPECT_EQ(read_all_there_is(*b).text, "etwothree");
  EXPECT_FALSE(b->has_read_ahead());
}

/// A thread that sleeps in poll(2) until there is data to read depends on this.
TEST_P(StreamTest, BytesThatCanBeReadAreReportedByPollOrAsReadAhead) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::size_t bound) { return random() % bound; };
    auto [a, b] = make_streams(GetParam());
    if (seed % 2 == 0) shrink_buffer(a->fd());
    const std::string text = random_text(100'000);
    std::vector<std::byte> room(40'000);
    for (int step = 0; step < 300; ++step) {
      switch (below(3)) {
        case 0:
          write(*a, std::string_view(text).substr(0, 1 + below(step % 5 == 0 ? text.size() : 500)));
          break;
        case 1:
          a->try_flush();
          break;
        default:
          b->try_read(std::span(room).first(1 + below(step % 7 == 0 ? room.size() : 300)));
      }
      if (!a->has_unsent()) {
        ASSERT_TRUE(a->try_flush());
      }
      if (is_readable(*b) || b->has_read_ahead()) continue;
      ASSERT_EQ(b->try_read(room).bytes, 0_B) << "seed " << seed << ", step " << step;
    }
  }
}

TEST_P(StreamTest, TheEndOfTheStreamComesAfterAllSentBytes) {
  auto [a, b] = make_streams(GetParam());
  write(*a, "last words");
  hang_up(*a);
  a.reset();
  const ReadOutcome outcome = read_all_there_is(*b, 3);
  EXPECT_EQ(outcome.text, "last words");
  EXPECT_TRUE(outcome.closed);
  bool closed = false;
  for (int i = 0; i < 10 && !closed; ++i) closed = write(*b, "anybody?").closed;
  EXPECT_TRUE(closed);
  EXPECT_TRUE(b->try_flush());
}

TEST_P(StreamTest, ReadAllAndWriteAllWait) {
  auto [a, b] = make_streams(GetParam());
  shrink_buffer(a->fd());
  const std::string text = random_text(300'000);
  auto writing = std::async(std::launch::async,
                            [&, &stream = *a] { write_all(stream, bytes_of(text), soon()); });
  std::string received(text.size(), '\0');
  read_all(*b, std::as_writable_bytes(std::span(received)), soon());
  writing.get();
  EXPECT_EQ(received, text);
  EXPECT_THROW(read_all(*b,
                        std::as_writable_bytes(std::span(received)),
                        Deadline::after(std::chrono::milliseconds(5))),
               Error);
}

// ---- changes to the bytes on the wire

/// The payloads of three records.
const std::array<std::string, 3> kTexts = {random_text(40), random_text(7), random_text(100)};

std::array<std::string, 3> send_three(const Wire& wire) {
  std::array<std::string, 3> records;
  for (std::size_t i = 0; i < kTexts.size(); ++i) {
    write(*wire.sender, kTexts[i]);
    records[i] = wire.take();
  }
  return records;
}

TEST_P(GuardedStreamTest, AChangedByteIsNeverReturned) {
  std::size_t size = 1;
  for (std::size_t at = 0; at < size; ++at) {
    Wire wire = make_wire(GetParam().make);
    const std::array<std::string, 3> records = send_three(wire);
    std::string bytes = records[0] + records[1] + records[2];
    size = bytes.size();
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << (at % 8)));
    wire.put(bytes);
    std::string whole;  // the payloads before the changed record
    for (std::size_t i = 0, end = 0; i < records.size(); ++i) {
      if ((end += records[i].size()) <= at) whole += kTexts[i];
    }
    ReadOutcome outcome = read_all_there_is(*wire.receiver);
    if (!outcome.error) {  // the reader waits for the rest of a record whose length was increased
      wire.to_receiver.reset();
      const ReadOutcome rest = read_all_there_is(*wire.receiver);
      EXPECT_TRUE(rest.error || rest.closed) << at;
      outcome.text += rest.text;
    } else {
      EXPECT_EQ(outcome.error->kind(), ErrorKind::kPeerLost);
      EXPECT_TRUE(read_all_there_is(*wire.receiver).error) << "every later read fails too";
    }
    EXPECT_EQ(outcome.text, whole) << at;
  }
}

TEST_P(GuardedStreamTest, ATruncatedStreamEndsAfterACompleteRecord) {
  std::size_t size = 1;
  for (std::size_t cut = 0; cut < size; ++cut) {
    Wire wire = make_wire(GetParam().make);
    const std::array<std::string, 3> records = send_three(wire);
    const std::string bytes = records[0] + records[1] + records[2];
    size = bytes.size();
    wire.put(bytes.substr(0, cut));
    wire.to_receiver.reset();
    std::string whole;
    for (std::size_t i = 0, end = 0; i < records.size(); ++i) {
      if ((end += records[i].size()) <= cut) whole += kTexts[i];
    }
    const ReadOutcome outcome = read_all_there_is(*wire.receiver);
    EXPECT_EQ(outcome.text, whole) << cut;
    EXPECT_TRUE(outcome.closed || outcome.error) << cut;
  }
}

TEST_P(GuardedStreamTest, ARepeatedOrReorderedRecordIsNeverReturned) {
  struct Case {
    std::vector<std::size_t> order;
    std::size_t right = 0;  // the number of correct records at the beginning
  };
  for (const Case& test : {Case{{0, 0}, 1}, Case{{0, 1, 0}, 2}, Case{{1}, 0}, Case{{0, 2}, 1}}) {
    Wire wire = make_wire(GetParam().make);
    const std::array<std::string, 3> records = send_three(wire);
    std::string right;
    for (std::size_t i = 0; i < test.order.size(); ++i) {
      wire.put(records.at(test.order[i]));
      if (i < test.right) right += kTexts.at(test.order[i]);
    }
    const ReadOutcome outcome = read_all_there_is(*wire.receiver);
    EXPECT_EQ(outcome.text, right);
    ASSERT_TRUE(outcome.error);
    EXPECT_EQ(outcome.error->kind(), ErrorKind::kPeerLost);
  }
}

}  // namespace
}  // namespace peal::net
