#include "peal/base/error_bytes.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace peal {
namespace {

std::string bytes_of_error(const Error& error) {
  ByteWriter writer;
  put(writer, error);
  return std::move(writer).take();
}

Error sent(const Error& error) {
  const std::string bytes = bytes_of_error(error);
  ByteReader reader(bytes, "error");
  const Error received = get_error(reader);
  reader.finish();
  return received;
}

TEST(ErrorBytesTest, EveryKindAndCauseArrivesWithItsDetails) {
  for (std::uint8_t k = 0; k < kErrorKinds; ++k) {
    for (std::uint8_t c = 0; c < kErrorCauses; ++c) {
      const ErrorKind kind{k};
      const ErrorCause cause{c};
      const ErrorDetails details{.rank = 3,
                                 .host = "node-7",
                                 .operation = "all_reduce #12",
                                 .cause = cause,
                                 .reason = "out of luck"};
      const Error received = sent(Error(kind, "rank 3 threw: out of luck", details));
      EXPECT_EQ(received.kind(), kind);
      EXPECT_EQ(received.message(), "rank 3 threw: out of luck");
      EXPECT_EQ(received.details(), details);
    }
  }
}

TEST(ErrorBytesTest, MissingDetailsStayMissing) {
  EXPECT_EQ(sent(Error(ErrorKind::kTimeout, "late")).details(), ErrorDetails());
}

TEST(ErrorBytesTest, LongTextsAreCutToTheLimit) {
  const std::string text(10'000, 'x');
  const Error error(
      ErrorKind::kBug, text, {.rank = 1, .host = text, .operation = text, .reason = text});
  EXPECT_LE(bytes_of_error(error).size(), static_cast<std::size_t>(kErrorLimit.value));
  EXPECT_THAT(std::string(sent(error).message()), testing::StartsWith("xxxx"));
}

TEST(ErrorBytesTest, UnknownNumbersBecomeBugAndUnknown) {
  std::string bytes = bytes_of_error(Error(ErrorKind::kTimeout, "late"));
  bytes[0] = static_cast<char>(200);
  bytes[1] = static_cast<char>(200);
  ByteReader reader(bytes, "error");
  const Error received = get_error(reader);
  EXPECT_EQ(received.kind(), ErrorKind::kBug);
  EXPECT_EQ(received.details().cause, ErrorCause::kUnknown);
}

}  // namespace
}  // namespace peal
