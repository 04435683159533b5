#include "peal/launch/jobs/job_logs.h"

#include <atomic>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/guarded.h"
#include "peal/base/testing/error_of.h"
#include "peal/base/testing/soon.h"
#include "peal/base/testing/temporary_folder.h"

namespace peal::launch::jobs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class JobLogsTest : public testing::Test {
 protected:
  JobLogsTest()
      : folder_(make_job_folder(temporary_.path(),
                                {.job = {.name = "a",
                                         .roles = {{.name = "master", .command = {"true"}},
                                                   {.name = "worker",
                                                    .nodes = {2, 2},
                                                    .ranks_per_node = 2,
                                                    .command = {"true"}}}}})) {}

  void append(int attempt, Rank rank, Channel channel, const std::string& text) const {
    std::filesystem::create_directories(folder_.attempt_directory(attempt));
    std::ofstream(folder_.rank_log(attempt, rank, channel), std::ios::app) << text;
  }
  void end_job() const { write(folder_, JobEnd{.state = JobState::kSucceeded, .exit_code = 0}); }

  std::vector<std::string> lines(const LogQuery& query = {}) const {
    std::vector<std::string> lines;
    read_logs(folder_, query, [&](const LogLine& line) {
      const std::string rank = line.rank ? fmt::format(" [{}]", *line.rank) : "";
      lines.push_back(
          fmt::format("{} {}-{}{}: {}", line.node, line.role, line.index, rank, line.text));
    });
    return lines;
  }

  TemporaryFolder temporary_;
  JobFolder folder_;
};

TEST_F(JobLogsTest, WithoutLogsThereAreNoLines) { EXPECT_THAT(lines(), IsEmpty()); }

TEST_F(JobLogsTest, LinesNameTheNodeAndOnSharedNodesTheRank) {
  append(0, 0, Channel::kOut, "out\nunfinished");
  append(0, 0, Channel::kErr, "err\n");
  append(0, 2, Channel::kOut, "x\n");
  append(0, 4, Channel::kOut, "y\n");
  append(0, 5, Channel::kOut, "of no rank\n");
  EXPECT_THAT(lines(),
              ElementsAre("0 master-0: out",
                          "0 master-0: unfinished",
                          "0 master-0: err",
                          "1 worker-0 [2]: x",
                          "2 worker-1 [4]: y"));
  EXPECT_THAT(lines({.rank = 4}), ElementsAre("2 worker-1 [4]: y"));
  EXPECT_THAT(lines({.rank = 1}), IsEmpty());
}

TEST_F(JobLogsTest, TheLastAttemptIsShownUnlessTheQueryNamesOne) {
  append(0, 0, Channel::kOut, "first\n");
  append(10, 0, Channel::kOut, "last\n");
  append(2, 0, Channel::kOut, "middle\n");
  EXPECT_THAT(attempts_of(folder_), ElementsAre(0, 2, 10));
  EXPECT_EQ(restarts_of(folder_), 0);
  write(folder_, FailedAttempt{.attempt = 2, .failure = "rank 1 failed"});
  EXPECT_EQ(restarts_of(folder_), 1);
  EXPECT_THAT(lines(), ElementsAre("0 master-0: last"));
  EXPECT_THAT(lines({.attempt = 0}), ElementsAre("0 master-0: first"));
}

TEST_F(JobLogsTest, ARankOrAnAttemptThatDoesNotExistIsAnError) {
  EXPECT_THAT(usage_error_of([&] { lines({.rank = 5}); }),
              HasSubstr("no rank 5, only ranks 0 to 4"));
  EXPECT_THAT(usage_error_of([&] { lines({.rank = -1}); }), HasSubstr("no rank -1"));
  EXPECT_THAT(usage_error_of([&] { lines({.attempt = 0}); }), HasSubstr("nothing was started"));
  append(0, 0, Channel::kOut, "x\n");
  append(1, 0, Channel::kOut, "x\n");
  EXPECT_THAT(usage_error_of([&] { lines({.attempt = 2}); }),
              HasSubstr("no logs of attempt 2; its last attempt is 1"));
}

/// Follows the logs on a thread, while the test writes them.
class Following final {
 public:
  Following(const JobFolder& folder, LogQuery query)
      : thread_([this, &folder, query]() mutable {
          query.follow = Follow::kUntilTheEnd;
          read_logs(folder, query, [this](const LogLine& line) {
            lines_.with([&](auto& lines) { lines.emplace_back(line.text); });
          });
        }) {}

