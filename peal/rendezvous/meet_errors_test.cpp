// Causes each error that a user can cause at a meeting. Each error must come long before the
// deadline, which would end the wait in any case.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <future>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/base/serialize.h"
#include "peal/base/testing/sanitized.h"
#include "peal/net/socket.h"
#include "peal/rendezvous/meeting_result.h"
#include "peal/rendezvous/testing/child.h"
#include "peal/rendezvous/testing/meetings.h"
#include "peal/store/file_lock.h"
#include "peal/store/file_store.h"
#include "peal/store/tcp_store.h"

namespace peal::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using testing::attend;
using testing::Child;
using ::testing::ContainsRegex;
using testing::expect_all;
using ::testing::HasSubstr;
using testing::meet_all;
using testing::MeetTest;
using ::testing::Not;
using testing::Outcome;
using testing::Participant;
using testing::ranks_of;
using testing::Variables;

TEST_F(MeetTest, EveryRankThatCameNamesTheMissingRanks) {
  for (const std::string& url : {free_url(), "file://" + path_}) {
    std::vector<Participant> attendants = ranks_of(url, 4);
    attendants.erase(attendants.begin() + 2);
    expect_all(meet_all(attendants, Deadline::after(seconds(2))),
               ErrorKind::kTimeout,
               AllOf(HasSubstr("1 of 4 ranks"), HasSubstr("rank 2")));
  }
}

