#include "peal/net/record.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/base/serialize.h"

namespace peal::net {
namespace {

constexpr auto kHead = static_cast<std::size_t>(kRecordHead.value);
constexpr auto kMost = static_cast<std::size_t>(kMostInRecord.value);

std::string text_of(std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 7 + i / 251);
  return text;
}

/// The records of a text, one string each.
std::vector<std::string> records_of(RecordWriter& writer, const std::string& text) {
  const std::array pieces = {bytes_of(text)};
  Pieces left(pieces);
  std::vector<std::string> records;
  while (!left.empty()) {
    const auto record = writer.seal(left);
    records.emplace_back(reinterpret_cast<const char*>(record.data()), record.size());
  }
  return records;
}

/// The text that the reader returns for these bytes, which come `step` at a time.
std::string read(RecordReader& reader, std::string_view wire, std::size_t step = 1 << 20) {
  std::string text;
  std::array<char, 1000> some;
  while (true) {
    std::size_t taken = 0;
    do {
      taken = reader.take(std::as_writable_bytes(std::span(some)));
      text.append(some.data(), taken);
    } while (taken > 0);
    if (wire.empty()) return text;
    const auto room = reader.room();
    const std::size_t size = std::min({step, wire.size(), room.size()});
    std::ranges::copy(bytes_of(wire.substr(0, size)), room.begin());
    reader.has_come(size);
    wire.remove_prefix(size);
  }
}

TEST(RecordTest, TheReaderReturnsSealedDataInPiecesOfAnySize) {
  for (const std::size_t size : {std::size_t{1}, kMost - 1, kMost, kMost + 1, 3 * kMost + 5}) {
    RecordWriter writer;
    const std::vector<std::string> records = records_of(writer, text_of(size));
    EXPECT_EQ(records.size(), (size + kMost - 1) / kMost);
    std::string wire;
    for (const std::string& record : records) wire += record;
    EXPECT_EQ(wire.size(), size + records.size() * kHead);
    for (const std::size_t step : {std::size_t{1}, kHead, std::size_t{4097}, wire.size()}) {
      RecordReader reader;
      EXPECT_EQ(read(reader, wire, step), text_of(size)) << size << " by " << step;
      EXPECT_FALSE(reader.has_some());
    }
  }
}

TEST(RecordTest, SealReturnsNothingForNoPieces) {
  RecordWriter writer;
  Pieces none({});
  EXPECT_TRUE(writer.seal(none).empty());
}

TEST(RecordTest, ARecordIsReadableOnceItIsComplete) {
  RecordWriter writer;
  const std::string record = records_of(writer, "abc").front();
  RecordReader reader;
  EXPECT_EQ(read(reader, record.substr(0, record.size() - 1)), "");
  EXPECT_FALSE(reader.has_some());
  const auto room = reader.room();
  room[0] = static_cast<std::byte>(record.back());
  reader.has_come(1);
  EXPECT_TRUE(reader.has_some());
  EXPECT_EQ(read(reader, ""), "abc");
}

TEST(RecordTest, ADamagedHeadIsDetectedBeforeThePayloadHasCome) {
  for (std::size_t at = 0; at < 8; ++at) {
    RecordWriter writer;
    std::string record = records_of(writer, "abc").front();
    record[at] = static_cast<char>(record[at] ^ 1);
    RecordReader reader;
    EXPECT_THROW(read(reader, record.substr(0, kHead)), Error) << at;
    EXPECT_THROW(read(reader, ""), Error) << "every later call throws too";
    EXPECT_TRUE(reader.has_some());
  }
}

TEST(RecordTest, AnEmptyOrTooLongRecordIsAnError) {
  for (const std::size_t length : {std::size_t{0}, kMost + 1}) {
    RecordReader reader;
    ByteWriter head;
    head.put_u32(static_cast<std::uint32_t>(length)).put_u64(0);
    EXPECT_THROW(read(reader, head.view()), Error) << length;
  }
}

}  // namespace
}  // namespace peal::net