  void wait_for(std::size_t count) {
    const Deadline deadline = soon();
    while (lines().size() < count && !deadline.passed()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_EQ(lines().size(), count);
  }
  std::vector<std::string> wait_for_end() {
    thread_.join();
    return lines();
  }
  std::vector<std::string> lines() {
    return lines_.with([](auto& lines) { return lines; });
  }

 private:
  Guarded<std::vector<std::string>> lines_;
  std::jthread thread_;
};

TEST_F(JobLogsTest, FollowingBeginsBeforeTheStartAndEndsWithTheJob) {
  Following following(folder_, {});
  append(0, 0, Channel::kOut, "a\nb");
  following.wait_for(1);
  append(0, 0, Channel::kOut, "c\n");
  append(0, 3, Channel::kErr, "d\n");
  following.wait_for(3);
  append(0, 0, Channel::kOut, "the last words");
  end_job();
  EXPECT_THAT(following.wait_for_end(),
              testing::AllOf(testing::SizeIs(4),
                             testing::Contains("bc"),
                             testing::Contains("d"),
                             testing::Contains("the last words")));
}

TEST_F(JobLogsTest, FollowingShowsLaterAttemptsAndNotEarlierOnes) {
  append(0, 0, Channel::kOut, "of attempt 0\n");
  append(1, 0, Channel::kOut, "of attempt 1\nunfinished");
  Following following(folder_, {});
  following.wait_for(1);
  append(2, 0, Channel::kOut, "of attempt 2\n");
  following.wait_for(3);
  end_job();
  EXPECT_THAT(following.wait_for_end(), ElementsAre("of attempt 1", "unfinished", "of attempt 2"));
}

TEST_F(JobLogsTest, FollowingTellsOfAFailureBetweenTheLinesOfTwoAttempts) {
  for (const int pause : {0, 2}) {  // looks between the failure and the next attempt
    SCOPED_TRACE(pause);
    std::filesystem::remove_all(folder_.attempt_directory(0));
    std::filesystem::remove_all(folder_.attempt_directory(1));
    append(0, 0, Channel::kOut, "a\nunfinished");
    std::vector<std::string> texts;
    LogQuery query{.follow = Follow::kUntilTheEnd};
    query.tell = [&](const std::string& sentence) { texts.push_back(sentence); };
    int look = 0;
    const auto has_ended = [&] {
      if (look == 1) write(folder_, FailedAttempt{.attempt = 0, .failure = "rank 1 failed"});
      if (look == 1 + pause) append(1, 0, Channel::kOut, "b\n");
      return ++look == 5;
    };
    read_logs(
        folder_, query, [&](const LogLine& line) { texts.emplace_back(line.text); }, has_ended);
    EXPECT_THAT(
        texts,
        ElementsAre("a", "unfinished", "attempt 0 failed: rank 1 failed; attempt 1 follows", "b"));
  }
}

TEST_F(JobLogsTest, FollowingOneRankOfOneAttemptShowsNoOther) {
  Following following(folder_, {.rank = 0, .attempt = 1});
  append(0, 0, Channel::kOut, "earlier\n");
  append(1, 0, Channel::kOut, "wanted\n");
  append(1, 1, Channel::kOut, "another rank\n");
  append(2, 0, Channel::kOut, "later\n");
  following.wait_for(1);
  end_job();
  EXPECT_THAT(following.wait_for_end(), ElementsAre("wanted"));
}

TEST_F(JobLogsTest, FollowingAJobThatHasEndedShowsAllAndEnds) {
  append(0, 0, Channel::kOut, "a\n");
  end_job();
  EXPECT_THAT(lines({.follow = Follow::kUntilTheEnd}), ElementsAre("0 master-0: a"));
  EXPECT_THAT(usage_error_of([&] { lines({.attempt = 3, .follow = Follow::kUntilTheEnd}); }),
              HasSubstr("no logs of attempt 3"));
}

TEST_F(JobLogsTest, AnInterruptEndsFollowing) {
  int calls = 0;
  const LogQuery query{.follow = Follow::kUntilTheEnd, .interrupt = [&] {
                         if (++calls == 3) throw std::runtime_error("Ctrl-C");
                       }};
  EXPECT_THROW(lines(query), Interrupted);
}

TEST_F(JobLogsTest, ARunnerMayKnowTheEndBetter) {
  append(0, 0, Channel::kOut, "a\n");
  int looks = 0;
  std::vector<std::string> texts;
  read_logs(
      folder_,
      {.follow = Follow::kUntilTheEnd},
      [&](const LogLine& line) { texts.emplace_back(line.text); },
      [&] { return ++looks == 2; });
  EXPECT_THAT(texts, ElementsAre("a"));
  EXPECT_EQ(looks, 2);
}

}  // namespace
}  // namespace peal::launch::jobs
