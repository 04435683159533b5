#include "peal/launch/post_mortem.h"

#include <signal.h>

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/launch/flights.h"
#include "peal/observe/dump.h"
#include "peal/observe/testing/flight_files.h"

namespace peal::launch {
namespace {

using testing::HasSubstr;

constexpr const char* kPostMortemJob = "test";  // the job's name in small_record

/// Leaves the records of a job of two ranks: rank 1 was killed while rank 0 waited for it.
LaunchReport leave_records(const std::string& folder) {
  const std::array<Rank, 2> world = {0, 1};
  const auto waiting = observe::FlightRecorder::make(observe::small_record(folder, 0));
  const std::uint8_t group = waiting->add_group("world", world);
  waiting->begin(observe::sum_in(group), 1, Elements(10));
  observe::FlightRecorder::make(observe::small_record(folder, 1))->add_group("world", world);
  const ProcessEnd killed{.rank = 1, .pid = 7, .status = SIGKILL};
  leave_end({folder, kPostMortemJob}, killed);
  LaunchReport report;
  report.ends = {killed, {.rank = 0, .pid = 6, .status = SIGTERM, .ended_by = EndedBy::kRequest}};
  return report;
}

LaunchOptions options_with_logs(const std::string& logs) {
  LaunchOptions options;
  options.ranks = 2;
  options.log_directory = logs;
  return options;
}

TEST(PostMortemTest, TheRecordsOfAFailedLaunchAreMergedAndTheCauseIsNamed) {
  const PrivateFolder logs("peal-test.");
  const Flights flights(Variables{});
  const LaunchReport report = leave_records(flights.folder());
  const auto found =
      examine(report, flights.place(), kPostMortemJob, options_with_logs(logs.path()));
  ASSERT_TRUE(found);
  EXPECT_THAT(found->sentence, HasSubstr("The process of rank 1 was killed by SIGKILL"));
  EXPECT_EQ(found->records, logs.path() / "peal.dump");
  EXPECT_EQ(found->problem, "");
  const std::array paths = {found->records};
  const observe::Dump dump = observe::read_dumps(paths);
  EXPECT_EQ(dump.flights.size(), 2u);
  EXPECT_EQ(dump.ends.size(), 1u);
}

TEST(PostMortemTest, RecordsInAFolderOfTheUserStayThere) {
  const PrivateFolder named("peal-test.");
  const Flights flights(Variables{{"PEAL_FLIGHT_DIR", named.path()}});
  const LaunchReport report = leave_records(named.path());
  const auto found = examine(report, flights.place(), kPostMortemJob, options_with_logs(""));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->records, named.path());
}

TEST(PostMortemTest, AnEndThatTheUserRequestedHasNoCause) {
  const PrivateFolder logs("peal-test.");
  const Flights flights(Variables{});
  leave_records(flights.folder());
  LaunchReport report;
  report.signal = SIGINT;
  report.ends = {{.rank = 1, .pid = 7, .status = SIGINT, .ended_by = EndedBy::kRequest}};
  const auto found =
      examine(report, flights.place(), kPostMortemJob, options_with_logs(logs.path()));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->sentence, "");
  EXPECT_EQ(found->records, logs.path() / "peal.dump");
}

TEST(PostMortemTest, AfterASignalThatAllRanksHaveHandledThereIsNoPostMortem) {
  const Flights flights(Variables{});
  leave_records(flights.folder());
  LaunchReport report;
  for (const Rank rank : {0, 1}) report.ends.push_back({.rank = rank, .status = 143 << 8});
  EXPECT_EQ(examine(report, flights.place(), kPostMortemJob, options_with_logs("")), std::nullopt);
}

/// The sentence if rank 1 wrote these lines and was killed by `signal`.
std::string sentence_after(int signal, const std::vector<std::string>& lines) {
  const PrivateFolder named("peal-test.");
  const Flights flights(Variables{{"PEAL_FLIGHT_DIR", named.path()}});
  LaunchReport report = leave_records(named.path());
  report.ends.front().status = signal;
  report.ends.front().last_lines = lines;
  leave_end({named.path(), kPostMortemJob}, report.ends.front());
  return examine(report, flights.place(), kPostMortemJob, options_with_logs(""))->sentence;
}

