#include "peal/engine/fingerprint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"

namespace peal::engine {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Fingerprint some_fingerprint() {
  return {.sequence = 12,
          .operation = Operation::kReduce,
          .dtype = DType::kBF16,
          .reduce = ReduceOp::Kind::kMax,
          .algorithm = 3,
          .root = 2,
          .count = Elements(5'000'000'000),
          .detail = 99};
}

TEST(FingerprintTest, AHeaderSurvivesEncodingAndDecoding) {
  const Header header{some_fingerprint(), Bytes(1'234'567'890'123)};
  const auto bytes = header.encode();
  const auto again = Header::decode(bytes);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->fingerprint, header.fingerprint);
  EXPECT_EQ(again->link_bytes, header.link_bytes);
}

TEST(FingerprintTest, RejectsBytesThatAreNotAHeader) {
  auto bytes = Header{some_fingerprint(), 8_B}.encode();
  bytes[0] ^= std::byte{1};
  EXPECT_FALSE(Header::decode(bytes));
}

TEST(FingerprintTest, AnEntrySurvivesEncodingAndDecoding) {
  const Entry entry{.fingerprint = some_fingerprint(),
                    .input = transport::ArenaOffset{4096},
                    .output = std::nullopt,
                    .input_count = Elements(7),
                    .output_count = Elements(0)};
  const Entry again = Entry::decode(entry.encode());
  EXPECT_EQ(again.fingerprint, entry.fingerprint);
  EXPECT_EQ(again.input, entry.input);
  EXPECT_EQ(again.output, entry.output);
  EXPECT_EQ(again.input_count, entry.input_count);
  EXPECT_EQ(again.output_count, entry.output_count);
}

TEST(FingerprintTest, AMismatchDescribesBothSides) {
  Fingerprint other = some_fingerprint();
  other.root = 1;
  const Error error = mismatch(0, some_fingerprint(), 3, other);
  EXPECT_EQ(error.kind(), ErrorKind::kMismatch);
  EXPECT_THAT(error.what(),
              AllOf(HasSubstr("rank 0 in reduce #12 (max of 5000000000 bf16, root 2)"),
                    HasSubstr("rank 3 in reduce #12 (max of 5000000000 bf16, root 1)")));
}

TEST(FingerprintTest, AMismatchOfHiddenFieldsNamesThePossibleCauses) {
  Fingerprint other = some_fingerprint();
  other.algorithm = 1;
  EXPECT_THAT(mismatch(0, some_fingerprint(), 1, other).what(),
              AllOf(HasSubstr("PEAL_ALGORITHM"), HasSubstr("PEAL_TUNE")));
  other = some_fingerprint();
  other.detail = 1;
  EXPECT_THAT(mismatch(0, some_fingerprint(), 1, other).what(), HasSubstr("PEAL_STAGE"));
}

}  // namespace
}  // namespace peal::engine
