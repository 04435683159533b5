#include "mnist/gzip.h"

#include <span>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "peal/base/error.h"

namespace mnist {
namespace {

using peal::operator""_KiB;
using peal::operator""_MiB;

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::vector<std::byte> gzip(const std::string& text) {
  std::vector<std::byte> packed(text.size() + 1024);
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string input = text;
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string gzip_refusal(const std::vector<std::byte>& bytes, peal::Bytes limit = 1_MiB) {
  try {
    gunzip(bytes, limit);
  } catch (const peal::Error& error) {
    EXPECT_EQ(error.kind(), peal::ErrorKind::kUsage);
    return error.what();
  }
  return "accepted";
}

TEST(GzipTest, UnpacksWhatZlibPacked) {
  for (const std::size_t size : {0, 1, 1000, 200'000}) {
    const std::string text(size, 'x');
    EXPECT_EQ(gunzip(gzip(text), 1_MiB), bytes_of(text)) << size;
  }
}

TEST(GzipTest, AllMembersAreUnpackedInOrder) {
  std::vector<std::byte> both = gzip("one ");
  const std::vector<std::byte> second = gzip("two");
  both.insert(both.end(), second.begin(), second.end());
  EXPECT_EQ(gunzip(both, 1_MiB), bytes_of("one two"));
}

TEST(GzipTest, EveryTruncationIsRejected) {
  const std::vector<std::byte> whole = gzip("a text that is long enough to be cut in many places");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::vector<std::byte> part(whole.begin(), whole.begin() + static_cast<long>(size));
    EXPECT_THAT(gzip_refusal(part), testing::HasSubstr("not a valid gzip file")) << size;
  }
}

TEST(GzipTest, TheChecksumRejectsAFlippedBit) {
  std::vector<std::byte> bytes = gzip("abcdefgh");
  bytes[bytes.size() - 6] ^= std::byte{1};  // in the CRC
  EXPECT_THAT(gzip_refusal(bytes), testing::HasSubstr("not a valid gzip file"));
}

TEST(GzipTest, ADecompressionBombIsRejectedAtTheLimit) {
  EXPECT_THAT(gzip_refusal(gzip(std::string(300'000, 'x')), 100_KiB),
              testing::HasSubstr("102400 bytes"));
}

}  // namespace
}  // namespace mnist
