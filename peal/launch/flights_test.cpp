#include "peal/launch/flights.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "peal/observe/end_file.h"
#include "peal/observe/testing/flight_files.h"

namespace peal::launch {
namespace {

constexpr const char* kFlightsJob = "test";

TEST(FlightsTest, APrivateFolderLivesAsLongAsTheLaunch) {
  std::string folder;
  {
    const Flights flights(Variables{});
    folder = flights.folder();
    EXPECT_EQ(flights.private_folder(), folder);
    EXPECT_EQ(flights.problem(), "");
    EXPECT_EQ(std::filesystem::status(folder).permissions(), std::filesystem::perms::owner_all);
  }
  EXPECT_FALSE(std::filesystem::exists(folder));
}

TEST(FlightsTest, ANamedFolderStaysButLosesTheEndsOfEarlierLaunches) {
  const PrivateFolder named("peal-test.");
  leave_end({named.path(), kFlightsJob}, {.rank = 1, .pid = 7, .status = 9});
  {
    const Flights flights(Variables{{"PEAL_FLIGHT_DIR", named.path()}});
    EXPECT_EQ(flights.folder(), named.path());
    EXPECT_EQ(flights.private_folder(), "");
    EXPECT_EQ(observe::try_read_end_file({named.path(), kFlightsJob}, 1), std::nullopt);
    leave_end({flights.folder(), kFlightsJob}, {.rank = 1, .pid = 8, .status = 9});
  }
  EXPECT_EQ(observe::try_read_end_file({named.path(), kFlightsJob}, 1)->pid, 8u);
}

TEST(FlightsTest, ANodeRemovesOnlyWhatItsOwnRanksHaveLeftInANamedFolder) {
  const PrivateFolder named("peal-test.");
  const observe::EndPlace place{named.path(), kFlightsJob};
  for (const Rank rank : {0, 1, 2, 3}) {
    leave_end(place, {.rank = rank});
    observe::FlightRecorder::make(observe::small_record(named.path(), rank));
  }
  LaunchOptions options;
  options.ranks = 2;
  options.node = {.nodes = 2, .node = 1};
  const Flights flights(Variables{{"PEAL_FLIGHT_DIR", named.path()}}, options);
  for (const Rank rank : {0, 1, 2, 3}) {
    const bool is_of_another_node = rank < 2;
    EXPECT_EQ(observe::try_read_end_file(place, rank).has_value(), is_of_another_node) << rank;
    EXPECT_EQ(std::filesystem::exists(observe::flight_file_in(named.path(), rank)),
              is_of_another_node)
        << rank;
  }
}

TEST(FlightsTest, AFolderThatCannotBeWrittenIsNamed) {
  const Flights flights(Variables{{"PEAL_FLIGHT_DIR", "/no/such/folder"}});
  EXPECT_EQ(flights.problem(), "PEAL_FLIGHT_DIR names /no/such/folder: No such file or directory");
}

TEST(FlightsTest, AnEmptyVariableMeansNoRecords) {
  const Flights flights(Variables{{"PEAL_FLIGHT_DIR", ""}});
  EXPECT_EQ(flights.folder(), "");
  EXPECT_EQ(flights.problem(), "");
}

TEST(FlightsTest, TheEnvironmentOfTheRanksSaysWhereEndsAreStored) {
  EXPECT_FALSE(end_place_of({}).is_any());
  RankCommand rank;
  EXPECT_FALSE(end_place_of({rank}).is_any());
  rank.environment = {{"PEAL_FLIGHT_DIR", "flights"}, {"PEAL_JOB", kFlightsJob}};
  EXPECT_EQ(end_place_of({rank}).folder, "flights");
  EXPECT_EQ(end_place_of({rank}).job, kFlightsJob);
}

TEST(FlightsTest, AFailedWriteOfAnEndIsIgnored) {
  leave_end({"", kFlightsJob}, {.rank = 1});
  leave_end({"/no/such/folder", kFlightsJob}, {.rank = 1});
}

}  // namespace
}  // namespace peal::launch
