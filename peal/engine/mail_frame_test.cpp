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
  bad = {.kind = MailFrame::Kind{10}};
  EXPECT_FALSE(MailFrame::decode(bad.encode())) << "no such kind";
  bad = {.kind = MailFrame::Kind::kOffer, .count = Elements(INT64_MAX)};
  bad.dtype = static_cast<std::uint8_t>(DType::kF64);
  EXPECT_FALSE(MailFrame::decode(bad.encode())) << "more bytes than there are numbers";
}

}  // namespace
}  // namespace peal::engine
