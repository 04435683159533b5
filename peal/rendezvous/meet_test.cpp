// Meetings of ranks that are threads, each with an environment of its own, over real sockets and
// files. Each error that a user can cause is caused here, and must come long before the deadline
// that would end the wait in any case.
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <set>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/net/framing.h"
#include "peal/net/socket.h"
#include "peal/rendezvous/interfaces.h"
#include "peal/rendezvous/rendezvous.h"
#include "peal/store/file_store.h"
#include "peal/store/tcp_store.h"

namespace peal::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

Deadline soon() { return Deadline::after(seconds(60)); }

std::uint16_t free_port() {
  const Fd listener = net::listen_on(net::Address::parse("127.0.0.1:0"));
  return net::local_address(listener.get()).port();
}

std::string free_url(const std::string& host = "127.0.0.1") {
  return "tcp://" + host + ":" + std::to_string(free_port());
}

struct Attendant {
  Wish wish;
  Variables variables = {};
  Config config = {};
};

struct Outcome {
  std::optional<Meeting> meeting;
  std::optional<Error> error;
};

Outcome attend(const Attendant& attendant, Deadline deadline) {
  try {
    return {
        meet(attendant.wish, attendant.config, fixed_environment(attendant.variables), deadline),
        std::nullopt};
  } catch (const Error& error) {
    return {std::nullopt, error};
  }
}

std::vector<Outcome> meet_all(const std::vector<Attendant>& attendants,
                              Deadline deadline = soon()) {
  std::vector<std::future<Outcome>> threads;
  for (const Attendant& attendant : attendants) {
    threads.push_back(
        std::async(std::launch::async, [&, deadline] { return attend(attendant, deadline); }));
  }
  std::vector<Outcome> outcomes;
  for (auto& thread : threads) outcomes.push_back(thread.get());
  return outcomes;
}

/// Lets go of the stores as processes that end do: all at once.
void part(std::vector<Outcome> outcomes) {
  std::vector<std::future<void>> threads;
  for (Outcome& outcome : outcomes) {
    threads.push_back(std::async(std::launch::async,
                                 [own = std::move(outcome)]() mutable { own.meeting.reset(); }));
  }
}

std::vector<Attendant> ranks_of(const std::string& url, int world_size) {
  std::vector<Attendant> attendants;
  for (Rank rank = 0; rank < world_size; ++rank) {
    attendants.push_back({{.url = url, .rank = rank, .world_size = world_size}});
  }
  return attendants;
}

void expect_met(std::vector<Outcome> outcomes) {
  const int size = static_cast<int>(outcomes.size());
  for (Rank rank = 0; rank < size; ++rank) {
    const Outcome& outcome = outcomes[static_cast<std::size_t>(rank)];
    ASSERT_TRUE(outcome.meeting) << outcome.error->what();
    EXPECT_EQ(outcome.meeting->identity.rank, rank);
    EXPECT_EQ(outcome.meeting->identity.world_size, size);
    EXPECT_EQ(outcome.meeting->identity.local_rank, rank);
    EXPECT_EQ(outcome.meeting->identity.local_world_size, size);
    EXPECT_EQ(outcome.meeting->job, outcomes[0].meeting->job);
    EXPECT_TRUE(outcome.meeting->is_one_host);
    outcome.meeting->store->set("from" + std::to_string(rank), std::to_string(rank));
  }
  for (const Outcome& outcome : outcomes) {
    for (Rank rank = 0; rank < size; ++rank) {
      EXPECT_EQ(outcome.meeting->store->get("from" + std::to_string(rank), soon()),
                std::to_string(rank));
    }
  }
  part(std::move(outcomes));
}

void expect_all(const std::vector<Outcome>& outcomes,
                ErrorKind kind,
                const testing::Matcher<std::string>& matcher) {
  for (const Outcome& outcome : outcomes) {
    ASSERT_TRUE(outcome.error);
    EXPECT_EQ(outcome.error->kind(), kind) << outcome.error->what();
    EXPECT_THAT(std::string(outcome.error->what()), matcher);
  }
}

class MeetTest : public testing::Test {
 protected:
  ~MeetTest() override {
    EXPECT_LT(Clock::now() - begin_, seconds(30)) << "an error came only with the deadline";
    std::filesystem::remove(path_);
  }

