#include "peal/launch/label.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace peal::launch {
namespace {

using testing::MatchesRegex;

LaunchOptions of(Labels labels) {
  LaunchOptions options;
  options.ranks = 8;
  options.hosts = {{"n1", 6}, {"n2", 2}};
  options.labels = labels;
  return options;
}

TEST(LabelTest, ALabelNamesTheRankAndForHorovodTheStream) {
  EXPECT_EQ(label_of(of(Labels::kRank), 7, Channel::kErr), "[7] ");
  EXPECT_EQ(label_of(of(Labels::kStream), 7, Channel::kOut), "[7]<stdout>:");
  EXPECT_EQ(label_of(of(Labels::kStream), 7, Channel::kErr), "[7]<stderr>:");
  EXPECT_EQ(label_of(of(Labels::kHost), 7, Channel::kErr), "[n2:7] ");
  EXPECT_EQ(label_of(of(Labels::kNone), 7, Channel::kErr), "");
}

TEST(LabelTest, AnIpv6AddressIsInBrackets) {
  LaunchOptions options = of(Labels::kHost);
  options.hosts = {{"fd00::1", 8}};
  EXPECT_EQ(label_of(options, 7, Channel::kOut), "[[fd00::1]:7] ");
}

TEST(LabelTest, ALabelOfAnElasticJobNamesTheSlot) {
  EXPECT_EQ(label_of(Labels::kRank, "localhost[0]", Channel::kErr), "localhost[0] ");
  EXPECT_EQ(label_of(Labels::kStream, "localhost[0]", Channel::kOut), "localhost[0]<stdout>:");
  EXPECT_EQ(label_of(Labels::kNone, "localhost[0]", Channel::kErr), "");
}

TEST(LabelTest, ATimestampComesBeforeTheLabel) {
  const auto now = std::chrono::system_clock::from_time_t(1'568'730'781);
  EXPECT_EQ(with_time(Timestamps::kOff, "[0] ", now), "[0] ");
  // In every time zone the moment is on one of these days.
  EXPECT_THAT(with_time(Timestamps::kOn, "[0]<stdout>:", now),
              MatchesRegex("(Tue|Wed) Sep 1[78] [0-9][0-9]:[0-9][0-9]:01 2019\\[0\\]<stdout>:"));
  EXPECT_THAT(with_time(Timestamps::kOn, "", now), MatchesRegex(".* 2019 "));
}

TEST(LabelTest, TheLongestLabelIsThatOfTheLastRank) {
  LaunchOptions options;
  options.ranks = 11;
  EXPECT_EQ(longest_label(options), std::string("[10] ").size());
  options.labels = Labels::kStream;
  options.timestamps = Timestamps::kOn;
  EXPECT_EQ(longest_label(options), std::string("Tue Sep 17 14:33:01 2019[10]<stderr>:").size());
}

}  // namespace
}  // namespace peal::launch
