// The record that a rank leaves for `peal why` if it cannot join the job.
#include "peal/init/recording.h"

#include <filesystem>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "peal/base/testing/in_child.h"
#include "peal/observe/flight_file.h"
#include "peal/observe/testing/flight_files.h"
#include "peal/system/text_file.h"

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

TEST_F(FailedStartTest, TheRecordNamesTheRankTheJobAndTheError) {
  fail();
  const observe::Flight flight = this->flight();
  EXPECT_EQ(flight.rank, 1);
  EXPECT_EQ(flight.world_size, 2);
  EXPECT_EQ(flight.job, "mine");
  ASSERT_TRUE(flight.first_error);
  EXPECT_EQ(flight.first_error->kind, kWhy.kind());
  EXPECT_EQ(flight.first_error->text, kWhy.message());
}

TEST_F(FailedStartTest, KeepsTheRecordOfAGroupThatTheProcessIsIn) {
  const auto group = observe::FlightRecorder::make(observe::small_record(folder_.path(), 1));
  fail();
  EXPECT_FALSE(flight().first_error);
  group->left(Departure::kNormal);
  fail();
  EXPECT_TRUE(flight().first_error);
}

TEST_F(FailedStartTest, KeepsTheRecordOfAnotherProcessWithTheSameRank) {
  const auto rank = observe::FlightRecorder::make(observe::small_record(folder_.path(), 1));
  ASSERT_TRUE(holds_in_child([&] {  // the child has the rank's environment and record
    fail();
    return true;
  }));
  EXPECT_FALSE(flight().first_error);
}

TEST_F(FailedStartTest, ALaterFailureReplacesAnEarlierOne) {
  fail();
  record_failed_start(
      {}, fixed_environment(variables_), Error(ErrorKind::kUsage, "something else"));
  ASSERT_TRUE(flight().first_error);
  EXPECT_EQ(flight().first_error->text, "something else");
}

TEST_F(FailedStartTest, LeavesNoRecordIfTheRankIsNotKnown) {
  variables_["RANK"] = "one";
  fail();
  EXPECT_FALSE(std::filesystem::exists(path()));
}

}  // namespace
}  // namespace peal::init
