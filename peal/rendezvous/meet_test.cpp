// Tests meetings that succeed. meet_errors_test.cpp tests meetings that fail.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <future>
#include <iostream>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/net/socket.h"
#include "peal/rendezvous/interfaces.h"
#include "peal/rendezvous/testing/child.h"
#include "peal/rendezvous/testing/meetings.h"

namespace peal::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::attend;
using testing::Child;
using testing::expect_all;
using testing::expect_met;
using ::testing::HasSubstr;
using testing::leave_all;
using testing::meet_all;
using testing::MeetTest;
using testing::Outcome;
using testing::Participant;
using testing::ranks_of;
using testing::Variables;

TEST_F(MeetTest, RanksMeetAtAPort) {
  for (const int size : {2, 3, 8}) expect_met(meet_all(ranks_of(free_url(), size)));
}

TEST_F(MeetTest, RanksMeetByNameAndByIPv6) {
  expect_met(meet_all(ranks_of("tcp://localhost:" + free_port("0.0.0.0"), 2)));
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

TEST_F(MeetTest, RanksMeetAtThePlaceThatTheEnvironmentGives) {
  const std::string port = free_port();
  std::vector<Participant> attendants;
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
  std::vector<Participant> open_mpi;
  std::vector<Participant> mpich;
  std::vector<Participant> torchrun;
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

TEST_F(MeetTest, AGroupOfOneOpensNoFileAndNoPort) {
  const std::vector<Participant> lonely = {
      {},
      {{.url = "file://" + path_, .rank = 0, .world_size = 1}},
      {{.url = "tcp://192.0.2.1:1", .rank = 0, .world_size = 1}}};
  std::set<std::string> jobs;
  const Outcome first = attend(lonely[0], soon());  // held, and must not block the next ones
  for (const Outcome& outcome : meet_all(lonely)) {
    ASSERT_TRUE(outcome.meeting) << outcome.error->what();
    EXPECT_EQ(outcome.meeting->identity.world_size, 1);
    jobs.insert(outcome.meeting->job);
    outcome.meeting->store->set("key", "value");
  }
  EXPECT_EQ(jobs.size(), lonely.size());
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(MeetTest, JobsAtDifferentPlacesHaveDifferentNames) {
  std::vector<Outcome> a = meet_all(ranks_of(free_url(), 2));
  std::vector<Outcome> b = meet_all(ranks_of(free_url(), 2));
  ASSERT_TRUE(a[0].meeting && b[0].meeting);
  EXPECT_NE(a[0].meeting->job, b[0].meeting->job);
  leave_all(std::move(a));
  leave_all(std::move(b));
}

TEST_F(MeetTest, RanksMayComeInAnyOrder) {
  for (const std::string& url : {free_url(), "file://" + path_}) {
    const std::vector<Participant> attendants = ranks_of(url, 2);
    auto late = std::async(std::launch::async, [&] { return attend(attendants[1], soon()); });
    EXPECT_EQ(late.wait_for(milliseconds(50)), std::future_status::timeout);
    std::vector<Outcome> outcomes;
    outcomes.push_back(attend(attendants[0], soon()));
    outcomes.push_back(late.get());
    expect_met(std::move(outcomes));
  }
}

TEST_F(MeetTest, LocalRanksAreCountedOnEachHost) {
  constexpr int kNoNamespaces = 42;
  const std::vector<Participant> attendants = ranks_of("file://" + path_, 3);
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

/// An address of this machine that other machines can reach, or nothing.
std::optional<std::string> real_address() {
  for (const Interface& interface : own_interfaces()) {
    const std::string text = interface.address.to_string();
    if (!interface.address.is_loopback()) return text.substr(0, text.rfind(':'));
  }
  return std::nullopt;
}

/// A link-local address of this machine with its interface: "fe80::1%eth0".
std::optional<std::string> own_link_local_host() {
  for (const Interface& interface : own_interfaces(LinkLocal::kWith)) {
    const std::string text = interface.address.to_string();  // "[fe80::1%eth0]:0"
    if (text.starts_with("[fe80:")) return text.substr(1, text.rfind(']') - 1);
  }
  return std::nullopt;
}

TEST_F(MeetTest, RanksMeetAtALinkLocalAddressWithItsInterface) {
  const auto host = own_link_local_host();
  if (!host) GTEST_SKIP() << "this machine has no link-local IPv6 address";
  std::vector<Participant> attendants = ranks_of(free_url("[" + *host + "]"), 2);
  for (Participant& participant : attendants) participant.config.secret = Secret("hush");
  expect_met(meet_all(attendants));
}

TEST_F(MeetTest, ALinkLocalAddressWithoutItsInterfaceIsAUsageError) {
  for (const Outcome& outcome : meet_all(ranks_of("tcp://[fe80::1]:29500", 2))) {
    ASSERT_TRUE(outcome.error);
    EXPECT_EQ(outcome.error->kind(), ErrorKind::kUsage);
    EXPECT_THAT(outcome.error->what(), HasSubstr("lacks its interface"));
    EXPECT_THAT(outcome.error->what(), HasSubstr("fe80::1%eth0"));
  }
}

TEST_F(MeetTest, AnAddressThatOtherMachinesCanReachNeedsASecret) {
  const auto address = real_address();
  if (!address) GTEST_SKIP() << "this machine has loopback only";
  const auto outcomes = meet_all(ranks_of(free_url(*address), 2));
  expect_all(outcomes, ErrorKind::kUsage, AllOf(HasSubstr("PEAL_SECRET"), HasSubstr(*address)));
}

TEST_F(MeetTest, AWaivedSecretIsReportedAsAWarning) {
  const auto address = real_address();
  if (!address) GTEST_SKIP() << "this machine has loopback only";
  auto attendants = ranks_of(free_url(*address), 2);
  std::vector<std::string> warning(2);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    attendants[rank].config.secrecy = Secrecy::kWaived;
    attendants[rank].report = [&text = warning[rank]](std::string_view said) { text += said; };
  }
  auto outcomes = meet_all(attendants);
  for (const Outcome& outcome : outcomes) ASSERT_TRUE(outcome.meeting) << outcome.error->what();
  leave_all(std::move(outcomes));
  for (const std::string& text : warning) EXPECT_THAT(text, HasSubstr("without a secret"));
}

TEST_F(MeetTest, RanksWithoutASecretMakeOneForTheConnectionsBetweenThem) {
  auto outcomes = meet_all(ranks_of(free_url(), 3));
  for (const Outcome& outcome : outcomes) {
    ASSERT_TRUE(outcome.meeting) << outcome.error->what();
    EXPECT_GE(outcome.meeting->secret.text().size(), 64U);
    EXPECT_EQ(outcome.meeting->secret, outcomes[0].meeting->secret);
  }
  leave_all(std::move(outcomes));
}

TEST_F(MeetTest, AMasterNamedByLoopbackServesOtherHostsAtItsRealAddresses) {
  const auto address = real_address();
  if (!address) GTEST_SKIP() << "this machine has loopback only";
  const std::string port = free_port("0.0.0.0");
  const Variables two_hosts = {{"WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "1"}};
  std::vector<Participant> attendants(2);
  attendants[0] = {{.url = "tcp://localhost:" + port, .rank = {}, .world_size = {}}, two_hosts};
  attendants[1] = {{.url = "tcp://" + *address + ":" + port, .rank = {}, .world_size = {}},
                   two_hosts};
  for (Participant& participant : attendants) participant.config.secret = Secret("hush");
  attendants[0].variables["RANK"] = "0";
  attendants[1].variables["RANK"] = "1";
  std::vector<Outcome> outcomes = meet_all(attendants);
  for (const Outcome& outcome : outcomes) ASSERT_TRUE(outcome.meeting) << outcome.error->what();
  leave_all(std::move(outcomes));
}

}  // namespace
}  // namespace peal::rendezvous
