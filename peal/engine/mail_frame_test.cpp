// What the mail channel carries, as bytes.
#include "peal/engine/mail_frame.h"

#include <gtest/gtest.h>

namespace peal::engine {
namespace {

TEST(MailFrameTest, OnlyFramesThatMakeSenseAreRead) {
  const MailFrame good{.kind = MailFrame::Kind::kEager,
                       .dtype = static_cast<std::uint8_t>(DType::kF32),
                       .tag = Tag{3},
                       .count = Elements(2),
                       .payload = 8_B};
  EXPECT_EQ(MailFrame::decode(good.encode()), good);
  MailFrame bad = good;
  bad.payload = 12_B;
  EXPECT_FALSE(MailFrame::decode(bad.encode())) << "a payload that is not what the count says";
  bad = good;
  bad.dtype = 77;
  EXPECT_FALSE(MailFrame::decode(bad.encode())) << "no such type";
  bad = {.kind = MailFrame::Kind::kData, .payload = kDataPiece + 1_B};
  EXPECT_FALSE(MailFrame::decode(bad.encode())) << "a piece that is too large";
  bad = {.kind = MailFrame::Kind{11}};
  EXPECT_FALSE(MailFrame::decode(bad.encode())) << "no such kind";
  bad = {.kind = MailFrame::Kind::kOffer, .count = Elements(INT64_MAX)};
  bad.dtype = static_cast<std::uint8_t>(DType::kF64);
  EXPECT_FALSE(MailFrame::decode(bad.encode())) << "more bytes than there are numbers";
}

TEST(MailFrameTest, TheReceiptOfMessagesSaysHowManyAndNoMoreBytesThanTheyCanHave) {
  const MailFrame good{
      .kind = MailFrame::Kind::kCredit, .count = Elements(3), .id = 3 * kEagerLimit.value};
  EXPECT_EQ(MailFrame::decode(good.encode()), good);
  MailFrame bad = good;
  bad.id += 1;
  EXPECT_FALSE(MailFrame::decode(bad.encode()));
  for (const std::int64_t count : {std::int64_t{0}, std::int64_t{-1}, INT64_MAX}) {
    bad = good;
    bad.count = Elements(count);
    EXPECT_FALSE(MailFrame::decode(bad.encode())) << count;
  }
  bad = good;
  bad.payload = 1_B;
  EXPECT_FALSE(MailFrame::decode(bad.encode()));
}

}  // namespace
}  // namespace peal::engine