  TimePoint begin_ = Clock::now();
  std::string path_ = testing::TempDir() + "peal-meet-" + std::to_string(::getpid());
};

TEST_F(MeetTest, RanksMeetAtAPort) {
  for (const int size : {2, 3, 8}) expect_met(meet_all(ranks_of(free_url(), size)));
}

TEST_F(MeetTest, RanksMeetByNameAndByIPv6) {
  expect_met(meet_all(ranks_of(free_url("localhost"), 2)));
  try {
    net::listen_on(net::Address::parse("[::1]:0"));
  } catch (const Error& error) {
    std::cout << "without IPv6, since this machine has no ::1: " << error.what() << "\n";
    return;
  }
  expect_met(meet_all(ranks_of(free_url("[::1]"), 2)));
}

TEST_F(MeetTest, RanksMeetInAFile) {
  for (int round = 0; round < 2; ++round) {
    expect_met(meet_all(ranks_of("file://" + path_, 3)));
    EXPECT_FALSE(std::filesystem::exists(path_));
  }
}

TEST_F(MeetTest, RanksMeetWhereTheEnvironmentSays) {
  const std::string port = std::to_string(free_port());
  std::vector<Attendant> attendants;
  for (const char* rank : {"0", "1"}) {
    attendants.push_back({{},
                          {{"RANK", rank},
                           {"WORLD_SIZE", "2"},
                           {"MASTER_ADDR", "127.0.0.1"},
                           {"MASTER_PORT", port},
                           {"PEAL_JOB", "mine"}}});
  }
  std::vector<Outcome> outcomes = meet_all(attendants);
  ASSERT_TRUE(outcomes[0].meeting);
  EXPECT_EQ(outcomes[0].meeting->job, "mine");
  EXPECT_EQ(outcomes[0].meeting->identity.source, "environment");
  expect_met(std::move(outcomes));
}

