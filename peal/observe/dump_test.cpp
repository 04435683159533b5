#include "peal/observe/dump.h"

#include <sys/stat.h>

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/base/testing/error_of.h"
#include "peal/observe/end_file.h"
#include "peal/observe/testing/flight_files.h"

namespace peal::observe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

/// Leaves the file of a rank in the folder, and returns its bytes.
std::string flight_of(const TestFolder& folder, Rank rank) {
  const RecorderOptions options = small_record(folder.path(), rank);
  FlightRecorder::make(options);
  return read_text_file(options.path);
}

RankEnd end_of(Rank rank) {
  return {.rank = rank,
          .pid = 7,
          .at = WallTime(std::chrono::seconds(5)),
          .fate = RankEnd::Fate::kEndedBadly,
          .text = "ended with exit code 3"};
}

TEST(DumpTest, WhatIsWrittenIsReadAsTheSame) {
  const TestFolder folder;
  const std::vector<std::string> flights = {flight_of(folder, 1), flight_of(folder, 0)};
  const std::vector<RankEnd> ends = {end_of(1)};
  const std::string path = folder.path() + "/job.dump";
  write_dump(path, flights, ends);
  const std::vector<std::string> paths = {path};
  const Dump dump = read_dumps(paths);
  ASSERT_THAT(dump.flights, SizeIs(2));
  EXPECT_EQ(dump.flights[0].rank, 0);
  EXPECT_EQ(dump.flights[1].rank, 1);
  EXPECT_THAT(dump.ends, ElementsAre(end_of(1)));
  EXPECT_THAT(dump.skipped, IsEmpty());
}

TEST(DumpTest, ADumpIsPrivateAndReplacesAFormerOneAtOnce) {
  const TestFolder folder;
  const std::string path = folder.path() + "/job.dump";
  std::ofstream(path) << "a former one";
  write_dump(path, {}, {});
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(DumpTest, ADumpThatCannotBeWrittenIsAnErrorThatNamesIt) {
  const Error error = error_of([] { write_dump("/no/such/folder/job.dump", {}, {}); });
  EXPECT_EQ(error.kind(), ErrorKind::kResource);
  EXPECT_THAT(error.what(), HasSubstr("/no/such/folder/job.dump"));
}

TEST(DumpTest, AFolderGivesTheFlightsAndEndsOfAJobAndSaysWhatItSkipped) {
  const TestFolder folder;
  flight_of(folder, 0);
  write_end_file({folder.path(), "test"}, end_of(0));
  write_end_file({folder.path(), "another"}, end_of(2));
  std::ofstream(end_file_in(folder.path(), 1)) << "who knows\n";
  std::ofstream(flight_file_in(folder.path(), 1)) << "half";
  std::ofstream(folder.path() + "/rank-0.log") << "a file of the user's";
  const std::vector<std::string> paths = {folder.path()};
  const Dump dump = read_dumps(paths);
  EXPECT_THAT(dump.flights, SizeIs(1));
  EXPECT_THAT(dump.ends, ElementsAre(end_of(0)));
  EXPECT_THAT(dump.skipped, ElementsAre(HasSubstr("rank-1.flight"), HasSubstr("rank-1.end")));
}

TEST(DumpTest, OfARankThatIsMetTwiceTheLaterRecordCounts) {
  const TestFolder before;
  const TestFolder after;
  const std::string former = flight_of(before, 0);
  const std::string latter = flight_of(after, 0);
  for (const auto& flights : {std::vector<std::string>{former, latter}, {latter, former}}) {
    const Dump dump = parse_dump(to_dump(flights, {}));
    ASSERT_THAT(dump.flights, SizeIs(1));
    const Dump latest = parse_dump(to_dump(std::vector<std::string>{latter}, {}));
    EXPECT_EQ(dump.flights[0].begun, latest.flights[0].begun);
  }
}

TEST(DumpTest, PathsThatLeadToNothingAreErrorsThatNameThem) {
  const TestFolder folder;
  const std::string text = folder.path() + "/text";
  std::ofstream(text) << "text";
  struct Case {
    std::string path;
    ErrorKind kind;
  };
  for (const Case& c : {Case{folder.path() + "/none", ErrorKind::kUsage},
                        Case{folder.path(), ErrorKind::kUsage},
                        Case{text, ErrorKind::kMismatch}}) {
    const std::vector<std::string> paths = {c.path};
    const Error error = error_of([&] { read_dumps(paths); });
    EXPECT_EQ(error.kind(), c.kind) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(c.path));
  }
}

TEST(DumpTest, ADumpThatBreaksOffIsAMismatch) {
  const TestFolder folder;
  const std::string whole = to_dump(std::vector<std::string>{flight_of(folder, 0)}, {});
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{11}, std::size_t{14}, whole.size() - 1}) {
    EXPECT_EQ(error_of([&] { parse_dump(whole.substr(0, size)); }).kind(), ErrorKind::kMismatch)
        << size;
  }
  EXPECT_EQ(error_of([] { parse_dump("peal dump 1\nflight 99999999999\n"); }).kind(),
            ErrorKind::kMismatch);
}

}  // namespace
}  // namespace peal::observe
