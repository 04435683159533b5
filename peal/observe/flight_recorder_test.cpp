#include "peal/observe/flight_recorder.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <array>
#include <fstream>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/observe/flight_file.h"
#include "peal/observe/testing/flight_files.h"

namespace peal::observe {
namespace {

using testing::HasSubstr;
using Ending = FlightRecorder::Ending;

constexpr std::array<Rank, 2> kWorld = {0, 1};

Flight read_flight(const std::string& path) { return parse_flight(read_text_file(path)); }

TEST(FlightRecorderTest, TheFileShowsTheOperationsOfTheRank) {
  const TestFolder folder;
  const RecorderOptions options = small_record(folder.path(), 1);
  const auto recorder = FlightRecorder::make(options);
  const std::uint8_t world = recorder->add_group("world", kWorld);
  const auto first = recorder->begin(sum_in(world), 1, Elements(1000));
  recorder->end(first, Ending::kWell);
  const auto second = recorder->begin(sum_in(world), 2, Elements(10));
  recorder->waits_for(second, 0, 0);

  const Flight flight = read_flight(options.path);
  EXPECT_EQ(flight.rank, 1);
  EXPECT_EQ(flight.world_size, 2);
  EXPECT_EQ(flight.pid, static_cast<std::uint64_t>(::getpid()));
  EXPECT_EQ(flight.job, "test");
  EXPECT_THAT(flight.algorithms, testing::ElementsAre("inline", "ring"));
  EXPECT_THAT(flight.groups, testing::ElementsAre(FlightGroup{"world", 2, {0, 1}}));
  ASSERT_EQ(flight.operations.size(), 2U);
  EXPECT_EQ(flight.operations[0].count, Elements(1000));
  EXPECT_FALSE(flight.operations[0].is_unfinished());
  EXPECT_EQ(flight.operations[1].sequence, 2U);
  EXPECT_TRUE(flight.operations[1].is_under_way());
  EXPECT_EQ(flight.operations[1].past_waiting, std::nullopt);
  EXPECT_EQ(flight.operations[1].waited_for, 0);
  EXPECT_EQ(flight.first_error, std::nullopt);
  EXPECT_EQ(flight.departure, std::nullopt);
}

TEST(FlightRecorderTest, TheRecordSurvivesAKilledProcess) {
  const TestFolder folder;
  const RecorderOptions options = small_record(folder.path());
  const pid_t child = ::fork();
  if (child == 0) {
    const auto recorder = FlightRecorder::make(options);
    recorder->begin(sum_in(recorder->add_group("world", kWorld)), 1, Elements(5));
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  const Flight flight = read_flight(options.path);
  EXPECT_EQ(flight.pid, static_cast<std::uint64_t>(child));
  ASSERT_EQ(flight.operations.size(), 1U);
  EXPECT_TRUE(flight.operations[0].is_under_way());
}

TEST(FlightRecorderTest, TimesMatchTheSystemClock) {
  const TestFolder folder;
  const RecorderOptions options = small_record(folder.path());
  const auto recorder = FlightRecorder::make(options);
  const auto before = std::chrono::system_clock::now();
  const auto place = recorder->begin(sum_in(0), 1, Elements(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  recorder->end(place, Ending::kFailed);
  const auto after = std::chrono::system_clock::now();
  const Flight flight = read_flight(options.path);
  ASSERT_EQ(flight.operations.size(), 1U);
  constexpr auto kClose = std::chrono::milliseconds(2);
  EXPECT_GE(flight.operations[0].start, before - kClose);
  EXPECT_LE(*flight.operations[0].end, after + kClose);
  EXPECT_GE(*flight.operations[0].end - flight.operations[0].start, std::chrono::milliseconds(48));
  EXPECT_TRUE(flight.operations[0].failed);
}

TEST(FlightRecorderTest, TheLastOperationsAndThoseUnderWayAreKept) {
  const TestFolder folder;
  const RecorderOptions options = small_record(folder.path());
  const auto recorder = FlightRecorder::make(options);
  const auto pending = recorder->begin(
      {.operation = Operation::kRecv, .dtype = DType::kF32, .root = 1}, 7, Elements(3));
  for (std::uint64_t sequence = 1; sequence <= 100; ++sequence) {
    recorder->end(recorder->begin(sum_in(0), sequence, Elements(1)), Ending::kWell);
  }
  const Flight flight = read_flight(options.path);
  ASSERT_EQ(flight.operations.size(), 8U);
  EXPECT_TRUE(flight.operations.front().is_under_way());
  EXPECT_EQ(flight.operations.front().kind.operation, Operation::kRecv);
  EXPECT_EQ(flight.operations[1].sequence, 94U);
  EXPECT_EQ(flight.operations.back().sequence, 100U);
  recorder->end(pending, Ending::kWell);
  EXPECT_FALSE(read_flight(options.path).operations.front().is_under_way());
}

TEST(FlightRecorderTest, AnEndIsNotRecordedWhenThePlaceIsReused) {
  const TestFolder folder;
  const RecorderOptions options = small_record(folder.path());
  const auto recorder = FlightRecorder::make(options);
  const auto early = recorder->begin(sum_in(0), 1, Elements(1));
  for (std::uint64_t sequence = 2; sequence <= 200; ++sequence) {
    recorder->begin(sum_in(0), sequence, Elements(1));
  }
  recorder->end(early, Ending::kWell);
  for (const FlightOperation& operation : read_flight(options.path).operations) {
    EXPECT_TRUE(operation.is_under_way()) << operation.sequence;
  }
}

TEST(FlightRecorderTest, OnlyTheFirstErrorAndDepartureAreRecorded) {
  const TestFolder folder;
  const RecorderOptions options = small_record(folder.path());
  const auto recorder = FlightRecorder::make(options);
  recorder->failed(0, Error(ErrorKind::kTimeout, "too " + std::string(2000, 'o') + " late"));
  recorder->failed(1, Error(ErrorKind::kPeerLost, "and gone"));
  recorder->left(Departure::kByException);
  const Flight flight = read_flight(options.path);
  ASSERT_TRUE(flight.first_error);
  EXPECT_EQ(flight.first_error->kind, ErrorKind::kTimeout);
  EXPECT_EQ(flight.first_error->text.size(), kErrorTextSize);
  EXPECT_EQ(flight.first_error->group, 0);
  ASSERT_TRUE(flight.departure);
  EXPECT_EQ(flight.departure->how, Departure::kByException);
}

TEST(FlightRecorderTest, GroupsBeyondTheTableShareANumber) {
  const TestFolder folder;
  const RecorderOptions options = small_record(folder.path());
  const auto recorder = FlightRecorder::make(options);
  EXPECT_EQ(recorder->add_group("world", kWorld), 0);
  EXPECT_EQ(recorder->add_group("left", std::array<Rank, 1>{1}), 1);
  EXPECT_EQ(recorder->add_group("right", kWorld), kMoreGroups);
  recorder->begin(sum_in(kMoreGroups), 1, Elements(1));
  const Flight flight = read_flight(options.path);
  EXPECT_EQ(flight.groups.size(), 2U);
  EXPECT_EQ(group_of(flight, flight.operations.at(0)), nullptr);
}

TEST(FlightRecorderTest, RanksOfAGroupAreKeptInOrder) {
  const TestFolder folder;
  RecorderOptions options = small_record(folder.path());
  options.world_size = 1000;
  options.groups = 4;
  const auto recorder = FlightRecorder::make(options);
  std::vector<Rank> all(1000);
  for (Rank rank = 0; rank < 1000; ++rank) all[static_cast<std::size_t>(rank)] = rank;
  const std::vector<Rank> strided = {3, 11, 19, 27};
  const std::vector<Rank> irregular = {5, 4, 9, 10, 11, 2};
  for (const auto& ranks : {all, strided, irregular}) recorder->add_group("group", ranks);
  const Flight flight = read_flight(options.path);
  EXPECT_EQ(flight.groups.at(0).ranks, all);
  EXPECT_EQ(flight.groups.at(1).ranks, strided);
  EXPECT_EQ(flight.groups.at(2).ranks, irregular);
}

TEST(FlightRecorderTest, CurrentIsTheLatestOperationThatHasNotEnded) {
  const auto recorder = FlightRecorder::make({.world_size = 2});
  const std::uint8_t world = recorder->add_group("world", kWorld);
  EXPECT_EQ(recorder->current(world), "");
  const auto place = recorder->begin(sum_in(world), 12, Elements(1000));
  recorder->note({.group = world, .operation = Operation::kSend, .root = 1}, 0, Elements(1));
  EXPECT_EQ(recorder->current(world), "all_reduce #12 (sum of 1000 f32)");
  EXPECT_EQ(recorder->current(1), "");
  recorder->end(place, Ending::kWell);
  EXPECT_EQ(recorder->current(world), "");
}

TEST(FlightRecorderTest, ConcurrentThreadsRecordWithoutTornEntries) {
  const TestFolder folder;
  RecorderOptions options = small_record(folder.path());
  options.operations = 4096;
  const auto recorder = FlightRecorder::make(options);
  constexpr std::uint64_t kEach = 1000;
  std::vector<std::thread> threads;
  for (std::uint8_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&recorder, thread] {
      for (std::uint64_t i = 1; i <= kEach; ++i) {
        const auto place = recorder->begin(sum_in(thread), i, Elements(static_cast<int>(i)));
        recorder->end(place, Ending::kWell);
        static_cast<void>(recorder->current(thread));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Flight flight = read_flight(options.path);
  EXPECT_EQ(flight.torn, 0U);
  EXPECT_EQ(flight.operations.size(), 4 * kEach);
  for (const FlightOperation& operation : flight.operations) {
    EXPECT_EQ(operation.count.value, static_cast<std::int64_t>(operation.sequence));
  }
}

TEST(FlightRecorderFileTest, AnEarlierFileIsReplacedAndTheNewOneIsPrivate) {
  const TestFolder folder;
  const RecorderOptions options = small_record(folder.path() + "/made");
  const auto former = FlightRecorder::make(options);
  const auto recorder = FlightRecorder::make(options);
  former->failed(0, Error(ErrorKind::kBug, "of the former"));
  EXPECT_EQ(read_flight(options.path).first_error, std::nullopt);
  struct stat status {};
  ASSERT_EQ(::stat(options.path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
}

TEST(FlightRecorderFileTest, ALinkIsNotReplaced) {
  const TestFolder folder;
  const RecorderOptions options = small_record(folder.path());
  const std::string target = folder.path() + "/precious";
  std::ofstream(target) << "text";
  ASSERT_EQ(::symlink(target.c_str(), options.path.c_str()), 0);
  try {
    FlightRecorder::make(options);
    FAIL() << "a link was followed or removed";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kResource);
    EXPECT_THAT(error.what(), HasSubstr(options.path));
  }
  EXPECT_EQ(read_text_file(target), "text");
}

TEST(FlightRecorderFileTest, AMissingParentFolderIsAnErrorThatNamesTheFile) {
  const TestFolder folder;
  const RecorderOptions options = small_record(folder.path() + "/not/there");
  try {
    FlightRecorder::make(options);
    FAIL() << "the folder should not exist";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kResource);
    EXPECT_THAT(error.what(), HasSubstr(options.path));
  }
}

}  // namespace
}  // namespace peal::observe