TEST_F(MeetTest, RanksOfMpiAndTorchrunOnThisMachineMeetWithoutAPort) {
  const std::string job = std::to_string(::getpid());
  std::vector<Attendant> open_mpi;
  std::vector<Attendant> mpich;
  std::vector<Attendant> torchrun;
  for (const char* rank : {"0", "1"}) {
    open_mpi.push_back({{},
                        {{"OMPI_COMM_WORLD_RANK", rank},
                         {"OMPI_COMM_WORLD_SIZE", "2"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", rank},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                         {"PMIX_NAMESPACE", job}}});
    mpich.push_back({{},
                     {{"PMI_RANK", rank},
                      {"PMI_SIZE", "2"},
                      {"MPI_LOCALRANKID", rank},
                      {"MPI_LOCALNRANKS", "2"}}});
    torchrun.push_back({{},
                        {{"RANK", rank},
                         {"WORLD_SIZE", "2"},
                         {"LOCAL_RANK", rank},
                         {"LOCAL_WORLD_SIZE", "2"},
                         {"MASTER_ADDR", "127.0.0.1"},
                         {"MASTER_PORT", "1"},
                         {"TORCHELASTIC_RUN_ID", job},
                         {"TORCHELASTIC_USE_AGENT_STORE", "True"}}});
  }
  for (const auto& attendants : {open_mpi, mpich, torchrun}) expect_met(meet_all(attendants));
}

TEST_F(MeetTest, OneRankMeetsNobodyAndTouchesNothing) {
  const std::vector<Attendant> lonely = {
      {},
      {{.url = "file://" + path_, .rank = 0, .world_size = 1}},
      {{.url = "tcp://192.0.2.1:1", .rank = 0, .world_size = 1}}};
  std::set<std::string> jobs;
  for (const Outcome& outcome : meet_all(lonely)) {
    ASSERT_TRUE(outcome.meeting) << outcome.error->what();
    EXPECT_EQ(outcome.meeting->identity.world_size, 1);
    jobs.insert(outcome.meeting->job);
    outcome.meeting->store->set("key", "value");
  }
  EXPECT_EQ(jobs.size(), lonely.size());
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(MeetTest, JobsThatMeetAtDifferentPlacesDifferInName) {
  std::vector<Outcome> a = meet_all(ranks_of(free_url(), 2));
  std::vector<Outcome> b = meet_all(ranks_of(free_url(), 2));
  ASSERT_TRUE(a[0].meeting && b[0].meeting);
  EXPECT_NE(a[0].meeting->job, b[0].meeting->job);
  part(std::move(a));
  part(std::move(b));
}

TEST_F(MeetTest, TheOrderInWhichRanksComeDoesNotMatter) {
  for (const std::string& url : {free_url(), "file://" + path_}) {
    const std::vector<Attendant> attendants = ranks_of(url, 2);
    auto late = std::async(std::launch::async, [&] { return attend(attendants[1], soon()); });
    EXPECT_EQ(late.wait_for(milliseconds(50)), std::future_status::timeout);
    std::vector<Outcome> outcomes;
    outcomes.push_back(attend(attendants[0], soon()));
    outcomes.push_back(late.get());
    expect_met(std::move(outcomes));
  }
}

TEST_F(MeetTest, RanksThatDoNotComeAreNamedOnAllThatDid) {
  for (const std::string& url : {free_url(), "file://" + path_}) {
    std::vector<Attendant> attendants = ranks_of(url, 4);
    attendants.erase(attendants.begin() + 2);
    expect_all(meet_all(attendants, Deadline::after(seconds(2))),
               ErrorKind::kTimeout,
               AllOf(HasSubstr("1 of 4 ranks"), HasSubstr("rank 2")));
  }
}

TEST_F(MeetTest, AMasterThatIsNotThereIsAnErrorAtTheDeadline) {
  const std::string url = free_url();
  std::vector<Attendant> attendants = ranks_of(url, 2);
  attendants.erase(attendants.begin());
  expect_all(meet_all(attendants, Deadline::after(milliseconds(200))),
             ErrorKind::kPeerLost,
             AllOf(HasSubstr("rank 1 cannot reach rank 0"),
                   HasSubstr(url.substr(6)),
                   HasSubstr("MASTER_ADDR")));
}

TEST_F(MeetTest, AMasterWhoseNameIsUnknownIsNamed) {
  std::vector<Outcome> outcomes =
      meet_all(ranks_of("tcp://no-such-host.invalid:29500", 2), Deadline::after(milliseconds(700)));
  expect_all(outcomes, ErrorKind::kUsage, HasSubstr("no-such-host.invalid"));
}

TEST_F(MeetTest, RankZeroOnAnotherMachineThanTheMasterIsTold) {
  const Outcome outcome =
      attend({{.url = "tcp://192.0.2.1:29500", .rank = 0, .world_size = 2}}, soon());
  expect_all(
      {outcome},
      ErrorKind::kUsage,
      AllOf(HasSubstr("\"192.0.2.1\" is no address of the machine"), HasSubstr("127.0.0.1")));
}

TEST_F(MeetTest, ATakenPortIsNamed) {
  const Fd other = net::listen_on(net::Address::parse("127.0.0.1:0"));
  const std::string port = std::to_string(net::local_address(other.get()).port());
  const Outcome outcome =
      attend({{.url = "tcp://127.0.0.1:" + port, .rank = 0, .world_size = 2}}, soon());
  expect_all({outcome},
             ErrorKind::kResource,
             AllOf(HasSubstr("port " + port + " is already in use"), HasSubstr("MASTER_PORT")));
}

TEST_F(MeetTest, AStrangerAtTheMastersPortIsAUsageError) {
  const Fd listener = net::listen_on(net::Address::parse("127.0.0.1:0"));
  const std::string port = std::to_string(net::local_address(listener.get()).port());
  auto stranger = std::async(std::launch::async, [&] {
    const auto connection = net::accept_from(listener.get(), soon());
    net::write_all(connection->get(), net::bytes_of("SSH-2.0-OpenSSH_9.2\r\n"), soon());
    pollfd entry{connection->get(), POLLRDHUP, 0};
    net::poll_until({&entry, 1}, soon());
  });
  const Outcome outcome =
      attend({{.url = "tcp://127.0.0.1:" + port, .rank = 1, .world_size = 2}}, soon());
  stranger.get();
  expect_all({outcome}, ErrorKind::kUsage, HasSubstr("no peal process"));
}

TEST_F(MeetTest, ARankThatIsGivenTwiceIsAnErrorOnAll) {
  for (const Rank twice : {0, 1}) {
    for (const std::string& url : {free_url(), "file://" + path_}) {
      std::vector<Attendant> attendants = ranks_of(url, 3);
      attendants[2].wish.rank = twice;
      expect_all(meet_all(attendants),
                 ErrorKind::kUsage,
                 AllOf(HasSubstr("rank " + std::to_string(twice) + " is given twice"),
                       HasSubstr("process " + std::to_string(::getpid()))));
    }
  }
}

TEST_F(MeetTest, AnErrorIsToldToRanksThatComeALittleLater) {
  for (const std::string& url : {free_url(), "file://" + path_}) {
    std::vector<Attendant> attendants = ranks_of(url, 3);
    attendants[1].wish.rank = 0;
    auto early = std::async(std::launch::async, [&] {
      return meet_all({attendants[0], attendants[1]});
    });
    EXPECT_EQ(early.wait_for(milliseconds(300)), std::future_status::timeout);
    expect_all({attend(attendants[2], soon())}, ErrorKind::kUsage, HasSubstr("given twice"));
    expect_all(early.get(), ErrorKind::kUsage, HasSubstr("given twice"));
  }
}

TEST_F(MeetTest, AVerdictOfAKindThatIsNoneIsABug) {
  for (const std::uint8_t number : {std::uint8_t{7}, std::uint8_t{255}}) {
    const std::string url = "file://" + path_;
    const auto store =
        store::open_file_store(path_, {.members = 2, .timeout = seconds(60)}, soon());
    net::Writer verdict;
    verdict.put_u8(1).put_u8(number).put_text("from a newer peal");
    store->set("meeting/verdict", std::move(verdict).take());
    store->set("meeting/rank/0", "");  // nobody waits for rank 0, which has been here
    const Outcome outcome = attend({{.url = url, .rank = 1, .world_size = 2}}, soon());
    expect_all({outcome}, ErrorKind::kBug, testing::StrEq("bug: from a newer peal"));
  }
}

TEST_F(MeetTest, ARankThatComesTwiceAfterTheMeetingDoesNotDisturbIt) {
  std::vector<Attendant> attendants = ranks_of(free_url(), 2);
  std::vector<Outcome> outcomes = meet_all(attendants);
  const Outcome late = attend(attendants[1], Deadline::after(milliseconds(300)));
  expect_all({late}, ErrorKind::kUsage, HasSubstr("rank 1 is given twice"));
  expect_met(std::move(outcomes));
}

TEST_F(MeetTest, WhoMeetsAgainWaitsUntilTheOthersHaveLeftTheFirstMeeting) {
  for (const std::string& url : {free_url(), "file://" + path_}) {
    std::vector<Attendant> attendants = ranks_of(url, 2);
    std::vector<Outcome> first = meet_all(attendants);
    first[1].meeting.reset();
    auto back = std::async(std::launch::async, [&] { return attend(attendants[1], soon()); });
    EXPECT_EQ(back.wait_for(milliseconds(200)), std::future_status::timeout);
    first[0].meeting.reset();
    std::vector<Outcome> second;
    second.push_back(attend(attendants[0], soon()));
    second.push_back(back.get());
    expect_met(std::move(second));
  }
}

TEST_F(MeetTest, WorldSizesThatDifferAreAnErrorThatNamesBoth) {
  std::vector<Attendant> attendants = ranks_of(free_url(), 2);
  attendants[1].wish.world_size = 3;
  expect_all(meet_all(attendants),
             ErrorKind::kUsage,
             AllOf(HasSubstr("disagree on the world size"), HasSubstr("3"), HasSubstr("2")));
}

TEST_F(MeetTest, AnotherSecretOrJobIsAUsageErrorOfWhoHasIt) {
  for (const bool by_secret : {true, false}) {
    std::vector<Attendant> attendants = ranks_of(free_url(), 2);
    if (by_secret) {
      attendants[0].config.secret = "one";
      attendants[1].config.secret = "another";
    } else {
      attendants[1].variables["PEAL_JOB"] = "another";
    }
    const std::vector<Outcome> outcomes = meet_all(attendants, Deadline::after(seconds(2)));
    expect_all({outcomes[1]}, ErrorKind::kUsage, HasSubstr("does not know this job's secret"));
    expect_all({outcomes[0]}, ErrorKind::kTimeout, HasSubstr("rank 1"));
  }
}

/// A process that runs `body` and ends with what it returns, or is killed.
class Child {
 public:
  explicit Child(const std::function<int()>& body) : pid_(::fork()) {
    if (pid_ == 0) ::_exit(body());
  }
  ~Child() { kill(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    exit_code();
  }

  int exit_code() {
    int status = 0;
    ::waitpid(std::exchange(pid_, 0), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_;
};

TEST_F(MeetTest, AMasterThatDiesDuringTheMeetingIsALostPeer) {
  const std::string url = free_url();
  const std::vector<Attendant> attendants = ranks_of(url, 3);
  Child master([&] { return attend(attendants[0], soon()).meeting ? 1 : 2; });
  auto rank = std::async(std::launch::async, [&] { return attend(attendants[1], soon()); });
  const auto observer = store::connect_tcp_store(
      {net::Address::parse(url.substr(6))}, {"", "", "store"}, seconds(60), soon());
  observer->get("meeting/rank/1", soon());
  master.kill();
  expect_all({rank.get()}, ErrorKind::kPeerLost, HasSubstr("rank 0"));
}

TEST_F(MeetTest, RanksOfSeveralHostsAreCountedWhereTheyAre) {
  constexpr int kNoNamespaces = 42;
  const std::vector<Attendant> attendants = ranks_of("file://" + path_, 3);
  Child elsewhere([&] {
    if (::unshare(CLONE_NEWNET) != 0) return kNoNamespaces;  // as good as another host
    const Outcome outcome = attend(attendants[1], soon());
    if (!outcome.meeting || outcome.meeting->is_one_host) return 1;
    outcome.meeting->store->get("bye", soon());
    return outcome.meeting->identity == Identity{1, 3, 0, 1, "arguments"} ? 0 : 2;
  });
  std::vector<Outcome> outcomes =
      meet_all({attendants[0], attendants[2]}, Deadline::after(seconds(20)));
  if (!outcomes[0].meeting && elsewhere.exit_code() == kNoNamespaces) {
    GTEST_SKIP() << "this user may not make a network namespace";
  }
  for (const Outcome& outcome : outcomes) {
    ASSERT_TRUE(outcome.meeting) << outcome.error->what();
    EXPECT_FALSE(outcome.meeting->is_one_host);
    const Rank rank = outcome.meeting->identity.rank;
    EXPECT_EQ(outcome.meeting->identity, (Identity{rank, 3, rank / 2, 2, "arguments"}));
  }
  outcomes[0].meeting->store->set("bye", "");
  EXPECT_EQ(elsewhere.exit_code(), 0);
}

TEST_F(MeetTest, WrongVariablesAreNamedAtOnce) {
  for (const auto& [variables, named] : std::map<Variables, std::string>{
           {{{"RANK", "0"}}, "WORLD_SIZE"},
           {{{"RANK", "0"}, {"WORLD_SIZE", "2"}}, "MASTER_ADDR"},
           {{{"RANK", "zero"}, {"WORLD_SIZE", "2"}}, "RANK"},
           {{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "h"}, {"MASTER_PORT", "x"}},
            "MASTER_PORT"}}) {
    expect_all({attend({{}, variables}, soon())}, ErrorKind::kUsage, HasSubstr(named));
  }
}

TEST_F(MeetTest, AMasterKnownByANameOfLoopbackServesOtherHostsAtItsRealAddresses) {
  const std::vector<Interface> interfaces = own_interfaces();
  const auto real = std::find_if(interfaces.begin(), interfaces.end(), [](const Interface& i) {
    return !i.address.is_loopback();
  });
  if (real == interfaces.end()) GTEST_SKIP() << "this machine has loopback only";
  const std::string port = std::to_string(free_port());
  const std::string address = real->address.to_string();
  const Variables two_hosts = {{"WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "1"}};
  std::vector<Attendant> attendants(2);
  attendants[0] = {{.url = "tcp://localhost:" + port, .rank = {}, .world_size = {}}, two_hosts};
  attendants[1] = {{.url = "tcp://" + address.substr(0, address.rfind(':')) + ":" + port,
                    .rank = {},
                    .world_size = {}},
                   two_hosts};
  attendants[0].variables["RANK"] = "0";
  attendants[1].variables["RANK"] = "1";
  std::vector<Outcome> outcomes = meet_all(attendants);
  for (const Outcome& outcome : outcomes) ASSERT_TRUE(outcome.meeting) << outcome.error->what();
  part(std::move(outcomes));
}

}  // namespace
}  // namespace peal::rendezvous