/// A check of all these ranks would take gigabytes and minutes.
TEST_F(MeetTest, AHugeWorldSizeInTheStoreOnlyCausesADisagreement) {
  const auto stranger = store::open_file_store(path_, {.members = 3}, soon());
  stranger->set("meeting/result", encode(MeetingResult()));
  ByteWriter claim;
  claim.put_i32(2'000'000'000).put_i32(2).put_text("a stranger").put_i32(0);
  stranger->set("meeting/world_size", std::move(claim).take());
  std::vector<Participant> attendants = ranks_of("file://" + path_, 3);
  attendants.pop_back();
  expect_all(meet_all(attendants),
             ErrorKind::kUsage,
             AllOf(HasSubstr("disagree on the world size"), HasSubstr("2000000000")));
}

TEST_F(MeetTest, AMissingMasterIsATimeoutThatSaysHowLongTheRankTried) {
  const std::string url = free_url();
  std::vector<Participant> attendants = ranks_of(url, 2);
  attendants.erase(attendants.begin());
  attendants[0].config.flight_dir = path_;  // under a launcher the rank waits in short slices
  for (const Variables& variables : {Variables(), Variables{{"PEAL_JOB", "mine"}}}) {
    attendants[0].variables = variables;
    expect_all(meet_all(attendants, Deadline::after(milliseconds(700))),
               ErrorKind::kTimeout,
               AllOf(HasSubstr("rank 1 cannot reach rank 0 at " + url.substr(6)),
                     ContainsRegex("and has tried for (0.[5-9]|[1-9][0-9.]+) s: no process could"),
                     HasSubstr("MASTER_ADDR")));
  }
}

TEST_F(MeetTest, TheErrorNamesAMasterWithAnUnknownName) {
  std::vector<Outcome> outcomes =
      meet_all(ranks_of("tcp://no-such-host.invalid:29500", 2), Deadline::after(milliseconds(700)));
  expect_all(outcomes, ErrorKind::kUsage, HasSubstr("no-such-host.invalid"));
}

TEST_F(MeetTest, RankZeroRejectsAnAddressOfAnotherMachine) {
  const Outcome outcome =
      attend({{.url = "tcp://192.0.2.1:29500", .rank = 0, .world_size = 2}}, soon());
  expect_all(
      {outcome},
      ErrorKind::kUsage,
      AllOf(HasSubstr("\"192.0.2.1\" is not an address of the machine"), HasSubstr("127.0.0.1")));
}

TEST_F(MeetTest, TheErrorNamesATakenPort) {
  const Fd other = net::listen_on(net::Address::parse("127.0.0.1:0"));
  const std::string port = std::to_string(net::local_address(other.get()).port());
  const Outcome outcome =
      attend({{.url = "tcp://127.0.0.1:" + port, .rank = 0, .world_size = 2}}, soon());
  expect_all({outcome},
             ErrorKind::kResource,
             AllOf(HasSubstr("port " + port + " is already in use"), HasSubstr("MASTER_PORT")));
}

TEST_F(MeetTest, AnotherProgramAtTheMastersPortIsAUsageError) {
  const Fd listener = net::listen_on(net::Address::parse("127.0.0.1:0"));
  const std::string port = std::to_string(net::local_address(listener.get()).port());
  auto stranger = std::async(std::launch::async, [&] {
    const auto connection = net::accept_from(listener.get(), soon());
    net::write_all(connection->get(), bytes_of("SSH-2.0-OpenSSH_9.2\r\n"), soon());
    pollfd entry{connection->get(), POLLRDHUP, 0};
    net::poll_until({&entry, 1}, soon());
  });
  const Outcome outcome =
      attend({{.url = "tcp://127.0.0.1:" + port, .rank = 1, .world_size = 2}}, soon());
  stranger.get();
  expect_all({outcome}, ErrorKind::kUsage, HasSubstr("not a peal process"));
}

TEST_F(MeetTest, ADuplicateRankIsAnErrorOnAllRanks) {
  for (const Rank twice : {0, 1}) {
    for (const std::string& url : {free_url(), "file://" + path_}) {
      std::vector<Participant> attendants = ranks_of(url, 3);
      attendants[2].request.rank = twice;
      expect_all(meet_all(attendants),
                 ErrorKind::kUsage,
                 AllOf(HasSubstr("rank " + std::to_string(twice) + " is given twice"),
                       HasSubstr("process " + std::to_string(::getpid()))));
    }
  }
}

TEST_F(MeetTest, RanksThatComeALittleLaterGetTheError) {
  for (const std::string& url : {free_url(), "file://" + path_}) {
    std::vector<Participant> attendants = ranks_of(url, 3);
    attendants[1].request.rank = 0;
    auto early = std::async(std::launch::async, [&] {
      return meet_all({attendants[0], attendants[1]});
    });
    EXPECT_EQ(early.wait_for(milliseconds(300)), std::future_status::timeout);
    expect_all({attend(attendants[2], soon())}, ErrorKind::kUsage, HasSubstr("given twice"));
    expect_all(early.get(), ErrorKind::kUsage, HasSubstr("given twice"));
  }
}

TEST_F(MeetTest, AMeetingResultWithAnUnknownErrorKindIsABug) {
  for (const std::uint8_t number : {std::uint8_t{8}, std::uint8_t{255}}) {
    const std::string url = "file://" + path_;
    const auto store =
        store::open_file_store(path_, {.members = 2, .timeout = seconds(60)}, soon());
    std::string result = encode(MeetingResult(Error(ErrorKind::kUsage, "from a newer peal")));
    result[1] = static_cast<char>(number);  // the kind
    store->set("meeting/result", result);
    store->set("meeting/rank/0", "");  // so that rank 1 does not wait for rank 0
    const Outcome outcome = attend({{.url = url, .rank = 1, .world_size = 2}}, soon());
    expect_all({outcome}, ErrorKind::kBug, ::testing::StrEq("bug: from a newer peal"));
  }
}

TEST_F(MeetTest, DifferentWorldSizesAreAnErrorThatNamesBoth) {
  std::vector<Participant> attendants = ranks_of(free_url(), 2);
  attendants[1].request.world_size = 3;
  expect_all(meet_all(attendants),
             ErrorKind::kUsage,
             AllOf(HasSubstr("disagree on the world size"), HasSubstr("3"), HasSubstr("2")));
}

TEST_F(MeetTest, ARankWithAnotherSecretOrJobGetsAUsageError) {
  for (const bool by_secret : {true, false}) {
    std::vector<Participant> attendants = ranks_of(free_url(), 3);
    if (by_secret) {
      for (Participant& participant : attendants) participant.config.secret = Secret("one");
      attendants[1].config.secret = Secret("another");
    } else {
      attendants[1].variables["PEAL_JOB"] = "another";
    }
    const std::vector<Outcome> outcomes = meet_all(attendants, Deadline::after(seconds(2)));
    expect_all({outcomes[1]}, ErrorKind::kUsage, HasSubstr("does not know this job's secret"));
    // The ranks that wait for rank 1 learn that a connection was rejected.
    expect_all({outcomes[0], outcomes[2]},
               ErrorKind::kTimeout,
               AllOf(HasSubstr("1 of 3 ranks did not join the group in time: rank 1;"),
                     HasSubstr("the job's store refused a connection: the other end does "
                               "not know this job's secret")));
  }
}

TEST_F(MeetTest, AMasterThatDiesDuringTheMeetingIsALostPeer) {
  const std::string url = free_url();
  const std::vector<Participant> attendants = ranks_of(url, 3);
  Child master([&] { return attend(attendants[0], soon()).meeting ? 1 : 2; });
  auto rank = std::async(std::launch::async, [&] { return attend(attendants[1], soon()); });
  const auto observer = store::connect_tcp_store(
      {net::Address::parse(url.substr(6))}, {Secret(), "", "store"}, seconds(60), soon());
  observer->get("meeting/rank/1", soon());
  master.kill();
  expect_all({rank.get()}, ErrorKind::kPeerLost, HasSubstr("rank 0"));
}

TEST_F(MeetTest, AFileLockedByAStoppedProcessIsNotReportedAsAStoppedRankZero) {
  const auto observer =
      store::open_file_store(path_, {.members = 2, .timeout = seconds(60)}, soon());
  auto rank = std::async(std::launch::async, [&] {
    return attend({{.url = "file://" + path_, .rank = 1, .world_size = 2}},
                  Deadline::after(seconds(kSanitized ? 6 : 2)));
  });
  observer->get("meeting/ready/1", soon());
  const Fd other(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
  while (!store::try_lock(other.get(), store::LockByte::kChange, store::LockKind::kAlone)) {
    std::this_thread::yield();
  }
  expect_all({rank.get()},
             ErrorKind::kTimeout,
             AllOf(HasSubstr("the store in which the ranks meet does not answer"),
                   HasSubstr(path_),
                   Not(HasSubstr("rank 0"))));
  store::unlock(other.get(), store::LockByte::kChange);
}

TEST_F(MeetTest, TheErrorNamesWrongVariablesAtOnce) {
  for (const auto& [variables, named] : std::map<Variables, std::string>{
           {{{"RANK", "0"}}, "WORLD_SIZE"},
           {{{"RANK", "0"}, {"WORLD_SIZE", "2"}}, "MASTER_ADDR"},
           {{{"RANK", "zero"}, {"WORLD_SIZE", "2"}}, "RANK"},
           {{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "h"}, {"MASTER_PORT", "x"}},
            "MASTER_PORT"}}) {
    expect_all({attend({{}, variables}, soon())}, ErrorKind::kUsage, HasSubstr(named));
  }
}

}  // namespace
}  // namespace peal::rendezvous
