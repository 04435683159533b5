#include "peal/mail/group_notice.h"

#include <string>

#include <gtest/gtest.h>

namespace peal::mail {
namespace {

TEST(GroupNoticeTest, AFailureSurvivesEncodingAndDecoding) {
  for (std::uint8_t number = 0; number < kErrorKinds; ++number) {
    const ErrorKind kind{number};
    const GroupNotice notice = failure_notice(Error(kind, "rank 3 hangs"));
    EXPECT_EQ(Frame::decode(notice.frame.encode()), notice.frame);
    const std::optional<Error> received = failure_in(notice.payload);
    ASSERT_TRUE(received);
    EXPECT_EQ(received->kind(), kind);
    EXPECT_EQ(received->message(), "rank 3 hangs");
  }
}

TEST(GroupNoticeTest, ALongTextIsCutToTheLimitOfAFrame) {
  const GroupNotice notice = failure_notice(Error(ErrorKind::kBug, std::string(10'000, 'x')));
  EXPECT_EQ(notice.frame.payload, Bytes(std::ssize(notice.payload)));
  EXPECT_EQ(Frame::decode(notice.frame.encode()), notice.frame);
}

TEST(GroupNoticeTest, RejectsBytesThatAreNotAFailureOrADeparture) {
  GroupNotice notice = failure_notice(Error(ErrorKind::kTimeout, "late"));
  notice.payload.pop_back();
  EXPECT_EQ(failure_in(notice.payload), std::nullopt);
  EXPECT_EQ(failure_in({}), std::nullopt);
  EXPECT_EQ(departure_in({}), std::nullopt);
  EXPECT_EQ(departure_in(notice.payload), std::nullopt);
}

TEST(GroupNoticeTest, ProgressReportsAndDeparturesSurviveEncodingAndDecoding) {
  engine::ProgressReport report;
  report.before = 7;
  const GroupNotice progress = progress_notice(report);
  EXPECT_EQ(Frame::decode(progress.frame.encode()), progress.frame);
  EXPECT_EQ(engine::ProgressReport::decode(progress.payload), report);
  for (const Departure departure : {Departure::kNormal, Departure::kByException}) {
    const GroupNotice notice = departure_notice(departure);
    EXPECT_EQ(Frame::decode(notice.frame.encode()), notice.frame);
    EXPECT_EQ(departure_in(notice.payload), departure);
  }
}

}  // namespace
}  // namespace peal::mail
