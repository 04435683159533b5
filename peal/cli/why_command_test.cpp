// Tests `peal why` from outside.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/cli/testing/program.h"
#include "peal/observe/dump.h"
#include "peal/observe/end_file.h"
#include "peal/observe/flight_folder.h"
#include "peal/observe/testing/flight_files.h"

namespace peal::cli {
namespace {

using observe::FlightRecorder;
using observe::TestFolder;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// The records of two ranks: rank 1 was killed while rank 0 waited for it.
void leave_records(const std::string& folder) {
  const std::array<Rank, 2> world = {0, 1};
  const auto first = FlightRecorder::make(observe::small_record(folder, 0));
  const std::uint8_t group = first->add_group("world", world);
  const auto place = first->begin(observe::sum_in(group), 1, Elements(10));
  first->waits_for(place, 1, 0);
  first->end(place, FlightRecorder::Ending::kFailed);
  first->failed(group, Error(ErrorKind::kPeerLost, "rank 1 was lost"));
  FlightRecorder::make(observe::small_record(folder, 1))->add_group("world", world);
  const observe::RankEnd end{.rank = 1,
                             .pid = 7,
                             .at = observe::WallTime(std::chrono::seconds(5)),
                             .state = observe::RankEnd::State::kKilled,
                             .text = "was killed by SIGKILL"};
  observe::write_end_file({folder, "test"}, end);
}

TEST(WhyCommandTest, TheAnswerIsASentenceFollowedByTheEvidence) {
  const TestFolder folder;
  leave_records(folder.path());
  const Ended ended = run_program({"why", folder.path()});
  EXPECT_EQ(ended.status, 0);
  EXPECT_EQ(ended.err, "");
  EXPECT_THAT(ended.out,
              AllOf(StartsWith("The process of rank 1 was killed by SIGKILL, before its first "
                               "operation, while rank 0 waited for it.\n  rank 1 (process "),
                    HasSubstr("\n  rank 0 (process "),
                    HasSubstr("peer_lost: rank 1 was lost\n")));
}

TEST(WhyCommandTest, ExplainsTheLastRoundOfAnElasticJob) {
  const TestFolder folder;
  const auto round = [&](int number) { return observe::round_folder_in(folder.path(), number); };
  for (const int number : {9, 10}) std::filesystem::create_directory(round(number));
  leave_records(round(10));
  const auto earlier = std::filesystem::last_write_time(round(10)) - std::chrono::seconds(5);
  std::filesystem::last_write_time(round(9), earlier);
  const Ended ended = run_program({"why", folder.path()});
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_THAT(ended.out, StartsWith("The process of rank 1 was killed by SIGKILL"));
}

TEST(WhyCommandTest, ExplainsTheNewerOfAPlainJobAndAnElasticJob) {
  const TestFolder folder;
  const std::string round = observe::round_folder_in(folder.path(), 1);
  std::filesystem::create_directory(round);
  leave_records(round);
  const auto begun = std::filesystem::last_write_time(round);
  const std::array<Rank, 1> alone = {0};
  FlightRecorder::make(observe::small_record(folder.path(), 0))->add_group("world", alone);
  const std::string of_plain_job = observe::flight_file_in(folder.path(), 0);
  std::filesystem::last_write_time(of_plain_job, begun - std::chrono::seconds(5));
  EXPECT_THAT(run_program({"why", folder.path()}).out, HasSubstr("was killed by SIGKILL"));
  std::filesystem::last_write_time(of_plain_job, begun + std::chrono::seconds(5));
  EXPECT_THAT(run_program({"why", folder.path()}).out, Not(HasSubstr("was killed by SIGKILL")));
}

TEST(WhyCommandTest, TheAnswerNamesRunningAndStoppedRanks) {
  const TestFolder folder;
  const std::array<Rank, 2> world = {0, 1};
  const auto record = FlightRecorder::make(observe::small_record(folder.path(), 0));
  record->begin(observe::sum_in(record->add_group("world", world)), 1, Elements(10));
  const pid_t stopped = ::fork();
  if (stopped == 0) {
    const auto other = FlightRecorder::make(observe::small_record(folder.path(), 1));
    other->add_group("world", world);
    ::raise(SIGSTOP);
    ::_exit(0);
  }
  ::waitpid(stopped, nullptr, WUNTRACED);
  const Ended ended = run_program({"why", folder.path()});
  ::kill(stopped, SIGKILL);
  ::waitpid(stopped, nullptr, 0);
  EXPECT_THAT(ended.out,
              AllOf(StartsWith("Rank 1 never entered all_reduce #1 "),
                    HasSubstr("; rank 0 runs now, rank 1 is stopped (suspended by a signal).\n"),
                    HasSubstr("; its process still runs\n")));
}

TEST(WhyCommandTest, WithoutPathsTheFolderOfTheEnvironmentIsRead) {
  const TestFolder folder;
  leave_records(folder.path());
  ASSERT_EQ(::setenv("PEAL_FLIGHT_DIR", folder.path().c_str(), 1), 0);
  const Ended ended = run_program({"why"});
  ::unsetenv("PEAL_FLIGHT_DIR");
  EXPECT_EQ(ended.status, 0);
  EXPECT_THAT(ended.out, StartsWith("The process of rank 1 was killed by SIGKILL"));
}

TEST(WhyCommandTest, TheAnswerCanBeJson) {
  const TestFolder folder;
  leave_records(folder.path());
  const Ended ended = run_program({"why", "--json", folder.path()});
  EXPECT_EQ(ended.status, 0);
  EXPECT_THAT(ended.out,
              StartsWith(R"({"cause":"process_ended","ranks":[1],"sentence":"The process of)"));
}

TEST(WhyCommandTest, AFileThatCannotBeReadIsReportedBesideTheAnswer) {
  const TestFolder folder;
  leave_records(folder.path());
  std::ofstream(observe::flight_file_in(folder.path(), 2)) << "half";
  const Ended ended = run_program({"why", folder.path()});
  EXPECT_EQ(ended.status, 0);
  EXPECT_THAT(ended.err, AllOf(StartsWith("peal: skipped "), HasSubstr("rank-2.flight")));
}

TEST(WhyCommandTest, NamesOfFilesAreEscaped) {
  const TestFolder folder;
  leave_records(folder.path());
  const std::string name =
      "/rank-\x1b]0;title\x07\xc2\x9b"
      "2J\n.end";
  std::ofstream(folder.path() + name) << "nonsense";
  const Ended ended = run_program({"why", folder.path()});
  EXPECT_EQ(ended.err,
            "peal: skipped " + folder.path() +
                "/rank-\\x1b]0;title\\x07\\xc2\\x9b2J\\x0a.end: the end file of a rank needs two "
                "lines: the job, and how the rank ended\n");
  const Ended json = run_program({"why", "--json", folder.path()});
  EXPECT_EQ(json.out.find_first_of("\x1b\x9b\xc2\x07"), std::string::npos) << json.out;
  const Ended missing = run_program({"why",
                                     folder.path() + "/none\xc2\x9b"
                                                     "2J"});
  EXPECT_THAT(missing.err, HasSubstr("/none\\xc2\\x9b2J: cannot be read: "));
}

TEST(WhyCommandTest, WithoutRecordsTheErrorSaysWhatToDo) {
  const Ended nothing = run_program({"why"});
  EXPECT_EQ(nothing.status, 2);
  EXPECT_THAT(nothing.err, AllOf(HasSubstr("peal why flights"), HasSubstr("PEAL_FLIGHT_DIR")));
  const Ended missing = run_program({"why", "/no/such/folder"});
  EXPECT_EQ(missing.status, 2);
  EXPECT_THAT(missing.err, HasSubstr("/no/such/folder: cannot be read"));
  const TestFolder empty;
  const Ended ended = run_program({"why", empty.path()});
  EXPECT_EQ(ended.status, 2);
  EXPECT_THAT(ended.err, HasSubstr("it holds no rank-N.flight"));
}

}  // namespace
}  // namespace peal::cli
