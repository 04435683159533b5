#include "peal/base/serialize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"

namespace peal {
namespace {

using testing::HasSubstr;

/// The message of the error that `call` throws; it must be a mismatch.
template <class Call>
std::string mismatch_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kMismatch);
    return error.what();
  }
  ADD_FAILURE() << "accepted";
  return "";
}

ByteWriter one_of_each() {
  ByteWriter writer;
  writer.put_u8(0xfe).put_u16(0xfedc).put_u32(0xfedcba98).put_u64(0xfedcba9876543210);
  writer.put_i32(-2).put_i64(-3).put_text(std::string("a\0b", 3)).put_raw("xyz");
  return writer;
}

void read_one_of_each(ByteReader& reader) {
  EXPECT_EQ(reader.get_u8(), 0xfe);
  EXPECT_EQ(reader.get_u16(), 0xfedc);
  EXPECT_EQ(reader.get_u32(), 0xfedcba98);
  EXPECT_EQ(reader.get_u64(), 0xfedcba9876543210);
  EXPECT_EQ(reader.get_i32(), -2);
  EXPECT_EQ(reader.get_i64(), -3);
  EXPECT_EQ(reader.get_text(3_B), std::string_view("a\0b", 3));
  EXPECT_EQ(reader.get_raw(3_B), "xyz");
  reader.finish();
}

TEST(SerializeTest, AMessageReadsBackAsWritten) {
  const ByteWriter writer = one_of_each();
  ByteReader reader(writer.view(), "test message");
  read_one_of_each(reader);
}

TEST(SerializeTest, IntegersAreLittleEndian) {
  ByteWriter writer;
  writer.put_u32(0x04030201);
  EXPECT_EQ(writer.view(), "\x01\x02\x03\x04");
  EXPECT_EQ(std::move(writer).take(), "\x01\x02\x03\x04");
}

TEST(SerializeTest, ATruncatedMessageIsAnErrorThatNamesTheMessage) {
  const std::string whole = one_of_each().take();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::string part = whole.substr(0, size);
    ByteReader reader(part, "test message");
    EXPECT_THAT(mismatch_of([&] { read_one_of_each(reader); }), HasSubstr("test message")) << size;
  }
}

TEST(SerializeTest, LeftoverBytesAreAnError) {
  ByteReader reader("abc", "test message");
  reader.get_raw(2_B);
  EXPECT_THAT(mismatch_of([&] { reader.finish(); }), HasSubstr("unexpected bytes at its end: 1"));
}

TEST(SerializeTest, ATextBeyondItsLimitIsAnError) {
  ByteWriter writer;
  writer.put_text("four");
  ByteReader reader(writer.view(), "test message");
  EXPECT_THAT(mismatch_of([&] { reader.get_text(3_B); }), HasSubstr("4 bytes"));
}

TEST(SerializeTest, AHugeLengthIsAnErrorWithoutAnAllocation) {
  ByteWriter writer;
  writer.put_u32(0xffffffff);
  ByteReader limited(writer.view(), "test message");
  EXPECT_THAT(mismatch_of([&] { limited.get_text(1_MiB); }), HasSubstr("at most"));
  ByteReader unlimited(writer.view(), "test message");
  EXPECT_THAT(mismatch_of([&] { unlimited.get_text(Bytes(1ll << 40)); }), HasSubstr("too early"));
}

}  // namespace
}  // namespace peal
