#include "peal/backends/native/lost_peer.h"

#include <chrono>
#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/testing/quickest.h"
#include "peal/observe/end_file.h"
#include "peal/observe/testing/flight_files.h"
#include "peal/transport/memory/memory.h"

namespace peal::native {
namespace {

using observe::RankEnd;
using testing::AllOf;
using testing::HasSubstr;

RankEnd killed(Rank rank, observe::WallTime at) {
  return {.rank = rank,
          .pid = 7,
          .at = at,
          .state = RankEnd::State::kKilled,
          .text = "was killed by SIGKILL"};
}

class LostPeersTest : public testing::Test {
 protected:
  /// Rank 0 of the group pair, whose rank 1 is rank 5 of the world.
  LostPeers of_pair(const std::string& ends) const {
    return LostPeers({.group = "pair",
                      .self = 0,
                      .world_ranks = {3, 5},
                      .transport = *transports_.front(),
                      .ends = {ends, "test"}});
  }

  const observe::TestFolder folder_;
  const std::vector<std::unique_ptr<transport::Transport>> transports_ =
      transport::make_memory_transports(2, {});
};

TEST_F(LostPeersTest, TheErrorSaysHowTheProcessEndedAndTheOperationOfThisRank) {
  const LostPeers peers = of_pair(folder_.path());
  observe::write_end_file({folder_.path(), "test"}, killed(5, observe::wall_now()));
  const Error error = peers.lost(1, "all_reduce #12 (sum of 10 f32)");
  EXPECT_EQ(error.kind(), ErrorKind::kPeerLost);
  EXPECT_THAT(std::string(error.message()),
              AllOf(HasSubstr("rank 1 ("),
                    HasSubstr(") was lost: it was killed by SIGKILL; rank 0 of the group pair was "
                              "in all_reduce #12 (sum of 10 f32)")));
  EXPECT_EQ(
      error.details(),
      (ErrorDetails{
          .rank = 5, .operation = "all_reduce #12 (sum of 10 f32)", .cause = ErrorCause::kKilled}));
}

TEST_F(LostPeersTest, TheEndOfAnotherJobsRankIsIgnored) {
  observe::write_end_file({folder_.path(), "another"}, killed(5, observe::wall_now()));
  const Error error = of_pair(folder_.path()).lost(1, "");
  EXPECT_THAT(std::string(error.message()),
              HasSubstr("was lost: it ended, or its connection broke; rank 0 of the group pair was "
                        "in no operation"));
}

TEST_F(LostPeersTest, WithoutALauncherItDoesNotWaitForTheRecord) {
  // Otherwise it waits 100 ms for the launcher's record.
  constexpr std::chrono::milliseconds kWait(90);
  EXPECT_LT(quickest(kWait,
                     [&] {
                       const TimePoint start = Clock::now();
                       EXPECT_THAT(std::string(of_pair("").lost(1, "").message()),
                                   HasSubstr("was lost"));
                       return Clock::now() - start;
                     }),
            kWait);
}

TEST_F(LostPeersTest, ARankThatHasLeftIsMissingInTheOperationOfThisRank) {
  const Error error = of_pair("").left(1, Departure::kByException, "barrier #2");
  EXPECT_THAT(std::string(error.message()),
              HasSubstr("has left the group because of an exception and is missing in barrier #2, "
                        "on rank 0 of the group pair"));
}

}  // namespace
}  // namespace peal::native
