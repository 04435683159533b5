#include "peal/transport/shm/ring.h"

#include <new>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/system/mapping.h"
#include "peal/transport/testing/testing.h"

namespace peal::transport {
namespace {

using testing::byte_at;
using testing::stream_bytes;

class RingTest : public ::testing::Test {
 protected:
  static constexpr Bytes kCapacity = 4_KiB;
  static constexpr Bytes kSize = kCapacity + Bytes(sizeof(RingHeader));

  RingHeader& header() { return *reinterpret_cast<RingHeader*>(mapping_.bytes().data()); }
  Bytes write(std::uint64_t position, std::size_t size) {
    const auto bytes = stream_bytes(0, 1, position, size);
    const ConstPiece piece(bytes);
    return writer_.write({&piece, 1});
  }
  std::vector<std::byte> read(std::size_t size) {
    std::vector<std::byte> bytes(size);
    bytes.resize(static_cast<std::size_t>(reader_.read(bytes).bytes.value));
    return bytes;
  }

  static RingMemory memory_in(const Mapping& mapping) {
    std::byte* const begin = mapping.bytes().data();
    return {reinterpret_cast<RingHeader*>(begin), begin + sizeof(RingHeader), kCapacity, 1};
  }

  Mapping mapping_ = Mapping::anonymous(kSize);
  RingMemory memory_ = memory_in(mapping_);
  RingWriter writer_{memory_};
  RingReader reader_{memory_};
};

TEST_F(RingTest, TheRingTakesAsMuchAsItHoldsAndNoMore) {
  EXPECT_TRUE(writer_.has_space());
  EXPECT_FALSE(reader_.has_data());
  EXPECT_EQ(write(0, 5000), kCapacity);
  EXPECT_FALSE(writer_.has_space());
  EXPECT_TRUE(reader_.has_data());
  EXPECT_EQ(write(4096, 1), 0_B);
  EXPECT_EQ(read(1024), stream_bytes(0, 1, 0, 1024));
  EXPECT_EQ(write(4096, 2000), 1024_B);
  EXPECT_EQ(read(5000), stream_bytes(0, 1, 1024, 4096));
  EXPECT_EQ(read(1).size(), 0u);
}

TEST_F(RingTest, ShortAndCutWritesAreReadAsTheyWereWritten) {
  for (const std::size_t room : {1, 20, 38, 39, 60}) {
    SCOPED_TRACE(room);
    const Mapping mapping = Mapping::anonymous(kSize);
    const RingMemory memory = memory_in(mapping);
    RingWriter writer(memory);
    RingReader reader(memory);
    const auto put = [&](std::uint64_t position, std::size_t size) {
      const auto bytes = stream_bytes(0, 1, position, size);
      const ConstPiece piece(bytes);
      return static_cast<std::size_t>(writer.write({&piece, 1}).value);
    };
    const std::size_t filled = 4096 - 10 - room;
    ASSERT_EQ(put(0, filled), filled);
    ASSERT_EQ(put(filled, 10), 10u);
    ASSERT_EQ(put(filled + 10, 100), room);
    std::vector<std::byte> bytes(filled);
    reader.read(bytes);
    bytes.resize(10 + room);
    EXPECT_EQ(reader.read(bytes).bytes, Bytes(static_cast<std::int64_t>(10 + room)));
    EXPECT_EQ(bytes, stream_bytes(0, 1, filled, 10 + room));
  }
}

/// Each notice takes a cache line from the other side.
TEST_F(RingTest, RoomIsPublishedInGoodSharesAndNotForEachByte) {
  EXPECT_EQ(write(0, 4096), kCapacity);
  for (std::uint64_t taken = 0; taken < 1023; ++taken) {
    EXPECT_EQ(read(1), stream_bytes(0, 1, taken, 1));
    EXPECT_TRUE(reader_.has_data());
    EXPECT_FALSE(writer_.has_space());
  }
  read(1);
  EXPECT_TRUE(writer_.has_space());
  EXPECT_EQ(read(3072).size(), 3072u);
  EXPECT_FALSE(reader_.has_data());
  EXPECT_EQ(write(4096, 4096), kCapacity);
}

TEST_F(RingTest, AnEmptiedRingHasRoomHoweverMuchWasReadFirst) {
  std::uint64_t at = 0;
  for (const std::size_t first : {1, 47, 48, 49, 1000, 1023, 1024, 4095}) {
    EXPECT_EQ(write(at, 4096), kCapacity) << first;
    EXPECT_EQ(read(first), stream_bytes(0, 1, at, first));
    EXPECT_EQ(read(4096), stream_bytes(0, 1, at + first, 4096 - first));
    EXPECT_TRUE(writer_.has_space());
    EXPECT_FALSE(reader_.has_data());
    EXPECT_GE(write(at + 4096, 3072), 3072_B);  // all but the room that may not be published yet
    EXPECT_EQ(read(3072), stream_bytes(0, 1, at + 4096, 3072));
    at += 4096 + 3072;
  }
}

TEST_F(RingTest, PiecesAreJoinedAndMayBeCutAnywhere) {
  const auto whole = stream_bytes(0, 1, 0, 6000);
  const std::span<const std::byte> all(whole);
  const std::vector<ConstPiece> pieces = {
      all.first(0), all.subspan(0, 1), all.subspan(1, 4000), all.subspan(4001, 1999)};
  EXPECT_EQ(writer_.write(pieces), kCapacity);
  EXPECT_EQ(read(6000), stream_bytes(0, 1, 0, 4096));
}

TEST_F(RingTest, BytesCrossTheEndOfTheRingUnchanged) {
  std::uint64_t written = 0;
  std::uint64_t taken = 0;
  for (std::size_t step = 1; step < 400; ++step) {
    written += static_cast<std::uint64_t>(write(written, step * 7 % 1500).value);
    const auto got = read(step * 11 % 1700);
    ASSERT_EQ(got, stream_bytes(0, 1, taken, got.size()));
    taken += got.size();
  }
  EXPECT_GT(taken, 10 * 4096u);
}

TEST_F(RingTest, ShortWritesArriveWholeWithReadsOfAnySize) {
  std::uint64_t written = 0;
  std::uint64_t taken = 0;
  for (std::size_t step = 0; step < 4000; ++step) {
    for (std::size_t i = 0; i < step % 3; ++i) {  // none, one, or several before the next look
      written += static_cast<std::uint64_t>(write(written, (step * 7 + i) % 52).value);
    }
    const auto got = read(step % 5 == 0 ? step % 30 : 256);
    ASSERT_EQ(got, stream_bytes(0, 1, taken, got.size()));
    taken += got.size();
  }
  EXPECT_GT(taken, 10 * 4096u);
}

TEST_F(RingTest, ShortWritesAreNeverTornForAPollingReader) {
  constexpr std::uint64_t kBytes = 500'000;
  std::thread writing([this] {
    for (std::uint64_t written = 0; written < kBytes;) {
      const std::size_t size = 1 + written % 51;
      const auto moved = static_cast<std::uint64_t>(write(written, size).value);
      if (moved == 0) std::this_thread::yield();
      written += moved;
    }
  });
  std::uint64_t wrong = 0;
  for (std::uint64_t taken = 0; taken < kBytes;) {
    const auto got = read(256);
    if (got.empty()) std::this_thread::yield();
    if (got != stream_bytes(0, 1, taken, got.size())) ++wrong;
    taken += got.size();
  }
  writing.join();
  EXPECT_EQ(wrong, 0u);
}

TEST_F(RingTest, EachSideSeesThatTheOtherHasLeft) {
  write(0, 10);
  EXPECT_FALSE(reader_.writer_left());
  writer_.leave();
  EXPECT_TRUE(reader_.writer_left());
  EXPECT_EQ(read(100), stream_bytes(0, 1, 0, 10));
  EXPECT_FALSE(writer_.reader_left());
  reader_.leave();
  EXPECT_TRUE(writer_.reader_left());
}

template <class Use>
void expect_corrupt(Use use) {
  try {
    use();
    FAIL() << "the corruption was not noticed";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kPeerLost);
    EXPECT_NE(error.message().find("shared with rank 1 is corrupt"), std::string_view::npos);
  }
}

TEST_F(RingTest, ImpossiblePositionsAreAnErrorAndNeverAnAccess) {
  write(0, 100);
  for (const std::uint64_t wrong : {std::uint64_t{4097}, ~std::uint64_t{0}}) {
    header().written = wrong;
    EXPECT_TRUE(reader_.has_data());
    expect_corrupt([&] { read(10); });
  }
  header().written = 100;
  EXPECT_EQ(read(60).size(), 60u);
  header().written = 59;  // below the position that was taken
  expect_corrupt([&] { read(10); });

  for (const std::uint64_t wrong : {std::uint64_t{101}, ~std::uint64_t{0}}) {
    header().taken = wrong;
    EXPECT_TRUE(writer_.has_space());
    expect_corrupt([&] { write(100, 4096); });
  }
}

TEST_F(RingTest, AWriterAndAReaderInTwoThreadsAgreeOnEveryByte) {
  constexpr std::uint64_t kTotal = 3'000'000;
  std::thread writing([&] {
    std::uint64_t done = 0;
    for (std::size_t step = 1; done < kTotal; ++step) {
      const std::size_t size = std::min<std::uint64_t>(step * 37 % 5000, kTotal - done);
      const auto moved = write(done, size).value;
      done += static_cast<std::uint64_t>(moved);
      if (moved == 0) std::this_thread::yield();
    }
    writer_.leave();
  });
  std::uint64_t done = 0;
  std::uint64_t wrong = 0;
  const Deadline deadline = testing::test_deadline();
  while (!deadline.passed()) {
    const bool left = reader_.writer_left();
    const auto got = read(3000);
    for (std::size_t i = 0; i < got.size(); ++i) wrong += got[i] != byte_at(0, 1, done + i);
    done += got.size();
    if (left && got.empty()) break;
    if (got.empty()) std::this_thread::yield();
  }
  writing.join();
  EXPECT_EQ(done, kTotal);
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace peal::transport
