#include "peal/config/fault_plan.h"

#include <random>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"

namespace peal {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

using Ways = LinkFault::Ways;
using Channels = LinkFault::Channels;

std::string refusal(std::string_view text) {
  try {
    parse_faults(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    return std::string(error.message());
  }
  return "accepted";
}

TEST(FaultPlanTest, EachKindOfFaultCanBeParsed) {
  const FaultPlan plan = parse_faults(
      "# a bad day\n"
      "rank 1 kill at operation 10\n"
      "rank 2 freeze at operation 3 for 2 s; rank 3 freeze at operation 4\n"
      "\n"
      "link 0-1 delay 20 ms     # both ways\n"
      "link 0>1 drop after 1M\n"
      "link 1-0 mail cut after 4K\n"
      "link 0>2 data corrupt after 0\n"
      "  link\t0-1   slow 1M/s\n");
  EXPECT_THAT(
      plan.processes,
      ElementsAre(ProcessFault{.rank = 1, .kind = ProcessFault::Kind::kKill, .operation = 10},
                  ProcessFault{.rank = 2,
                               .kind = ProcessFault::Kind::kFreeze,
                               .operation = 3,
                               .length = std::chrono::seconds(2)},
                  ProcessFault{.rank = 3, .kind = ProcessFault::Kind::kFreeze, .operation = 4}));
  EXPECT_THAT(
      plan.links,
      ElementsAre(
          LinkFault{.kind = LinkFault::Kind::kDelay, .delay = std::chrono::milliseconds(20)},
          LinkFault{.ways = Ways::kForth, .kind = LinkFault::Kind::kDrop, .after = 1_MiB},
          LinkFault{.from = 1,
                    .to = 0,
                    .channels = Channels::kMail,
                    .kind = LinkFault::Kind::kCut,
                    .after = 4_KiB},
          LinkFault{.from = 0,
                    .to = 2,
                    .ways = Ways::kForth,
                    .channels = Channels::kData,
                    .kind = LinkFault::Kind::kCorrupt},
          LinkFault{.kind = LinkFault::Kind::kSlow, .per_second = 1_MiB}));
}

TEST(FaultPlanTest, ATextWithoutFaultsIsAnEmptyPlan) {
  for (const char* text : {"", "\n\n", " ; ;", "# nothing\n  # at all"}) {
    EXPECT_TRUE(parse_faults(text).empty()) << text;
  }
}

TEST(FaultPlanTest, AnErrorNamesTheFaultTheWordAndTheExpectedWords) {
  EXPECT_EQ(refusal("rank 0 kill at operation 1\n\nrank 1 jump at operation 10"),
            "line 3, \"rank 1 jump at operation 10\": found \"jump\", expected kill or freeze");
  EXPECT_EQ(refusal("link 0-1 slow 1M/s; link 0-1 delay"),
            "fault 2, \"link 0-1 delay\": found nothing, expected a time up to a day, as in 20 "
            "ms or 2 s");
  struct Case {
    const char* text;
    const char* word;
    const char* taken;
  };
  for (const auto& [text, word, taken] :
       {Case{"ranks 1 kill", "\"ranks\"", "rank or link"},
        Case{"rank one kill at operation 1", "\"one\"", "the number of a rank"},
        Case{"rank -1 kill at operation 1", "\"-1\"", "the number of a rank"},
        Case{"rank 1", "nothing", "kill or freeze"},
        Case{"rank 1 kill in operation 1", "\"in\"", "expected at"},
        Case{"rank 1 kill at step 1", "\"step\"", "expected operation"},
        Case{"rank 1 kill at operation 0", "\"0\"", "from 1 on"},
        Case{"rank 1 kill at operation 1e3", "\"1e3\"", "from 1 on"},
        Case{"rank 1 kill at operation 1 for 2 s", "\"for\"", "the end"},
        Case{"rank 1 freeze at operation 1 for 2", "\"2\"", "20 ms or 2 s"},
        Case{"rank 1 freeze at operation 1 for 2 h", "\"h\"", "20 ms or 2 s"},
        Case{"rank 1 freeze at operation 1 for 86401 s", "\"86401\"", "up to a day"},
        Case{"rank 1 freeze at operation 1 for 0 s", "\"0\"", "up to a day"},
        Case{"link", "nothing", "two ranks"},
        Case{"link 0 delay 1 s", "\"0\"", "0>1"},
        Case{"link 0- delay 1 s", "\"0-\"", "0>1"},
        Case{"link 3-3 delay 1 s", "\"3-3\"", "differ"},
        Case{
            "link 0-1 post cut after 1", "\"post\"", "data, mail, delay, slow, drop, cut, corrupt"},
        Case{"link 0-1 mail data cut after 1", "\"data\"", "expected delay, slow"},
        Case{"link 0-1 cut at 1", "\"at\"", "expected after"},
        Case{"link 0-1 cut after 1X", "\"1X\"", "4096, 4K or 1M"},
        Case{"link 0-1 slow 1M", "\"1M\"", "1M/s"},
        Case{"link 0-1 slow 0/s", "\"0/s\"", "1M/s"},
        Case{"link 0-1 corrupt after 1 often", "\"often\"", "the end"}}) {
    EXPECT_THAT(refusal(text),
                AllOf(HasSubstr(fmt::format(": found {}, expected ", word)), HasSubstr(taken)))
        << text;
  }
}

TEST(FaultPlanTest, TheNumberOfFaultsIsLimited) {
  std::string text;
  for (std::size_t i = 0; i < kMostFaults; ++i) text += "rank 0 kill at operation 1\n";
  EXPECT_EQ(parse_faults(text).processes.size(), kMostFaults);
  EXPECT_THAT(refusal(text + "rank 0 kill at operation 1"), HasSubstr("at most 1000 faults"));
}

TEST(FaultPlanTest, APlanReadsBackAsPrinted) {
  std::mt19937 random(1);
  const auto any = [&](std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(0, most)(random);
  };
  const auto time = [&] { return Timeout((any(1) == 0 ? 1000 : 1) * (1 + any(80'000))); };
  const auto size = [&] { return Bytes(any(5000) << (10 * any(3))); };
  for (int i = 0; i < 2000; ++i) {
    FaultPlan plan;
    for (auto count = any(3); count > 0; --count) {
      ProcessFault fault{.rank = static_cast<Rank>(any(99)),
                         .kind = static_cast<ProcessFault::Kind>(any(1)),
                         .operation = 1 + any(1'000'000)};
      if (fault.kind == ProcessFault::Kind::kFreeze && any(1) == 0) fault.length = time();
      plan.processes.push_back(fault);
    }
    for (auto count = any(3); count > 0; --count) {
      LinkFault fault{.from = static_cast<Rank>(any(9)),
                      .to = static_cast<Rank>(10 + any(9)),
                      .ways = static_cast<Ways>(any(1)),
                      .channels = static_cast<Channels>(any(2)),
                      .kind = static_cast<LinkFault::Kind>(any(4))};
      if (any(1) == 0) std::swap(fault.from, fault.to);
      if (fault.kind == LinkFault::Kind::kDelay) {
        fault.delay = time();
      } else if (fault.kind == LinkFault::Kind::kSlow) {
        fault.per_second = size() + 1_B;
      } else {
        fault.after = size();
      }
      plan.links.push_back(fault);
    }
    EXPECT_EQ(parse_faults(to_text(plan)), plan) << to_text(plan);
  }
}

TEST(FaultPlanTest, AFaultOfAMissingRankIsNamed) {
  const FaultPlan plan = parse_faults("rank 1 kill at operation 1; link 3-0 delay 1 ms");
  EXPECT_NO_THROW(check_ranks(plan, 4));
  try {
    check_ranks(plan, 3);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_THAT(error.what(),
                HasSubstr("\"link 3-0 delay 1 ms\": there is no rank 3 in a job of 3"));
  }
  EXPECT_THROW(check_ranks(plan, 1), Error);
}

TEST(FaultPlanTest, AGroupGetsTheFaultsOfLinksBetweenItsRanks) {
  const FaultPlan plan = parse_faults("link 1>3 drop after 1; link 0-1 slow 1M/s");
  const std::vector<Rank> group = {3, 1};
  EXPECT_THAT(
      links_within(plan, group),
      ElementsAre(LinkFault{
          .from = 1, .to = 0, .ways = Ways::kForth, .kind = LinkFault::Kind::kDrop, .after = 1_B}));
}

}  // namespace
}  // namespace peal
