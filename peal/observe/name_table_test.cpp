#include "peal/observe/name_table.h"

#include <array>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/observe/flight_file.h"
#include "peal/observe/testing/flight_files.h"

namespace peal::observe {
namespace {

using NameEnding = NameTable::Ending;

constexpr std::array<Rank, 2> kBoth = {0, 1};

TEST(NameTableTest, TheFileShowsOperationsByNameFromSubmissionToEnd) {
  const TestFolder folder;
  const RecorderOptions options = small_record(folder.path());
  const auto recorder = FlightRecorder::make(options);
  const std::uint8_t world = recorder->add_group("world", kBoth);
  NameTable& names = recorder->names();
  names.ended(names.submitted(world, "allreduce \"a\""), NameEnding::kWell);
  const auto b = names.submitted(world, "allreduce \"b\"");
  names.started(b);
  names.submitted(world, std::string(1000, 'x'));
  names.ended(names.submitted(1, "allreduce \"d\""), NameEnding::kFailed);

  const Flight flight = parse_flight(read_text_file(options.path));
  ASSERT_EQ(flight.names.size(), 4U);
  EXPECT_EQ(flight.names[0].text, "allreduce \"a\"");
  EXPECT_FALSE(flight.names[0].is_unfinished());
  EXPECT_EQ(flight.names[1].text, "allreduce \"b\"");
  EXPECT_TRUE(flight.names[1].started);
  EXPECT_FALSE(flight.names[1].end);
  EXPECT_EQ(flight.names[2].text, std::string(kNameSize, 'x'));
  EXPECT_FALSE(flight.names[2].started);
  EXPECT_EQ(flight.names[3].group, 1);
  EXPECT_TRUE(flight.names[3].failed);
}

TEST(NameTableTest, ErrorsNameTheOperationsInFlight) {
  const TestFolder folder;
  const auto recorder = FlightRecorder::make(small_record(folder.path()));
  const std::uint8_t world = recorder->add_group("world", kBoth);
  recorder->begin(sum_in(world), 12, Elements(1000));
  NameTable& names = recorder->names();
  std::vector<NameTable::Place> places;
  for (const char* name : {"a", "b", "c", "d", "e"}) places.push_back(names.submitted(world, name));
  EXPECT_EQ(recorder->current(world), "a, b, c and 2 more");
  EXPECT_EQ(recorder->current(1), "");
  names.started(places[3]);
  EXPECT_EQ(recorder->current(world), "d");
  for (const auto place : places) names.ended(place, NameEnding::kWell);
  EXPECT_EQ(recorder->current(world), "all_reduce #12 (sum of 1000 f32)");
  recorder->is_background(world);
  EXPECT_EQ(recorder->current(world), "");
}

TEST(NameTableTest, PlacesAreUsedAgain) {
  const TestFolder folder;
  const auto recorder = FlightRecorder::make(small_record(folder.path()));
  NameTable& names = recorder->names();
  for (int round = 0; round < 3; ++round) {
    std::vector<NameTable::Place> places;
    for (std::size_t i = 0; i < kNames; ++i) places.push_back(names.submitted(0, "x"));
    EXPECT_THAT(places, testing::Not(testing::Contains(NameTable::kNone)));
    const auto more = names.submitted(0, "y");
    EXPECT_EQ(more, NameTable::kNone);
    names.started(more);
    names.ended(more, NameEnding::kWell);
    EXPECT_EQ(names.in_flight(0), "x, x, x and at least 253 more");
    for (const auto place : places) names.ended(place, NameEnding::kWell);
    EXPECT_EQ(names.in_flight(0), "");
  }
}

TEST(NameTableTest, ThreadsSubmitWhileOthersLook) {
  const TestFolder folder;
  const RecorderOptions options = small_record(folder.path());
  const auto recorder = FlightRecorder::make(options);
  NameTable& names = recorder->names();
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 2000; ++i) {
        const auto place = names.submitted(0, fmt::format("{}", thread));
        names.started(place);
        names.ended(place, NameEnding::kWell);
        static_cast<void>(names.in_flight(0));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(names.in_flight(0), "");
  for (const FlightName& name : parse_flight(read_text_file(options.path)).names) {
    EXPECT_THAT(name.text, testing::AnyOf("0", "1", "2"));
  }
}

}  // namespace
}  // namespace peal::observe
