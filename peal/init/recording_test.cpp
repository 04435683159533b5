// What a rank that cannot join the job leaves for `peal why`.
#include "peal/init/recording.h"

#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "peal/base/text_file.h"
#include "peal/observe/flight_file.h"
#include "peal/observe/testing/flight_files.h"

namespace peal::init {
namespace {

const Error kWhy(ErrorKind::kUsage, "PEAL_TIMEOUT=\"soon\": it takes seconds");

class FailedStartTest : public ::testing::Test {
 protected:
  /// Rank 1 of two fails to start.
  void fail() const { record_failed_start({}, fixed_environment(variables_), kWhy); }

  std::string path() const { return observe::flight_file_in(folder_.path(), 1); }
  observe::Flight flight() const { return observe::parse_flight(read_text_file(path())); }

  const observe::TestFolder folder_;
  std::map<std::string, std::string> variables_ = {{"RANK", "1"},
                                                   {"WORLD_SIZE", "2"},
                                                   {"PEAL_JOB", "mine"},
                                                   {"PEAL_FLIGHT_DIR", folder_.path()}};
};

TEST_F(FailedStartTest, TheRecordSaysWhichRankOfWhichJobFailedAndWhy) {
  fail();
  const observe::Flight flight = this->flight();
  EXPECT_EQ(flight.rank, 1);
  EXPECT_EQ(flight.world_size, 2);
  EXPECT_EQ(flight.job, "mine");
  ASSERT_TRUE(flight.verdict);
  EXPECT_EQ(flight.verdict->kind, kWhy.kind());
  EXPECT_EQ(flight.verdict->text, kWhy.message());
}

TEST_F(FailedStartTest, TheRecordOfAGroupThatTheProcessIsStillInStays) {
  const auto group = observe::FlightRecorder::make(observe::small_record(folder_.path(), 1));
  fail();
  EXPECT_FALSE(flight().verdict);
  group->left(Departure::kInOrder);
  fail();
  EXPECT_TRUE(flight().verdict);
}

TEST_F(FailedStartTest, TheRecordOfAnotherProcessThatHasTheSameRankStaysToo) {
  const auto rank = observe::FlightRecorder::make(observe::small_record(folder_.path(), 1));
  const pid_t helper = ::fork();  // which has its environment, and its record too
  if (helper == 0) {
    fail();
    ::_exit(0);
  }
  ::waitpid(helper, nullptr, 0);
  EXPECT_FALSE(flight().verdict);
}

TEST_F(FailedStartTest, ALaterFailureTakesThePlaceOfAnEarlierOne) {
  fail();
  record_failed_start(
      {}, fixed_environment(variables_), Error(ErrorKind::kUsage, "something else"));
  ASSERT_TRUE(flight().verdict);
  EXPECT_EQ(flight().verdict->text, "something else");
}

TEST_F(FailedStartTest, NothingIsLeftWhereNobodySaysWhichRankThisIs) {
  variables_["RANK"] = "one";
  fail();
  EXPECT_FALSE(std::filesystem::exists(path()));
}

}  // namespace
}  // namespace peal::init
