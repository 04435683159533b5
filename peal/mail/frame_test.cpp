// The encoding of the frames of the mail channel.
#include "peal/mail/frame.h"

#include <gtest/gtest.h>

namespace peal::mail {
namespace {

TEST(MailFrameTest, RejectsInvalidFrames) {
  const Frame good{.kind = Frame::Kind::kEager,
                   .dtype = DType::kF32,
                   .tag = Tag{3},
                   .count = Elements(2),
                   .payload = 8_B};
  EXPECT_EQ(Frame::decode(good.encode()), good);
  Frame bad = good;
  bad.payload = 12_B;
  EXPECT_FALSE(Frame::decode(bad.encode())) << "a payload that does not match the count";
  bad = good;
  bad.dtype = DType{77};
  EXPECT_FALSE(Frame::decode(bad.encode())) << "no such type";
  bad = {.kind = Frame::Kind::kData, .payload = kDataPiece + 1_B};
  EXPECT_FALSE(Frame::decode(bad.encode())) << "a piece that is too large";
  bad = {.kind = Frame::Kind{11}};
  EXPECT_FALSE(Frame::decode(bad.encode())) << "no such kind";
  bad = {.kind = Frame::Kind::kOffer, .count = Elements(INT64_MAX)};
  bad.dtype = DType::kF64;
  EXPECT_FALSE(Frame::decode(bad.encode())) << "more bytes than there are numbers";
}

TEST(MailFrameTest, CreditMayHaveOnlyTheBytesThatItsMessagesCanHave) {
  const Frame good{.kind = Frame::Kind::kCredit, .count = Elements(3), .id = 3 * kEagerLimit.value};
  EXPECT_EQ(Frame::decode(good.encode()), good);
  Frame bad = good;
  bad.id += 1;
  EXPECT_FALSE(Frame::decode(bad.encode()));
  for (const std::int64_t count : {std::int64_t{0}, std::int64_t{-1}, INT64_MAX}) {
    bad = good;
    bad.count = Elements(count);
    EXPECT_FALSE(Frame::decode(bad.encode())) << count;
  }
  bad = good;
  bad.payload = 1_B;
  EXPECT_FALSE(Frame::decode(bad.encode()));
}

}  // namespace
}  // namespace peal::mail
