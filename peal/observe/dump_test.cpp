#include "peal/observe/dump.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/base/testing/error_of.h"
#include "peal/observe/end_file.h"
#include "peal/observe/testing/flight_files.h"
#include "peal/system/fd.h"

namespace peal::observe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

/// Writes the flight file of a rank into the folder, and returns its bytes.
std::string flight_of(const TestFolder& folder, Rank rank) {
  const RecorderOptions options = small_record(folder.path(), rank);
  FlightRecorder::make(options);
  return read_text_file(options.path);
}

RankEnd end_of(Rank rank) {
  return {.rank = rank,
          .pid = 7,
          .at = WallTime(std::chrono::seconds(5)),
          .state = RankEnd::State::kEndedBadly,
          .text = "ended with exit code 3"};
}

TEST(DumpTest, ADumpReadsBackAsWritten) {
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

TEST(DumpTest, ADumpIsPrivateAndReplacesAnEarlierOne) {
  const TestFolder folder;
  const std::string path = folder.path() + "/job.dump";
  std::ofstream(path) << "a former one";
  write_dump(path, {}, {});
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(DumpTest, AFailedWriteNamesTheFile) {
  const Error error = error_of([] { write_dump("/no/such/folder/job.dump", {}, {}); });
  EXPECT_EQ(error.kind(), ErrorKind::kResource);
  EXPECT_THAT(error.what(), HasSubstr("/no/such/folder/job.dump"));
}

TEST(DumpTest, AFolderGivesTheFlightsAndEndsOfOneJobAndNamesSkippedFiles) {
  const TestFolder folder;
  flight_of(folder, 0);
  write_end_file({folder.path(), "test"}, end_of(0));
  write_end_file({folder.path(), "another"}, end_of(2));
  std::ofstream(end_file_in(folder.path(), 1)) << "nonsense\n";
  std::ofstream(flight_file_in(folder.path(), 1)) << "half";
  std::ofstream(folder.path() + "/rank-0.log") << "a file of the user's";
  const std::vector<std::string> paths = {folder.path()};
  const Dump dump = read_dumps(paths);
  EXPECT_THAT(dump.flights, SizeIs(1));
  EXPECT_THAT(dump.ends, ElementsAre(end_of(0)));
  EXPECT_THAT(dump.skipped, ElementsAre(HasSubstr("rank-1.flight"), HasSubstr("rank-1.end")));
}

/// A record of a few KB whose one group has `count` ranks.
std::string flight_of_many(const TestFolder& folder, Rank rank, std::uint32_t count) {
  const RecorderOptions options = small_record(folder.path(), rank);
  FlightRecorder::make(options)->add_group("world", std::vector<Rank>{0, 1});
  std::string bytes = read_text_file(options.path);
  const auto put = [&](std::size_t at, std::uint32_t number) {
    std::memcpy(bytes.data() + at, &number, sizeof number);
  };
  put(offsetof(FlightHeader, world_size), count);
  put(groups_offset() + offsetof(GroupRecord, size), count);
  put(groups_offset() + offsetof(GroupRecord, ranks) + offsetof(RankRun, count), count);
  return bytes;
}

TEST(DumpTest, ADumpNeverNamesMoreRanksThanItsBudget) {
  const TestFolder folder;
  constexpr std::uint32_t kRanks = 1 << 19;
  std::vector<std::string> flights;
  for (Rank rank = 0; rank < 8; ++rank) flights.push_back(flight_of_many(folder, rank, kRanks));
  const std::string bytes = to_dump(flights, {});
  const Dump dump = parse_dump(bytes);
  std::size_t named = 0;
  for (const Flight& flight : dump.flights) named += flight.groups.at(0).ranks.size();
  EXPECT_LE(named, (std::size_t{1} << 20) + bytes.size());
  EXPECT_THAT(dump.flights, SizeIs(2));
  EXPECT_THAT(dump.skipped, testing::Each(HasSubstr("names more ranks than")));

  for (Rank rank = 0; rank < 8; ++rank) {  // a folder has one budget, too
    std::ofstream(flight_file_in(folder.path(), rank)) << flights[static_cast<std::size_t>(rank)];
  }
  EXPECT_THAT(read_dumps(std::vector<std::string>{folder.path()}).flights, SizeIs(2));
}

TEST(DumpTest, LinksAndPipesInAFolderAreSkipped) {
  const TestFolder folder;
  const TestFolder elsewhere;
  flight_of(folder, 0);
  write_end_file({elsewhere.path(), "test"}, end_of(0));
  std::filesystem::create_symlink(end_file_in(elsewhere.path(), 0), end_file_in(folder.path(), 0));
  ASSERT_EQ(::mkfifo(end_file_in(folder.path(), 1).c_str(), 0600), 0);
  ASSERT_EQ(::mkfifo(flight_file_in(folder.path(), 1).c_str(), 0600), 0);
  const Fd writer(::open(flight_file_in(folder.path(), 1).c_str(), O_RDWR | O_CLOEXEC));
  const Dump dump = read_dumps(std::vector<std::string>{folder.path()});
  EXPECT_THAT(dump.flights, SizeIs(1));
  EXPECT_THAT(dump.ends, IsEmpty());
  EXPECT_THAT(dump.skipped,
              ElementsAre(HasSubstr("rank-1.flight: cannot be read: it is not a regular file"),
                          HasSubstr("rank-0.end: cannot be read: it is a link"),
                          HasSubstr("rank-1.end: cannot be read: it is not a regular file")));
}

TEST(DumpTest, FilesOfAnotherUserAreSkipped) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  const TestFolder folder;
  flight_of(folder, 0);
  write_end_file({folder.path(), "test"}, end_of(0));
  ASSERT_EQ(::chown(end_file_in(folder.path(), 0).c_str(), 65534, 65534), 0);
  const Dump dump = read_dumps(std::vector<std::string>{folder.path()});
  EXPECT_THAT(dump.ends, IsEmpty());
  EXPECT_THAT(dump.skipped, ElementsAre(HasSubstr("it belongs to another user")));
}

TEST(DumpTest, TheNameOfASkippedFileIsPrintable) {
  const TestFolder folder;
  flight_of(folder, 0);
  std::ofstream(folder.path() + "/rank-\x1b[2J\xc2\x9b\n.end") << "nonsense\n";
  const Dump dump = read_dumps(std::vector<std::string>{folder.path()});
  EXPECT_THAT(dump.skipped, ElementsAre(HasSubstr("rank-\\x1b[2J\\xc2\\x9b\\x0a.end: ")));
  const Error none =
      error_of([&] { read_dumps(std::vector<std::string>{folder.path() + "/\x1b[2J"}); });
  EXPECT_THAT(none.what(), HasSubstr("/\\x1b[2J: cannot be read"));
}

TEST(DumpTest, TheLaterRecordOfARankCounts) {
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

TEST(DumpTest, APathThatCannotBeReadIsNamedInTheError) {
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

TEST(DumpTest, ATruncatedDumpIsAMismatch) {
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