TEST(PostMortemTest, TheSentenceQuotesTheExceptionThatARankDidNotCatch) {
  const std::string type = "terminate called after throwing an instance of 'std::runtime_error'";
  EXPECT_THAT(sentence_after(SIGABRT, {"step 1", type, "  what():  no \x1bluck", "in row 9"}),
              testing::StartsWith("The process of rank 1 was killed by SIGABRT because of an "
                                  "uncaught std::runtime_error: \"no  luck\", "));
  EXPECT_THAT(
      sentence_after(SIGABRT, {type}),
      testing::StartsWith("The process of rank 1 was killed by SIGABRT because of an uncaught "
                          "std::runtime_error, "));
  const std::string plain = "The process of rank 1 was killed by SIGABRT, ";
  EXPECT_THAT(sentence_after(SIGABRT, {"  what():  no luck"}), testing::StartsWith(plain));
  EXPECT_THAT(sentence_after(SIGKILL, {type, "  what():  no luck"}),
              testing::Not(HasSubstr("uncaught")));
}

/// Rank 1 leaves by an exception and ends with exit code 1.
std::optional<PostMortem> examine_exception(bool after_an_operation) {
  const PrivateFolder named("peal-test.");
  const Flights flights(Variables{{"PEAL_FLIGHT_DIR", named.path()}});
  const std::array<Rank, 2> world = {0, 1};
  const auto recorder = observe::FlightRecorder::make(observe::small_record(named.path(), 1));
  const std::uint8_t group = recorder->add_group("world", world);
  if (after_an_operation) recorder->note(observe::sum_in(group), 1, Elements(10));
  recorder->left(Departure::kByException);
  LaunchReport report;
  report.ends = {{.rank = 1, .pid = 7, .status = 1 << 8}};
  return examine(report, flights.place(), kPostMortemJob, options_with_logs(""));
}

TEST(PostMortemTest, AnExceptionBeforeAnyOperationNeedsNoRecords) {
  const auto before = examine_exception(/*after_an_operation=*/false);
  ASSERT_TRUE(before);
  EXPECT_EQ(*before, PostMortem{.causes = {1}});
  const auto after = examine_exception(/*after_an_operation=*/true);
  ASSERT_TRUE(after);
  EXPECT_THAT(after->sentence, HasSubstr("Rank 1 left by an exception, after all_reduce #1"));
  EXPECT_NE(after->records, "");
}

TEST(PostMortemTest, WithoutAFailureOrWithoutRecordsThereIsNoPostMortem) {
  const Flights flights(Variables{});
  const LaunchReport report = leave_records(flights.folder());
  LaunchReport well;
  well.ends = {{.rank = 0}, {.rank = 1}};
  EXPECT_EQ(examine(well, flights.place(), kPostMortemJob, options_with_logs("")), std::nullopt);
  EXPECT_EQ(examine(report, flights.place(), "another job", options_with_logs("")), std::nullopt);
  EXPECT_EQ(examine(report, Flights(Variables{}).place(), kPostMortemJob, options_with_logs("")),
            std::nullopt);
  EXPECT_EQ(examine(report,
                    Flights(Variables{{"PEAL_FLIGHT_DIR", ""}}).place(),
                    kPostMortemJob,
                    options_with_logs("")),
            std::nullopt);
}

TEST(PostMortemTest, AFailedWriteIsReportedAndTheCauseIsNamed) {
  const Flights flights(Variables{});
  const LaunchReport report = leave_records(flights.folder());
  const auto found =
      examine(report, flights.place(), kPostMortemJob, options_with_logs("/no/such/folder"));
  ASSERT_TRUE(found);
  EXPECT_THAT(found->sentence, HasSubstr("rank 1"));
  EXPECT_EQ(found->records, "");
  EXPECT_THAT(found->problem, HasSubstr("could not be kept: cannot write /no/such/folder/"));
}

}  // namespace
}  // namespace peal::launch
