#include "peal/named/timeline.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "peal/base/error.h"

namespace peal::named {
namespace {

class TimelineTest : public ::testing::Test {
 protected:
  ~TimelineTest() override {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  nlohmann::json read() const {
    std::ifstream file(path_);
    return nlohmann::json::parse(file);
  }

  std::string path_ = (std::filesystem::temp_directory_path() /
                       ("peal-timeline-" + std::to_string(::getpid()) + "-" +
                        ::testing::UnitTest::GetInstance()->current_test_info()->name()))
                          .string();
};

Request request(std::string name) {
  Request request;
  request.name = std::move(name);
  request.shape = {2, 3};
  return request;
}

TEST_F(TimelineTest, IsCompleteJsonAfterEachEvent) {
  Timeline timeline(path_, Timeline::Rounds::kMarked);
  std::size_t events = read().size();
  const auto grows = [&] {
    const std::size_t before = std::exchange(events, read().size());
    return events > before;
  };
  const Request x = request("allreduce.\"x\\\n");
  timeline.submitted(x, Clock::now());
  EXPECT_TRUE(grows());
  timeline.rank_is_ready(x.name, 1);
  EXPECT_TRUE(grows());
  timeline.round_began();
  EXPECT_TRUE(grows());
  timeline.began(x);
  EXPECT_TRUE(grows());
  timeline.activity_began(x, "PEAL_ALLREDUCE");
  timeline.activity_ended(x);
  EXPECT_TRUE(grows());
  timeline.ended(x);
  EXPECT_TRUE(grows());
}

TEST_F(TimelineTest, GivesEachNameAProcessAndClosesWhatItOpens) {
  {
    Timeline timeline(path_, Timeline::Rounds::kNotShown);
    for (const char* name : {"a", "b", "a"}) {
      const Request one = request(name);
      timeline.round_began();
      timeline.submitted(one, Clock::now());
      timeline.began(one);
      timeline.activity_began(one, "PEAL_ALLREDUCE");
      timeline.activity_ended(one);
      timeline.ended(one);
    }
  }
  std::map<int, std::string> names;
  std::map<int, int> open;
  nlohmann::json last;
  for (const auto& event : read()) {
    const int process = event.at("pid");
    if (event.at("ph") == "M" && event.at("name") == "process_name") {
      names[process] = event.at("args").at("name");
    }
    EXPECT_NE(event.at("ph"), "i");
    if (event.at("ph") == "B") ++open[process];
    if (event.at("ph") == "E") {
      EXPECT_GE(--open[process], 0);
    }
    last = event;
  }
  EXPECT_EQ(names, (std::map<int, std::string>{{0, "rounds"}, {1, "a"}, {2, "b"}}));
  EXPECT_EQ(open, (std::map<int, int>{{1, 0}, {2, 0}}));
  EXPECT_EQ(last.at("args").at("shape"), "[2, 3]");
  EXPECT_EQ(last.at("args").at("dtype"), "f32");
}

/// The number of phases of each process that are open at the end. Fails if a phase ends that has
/// not begun.
std::map<int, int> open_phases(const nlohmann::json& events) {
  std::map<int, int> open;
  for (const auto& event : events) {
    const int process = event.at("pid");
    if (event.at("ph") == "B") ++open[process];
    if (event.at("ph") == "E") {
      EXPECT_GE(--open[process], 0) << event;
    }
  }
  return open;
}

TEST_F(TimelineTest, ClosesThePhasesOfAFailedOperation) {
  Timeline timeline(path_, Timeline::Rounds::kNotShown);
  const Request a = request("a"), b = request("b");
  timeline.submitted(a, Clock::now());
  timeline.failed(a);
  timeline.submitted(b, Clock::now());
  timeline.began(b);
  timeline.activity_began(b, "PEAL_ALLREDUCE");
  timeline.failed(b);
  timeline.failed(b);
  EXPECT_EQ(open_phases(read()), (std::map<int, int>{{1, 0}, {2, 0}}));
}

TEST_F(TimelineTest, ShowsAnOperationThatThisRankHasNotSubmitted) {
  Timeline timeline(path_, Timeline::Rounds::kNotShown);
  const Request a = request("a");
  timeline.began(a);
  timeline.activity_began(a, "PEAL_ALLREDUCE");
  timeline.activity_ended(a);
  timeline.ended(a);
  EXPECT_EQ(open_phases(read()), (std::map<int, int>{{1, 0}}));
}

TEST_F(TimelineTest, StartsAndStopsTwice) {
  TimelineSwitch timeline;
  timeline.stop();
  timeline.start(path_, Timeline::Rounds::kNotShown);
  timeline.start(path_, Timeline::Rounds::kNotShown);
  int used = 0;
  timeline.with([&](Timeline&) { ++used; });
  timeline.stop();
  timeline.with([&](Timeline&) { ++used; });
  EXPECT_EQ(used, 1);
}

TEST(TimelineSwitch, SaysThatAPathCannotBeWritten) {
  TimelineSwitch timeline;
  EXPECT_THROW(timeline.start("/no/such/folder/t.json", Timeline::Rounds::kNotShown), Error);
}

}  // namespace
}  // namespace peal::named
