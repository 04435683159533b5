#include "peal/engine/mail_news.h"

#include <string>

#include <gtest/gtest.h>

namespace peal::engine {
namespace {

TEST(MailNewsTest, AFailureComesAsItWasSent) {
  for (const ErrorKind kind : kAllErrorKinds) {
    const MailNews news = news_of_failure(Error(kind, "rank 3 hangs"));
    EXPECT_EQ(MailFrame::decode(news.frame.encode()), news.frame);
    const Error heard = failure_in(news.frame, news.payload);
    EXPECT_EQ(heard.kind(), kind);
    EXPECT_EQ(heard.message(), "rank 3 hangs");
  }
}

TEST(MailNewsTest, OfALongTextGoesWhatAFrameMayHave) {
  const MailNews news = news_of_failure(Error(ErrorKind::kBug, std::string(10'000, 'x')));
  EXPECT_EQ(news.frame.payload, kAbortLimit);
  EXPECT_EQ(news.payload.size(), static_cast<std::size_t>(kAbortLimit.value));
  EXPECT_EQ(MailFrame::decode(news.frame.encode()), news.frame);
}

TEST(MailNewsTest, AFailureOfNoKindIsABug) {
  MailNews news = news_of_failure(Error(ErrorKind::kTimeout, "late"));
  news.frame.dtype = 200;
  EXPECT_EQ(failure_in(news.frame, news.payload).kind(), ErrorKind::kBug);
}

TEST(MailNewsTest, StandingsAndDeparturesComeAsTheyWereSent) {
  Standing standing;
  standing.before = 7;
  const MailNews stands = news_of_standing(standing);
  EXPECT_EQ(MailFrame::decode(stands.frame.encode()), stands.frame);
  EXPECT_EQ(Standing::decode(stands.payload), standing);
  for (const Departure departure : {Departure::kInOrder, Departure::kByException}) {
    const MailFrame frame = news_of_departure(departure).frame;
    EXPECT_EQ(MailFrame::decode(frame.encode()), frame);
    EXPECT_EQ(Departure{frame.dtype}, departure);
  }
}

}  // namespace
}  // namespace peal::engine
