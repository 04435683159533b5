// How ranks connect, and which error each rank gets if they do not. transport_conformance_test.cpp
// tests the transports afterwards.
#include "peal/transport/link/connect.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/base/testing/error_of.h"
#include "peal/base/testing/idle_child.h"
#include "peal/base/testing/in_child.h"
#include "peal/base/testing/sanitized.h"
#include "peal/net/socket.h"
#include "peal/system/cpus.h"
#include "peal/transport/testing/meeting.h"
#include "peal/transport/window/window.h"

namespace peal::transport {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using testing::bytes_of;
using testing::connect_all;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using testing::Meeting;
using testing::options_of;
using testing::options_of_all;
using testing::Outcome;
using testing::receive_all;
using testing::send_all;
using ::testing::StartsWith;
using testing::test_deadline;
using testing::Transports;

void expect_talks(Transport& from, Rank self, Transport& to, Rank peer) {
  send_all(from.data(), peer, bytes_of("hello"), test_deadline());
  EXPECT_EQ(receive_all(to.data(), self, 5, test_deadline()), bytes_of("hello"));
}

TEST(ConnectTest, FaultsBreakTheLinksThatTheyName) {
  auto options = options_of_all(3, TransportChoice::kTcp);
  for (ConnectOptions& each : options) {
    each.faults = parse_faults("link 0>1 data corrupt after 4; link 1-2 mail cut after 0").links;
  }
  const auto ranks = Meeting(options).connect();
  for (const Outcome& rank : ranks) ASSERT_FALSE(rank.error) << rank.error->what();
  auto damaged = bytes_of("hello");
  damaged[4] ^= std::byte{0xff};
  send_all(ranks[0].transport->data(), 1, bytes_of("hello"), test_deadline());
  EXPECT_EQ(receive_all(ranks[1].transport->data(), 0, 5, test_deadline()), damaged);
  expect_talks(*ranks[1].transport, 1, *ranks[0].transport, 0);
  expect_talks(*ranks[1].transport, 1, *ranks[2].transport, 2);
  const Interest interest{1, Readiness::kReadable};
  std::array<std::byte, 1> byte{};
  Transfer transfer;
  for (const Deadline end = test_deadline(); !transfer.closed && !end.passed();) {
    ranks[2].transport->mail().wait({&interest, 1}, end);
    transfer = ranks[2].transport->mail().try_receive(1, byte);
  }
  EXPECT_TRUE(transfer.closed);
}

TEST(ConnectTest, AFaultBetweenRanksThatShareMemoryIsRejectedByAllRanks) {
  auto options = options_of_all(3);
  for (ConnectOptions& each : options) each.faults = parse_faults("link 0-1 delay 1 ms").links;
  for (const Outcome& rank : Meeting(options).connect()) {
    ASSERT_TRUE(rank.error);
    EXPECT_EQ(rank.error->kind(), ErrorKind::kUsage);
    EXPECT_THAT(
        rank.error->what(),
        ::testing::AllOf(HasSubstr("\"link 0-1 delay 1 ms\""), HasSubstr("PEAL_TRANSPORT=tcp")));
  }
}

TEST(ConnectTest, ARankListensOnlyAtTheAddressesOfItsContact) {
  const auto shm = open(options_of(0, 2, TransportChoice::kShm));
  ASSERT_EQ(shm->contact().addresses.size(), 1u);
  EXPECT_TRUE(shm->contact().addresses[0].is_unix());

  const auto tcp = open(options_of(0, 2, TransportChoice::kTcp));
  ASSERT_EQ(tcp->contact().addresses.size(), 1u);
  EXPECT_THAT(tcp->contact().addresses[0].to_string(), HasSubstr("127.0.0.1:"));
  EXPECT_NE(tcp->contact().addresses[0].port(), 0);

  EXPECT_EQ(open(options_of(0, 2))->contact().addresses.size(), 2u);
}

TEST(ConnectTest, AnAddressOfAnotherMachineIsRejected) {
  ConnectOptions options = options_of(0, 2);
  options.listen_on = {net::Address::parse("192.0.2.1:0")};
  try {
    open(options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kResource);
    EXPECT_THAT(error.what(), HasSubstr("192.0.2.1"));
  }
}

TEST(ConnectTest, ARankAloneHasAWindow) {
  for (const auto choice : {TransportChoice::kAuto, TransportChoice::kShm, TransportChoice::kTcp}) {
    auto outcomes = Meeting(options_of_all(1, choice)).connect();
    ASSERT_FALSE(outcomes[0].error);
    Window* const window = outcomes[0].transport->window();
    ASSERT_NE(window, nullptr);
    EXPECT_EQ(window->ranks(), 1);
    EXPECT_NE(window->allocate(5_MiB), nullptr);
  }
}

TEST(ConnectTest, TheWindowSpansTheWholeHostOrIsMissing) {
  EXPECT_EQ(connect_all(3, {})[1]->window()->ranks(), 3);
  EXPECT_EQ(connect_all(3, {.choice = TransportChoice::kTcp})[1]->window(), nullptr);
  EXPECT_EQ(connect_all(3, {}, {"a", "a", "b"})[0]->window(), nullptr);
}

TEST(ConnectTest, EachPeerIsReachedInItsOwnWay) {
  const Transports transports = connect_all(3, {}, {"a", "a", "b"});
  EXPECT_THAT(transports[0]->describe(1), AllOf(HasSubstr("pid "), HasSubstr("over shm")));
  EXPECT_THAT(transports[0]->describe(2), HasSubstr("over tcp 127.0.0.1:"));
  EXPECT_THAT(transports[2]->describe(0), HasSubstr("over tcp 127.0.0.1:"));
  EXPECT_EQ(transports[0]->ranks_on_host(), 2);
  EXPECT_EQ(transports[2]->ranks_on_host(), 1);
  EXPECT_EQ(transports[0]->cpus_on_host(), cpus_at_once(std::array{std::int64_t{::getpid()}}));
}

TEST(ConnectTest, RanksOfOneMachineShareItsCoresThoughTheirNetworksDiffer) {
  const Transports transports = connect_all(3, {}, {"m/0/1", "m/0/2", "n/0/1"});
  EXPECT_THAT(transports[0]->describe(1), HasSubstr("over tcp"));
  EXPECT_EQ(transports[0]->ranks_on_host(), 2);
  EXPECT_EQ(transports[2]->ranks_on_host(), 1);
}

TEST(ConnectTest, TheRequestedCongestionControlIsInUse) {
  const Transports transports =
      connect_all(2, {.choice = TransportChoice::kTcp, .congestion = "reno"});
  EXPECT_THAT(transports[0]->describe(1), HasSubstr("by reno"));
  EXPECT_THAT(transports[1]->describe(0), HasSubstr("by reno"));
}

TEST(ConnectTest, AnUnknownCongestionControlIsRejectedBeforeConnecting) {
  const Error error = error_of([] {
    open({.rank = 0, .size = 2, .choice = TransportChoice::kTcp, .congestion = "pigeons"});
  });
  EXPECT_EQ(error.kind(), ErrorKind::kUsage);
  EXPECT_THAT(error.what(),
              AllOf(HasSubstr("PEAL_CONGESTION"),
                    HasSubstr("pigeons"),
                    HasSubstr("the system has"),
                    HasSubstr("reno")));
}

TEST(ConnectTest, ManyRanksMeet) {
  for (const auto choice : {TransportChoice::kShm, TransportChoice::kTcp}) {
    const Transports transports = connect_all(9, {.choice = choice});
    for (Rank rank = 1; rank < 9; ++rank) expect_talks(*transports[0], 0, *transports[rank], rank);
  }
}

TEST(ConnectTest, GroupsOfTheSameRanksDoNotMix) {
  const Transports world = connect_all(2, {.group = "world"});
  const Transports other = connect_all(2, {.group = "world/1"});
  send_all(world[0]->data(), 1, bytes_of("world"), test_deadline());
  send_all(other[0]->data(), 1, bytes_of("other"), test_deadline());
  EXPECT_EQ(receive_all(other[1]->data(), 0, 5, test_deadline()), bytes_of("other"));
  EXPECT_EQ(receive_all(world[1]->data(), 0, 5, test_deadline()), bytes_of("world"));
}

TEST(ConnectTest, AllRanksSoonNameARankThatEndedBefore) {
  for (const auto choice : {TransportChoice::kShm, TransportChoice::kTcp}) {
    for (const auto& [ranks, dead] : {std::pair{3, 0}, {3, 1}, {3, 2}, {9, 0}, {9, 8}, {24, 22}}) {
      Meeting meeting(options_of_all(ranks, choice));
      meeting.pending(dead).reset();
      const auto outcomes = meeting.connect();
      for (Rank rank = 0; rank < ranks; ++rank) {
        if (rank == dead) continue;
        const Outcome& outcome = outcomes[static_cast<std::size_t>(rank)];
        ASSERT_TRUE(outcome.error) << rank << " of " << ranks << " with " << dead << " dead";
        EXPECT_EQ(outcome.error->kind(), ErrorKind::kPeerLost);
        // The text may also name ranks that failed because of the dead one.
        EXPECT_THAT(outcome.error->what(),
                    ContainsRegex(fmt::format(R"(rank {0} \(pid|(,| and) {0}(,|$))", dead)));
        EXPECT_LT(outcome.took, testing::kHang);
      }
    }
  }
}

TEST(ConnectTest, ARankThatDoesNotConnectIsNamedAtTheDeadline) {
  constexpr milliseconds kTimeout(800);  // more than one attempt
  for (const Rank late : {0, 1}) {
    Meeting meeting(options_of_all(2));
    const std::unique_ptr<PendingTransport> silent = std::move(meeting.pending(late));
    const auto outcomes = meeting.connect(kTimeout);
    const Outcome& outcome = outcomes[static_cast<std::size_t>(1 - late)];
    ASSERT_TRUE(outcome.error);
    EXPECT_EQ(outcome.error->kind(), ErrorKind::kTimeout);
    EXPECT_THAT(outcome.error->what(), HasSubstr("rank " + std::to_string(late) + " (pid"));
    EXPECT_GE(outcome.took, kTimeout);
    EXPECT_LT(outcome.took, kTimeout + testing::kHang);
  }
}

TEST(ConnectTest, OfSeveralAddressesTheOneThatConnectsIsUsed) {
  const net::Address vacant = [] {
    const Fd listener = net::listen_on(net::Address::parse("127.0.0.1:0"));
    return net::local_address(listener.get());
  }();
  const Fd silent = net::listen_on(net::Address::parse("127.0.0.1:0"));  // never answers
  Meeting meeting(options_of_all(2, TransportChoice::kTcp));
  auto& addresses = meeting.contact(0).addresses;
  addresses.insert(addresses.begin(), {vacant, net::local_address(silent.get())});
  const auto outcomes = meeting.connect();
  ASSERT_FALSE(outcomes[0].error) << outcomes[0].error->what();
  ASSERT_FALSE(outcomes[1].error) << outcomes[1].error->what();
  expect_talks(*outcomes[0].transport, 0, *outcomes[1].transport, 1);
}

TEST(ConnectTest, AnAddressWithAnotherRankIsNotUsed) {
  Meeting meeting(options_of_all(3, TransportChoice::kTcp));
  auto& addresses = meeting.contact(1).addresses;
  addresses.insert(addresses.begin(), meeting.contact(0).addresses[0]);
  const auto outcomes = meeting.connect();
  for (const Outcome& outcome : outcomes) ASSERT_FALSE(outcome.error) << outcome.error->what();
  expect_talks(*outcomes[1].transport, 1, *outcomes[2].transport, 2);
  expect_talks(*outcomes[0].transport, 0, *outcomes[2].transport, 2);
}

TEST(ConnectTest, TheLimitOfOpenFilesIsRaisedAsFarAsAllowed) {
  EXPECT_TRUE(holds_in_child([] {
    rlimit limit{100, 1000};
    ::setrlimit(RLIMIT_NOFILE, &limit);
    open(options_of(0, 100));
    ::getrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur > 500 && limit.rlim_cur <= 1000;
  }));
  EXPECT_TRUE(holds_in_child([] {
    const rlimit limit{100, 1000};
    ::setrlimit(RLIMIT_NOFILE, &limit);
    try {
      open(options_of(0, 1000));
    } catch (const Error& error) {
      const std::string text = error.what();
      return error.kind() == ErrorKind::kResource && text.find("1000 ranks") != std::string::npos &&
             text.find("ulimit") != std::string::npos;
    }
    return false;
  }));
}

TEST(ConnectTest, SharedMemoryAcrossHostsIsRejectedWithBothNames) {
  Meeting meeting(options_of_all(2, TransportChoice::kShm));
  meeting.contact(1).host_id = "elsewhere";
  for (const Outcome& outcome : meeting.connect()) {
    ASSERT_TRUE(outcome.error);
    EXPECT_EQ(outcome.error->kind(), ErrorKind::kUnsupported);
    EXPECT_THAT(outcome.error->what(),
                AllOf(HasSubstr("rank 0"), HasSubstr("rank 1"), HasSubstr("PEAL_TRANSPORT")));
  }
}

TEST(ConnectTest, ARankThatListensNowhereIsNamed) {
  auto options = options_of_all(2, TransportChoice::kTcp);
  options[0].listen_on.clear();
  const auto outcomes = Meeting(options).connect(seconds(5));
  ASSERT_TRUE(outcomes[1].error);
  EXPECT_EQ(outcomes[1].error->kind(), ErrorKind::kUsage);
  EXPECT_THAT(outcomes[1].error->what(), AllOf(HasSubstr("rank 0"), HasSubstr("PEAL_INTERFACE")));
}

TEST(ConnectTest, RanksWithDifferentTransportsGetAnErrorThatNamesThem) {
  auto options = options_of_all(4, TransportChoice::kShm);
  options[1].choice = TransportChoice::kTcp;
  for (const TransportChoice fourth : {TransportChoice::kShm, TransportChoice::kAuto}) {
    options[3].choice = fourth;
    for (const Outcome& outcome : Meeting(options).connect()) {
      ASSERT_TRUE(outcome.error);
      EXPECT_EQ(outcome.error->kind(), ErrorKind::kMismatch);
      EXPECT_THAT(outcome.error->what(),
                  AllOf(HasSubstr("different transports"),
                        HasSubstr(fourth == TransportChoice::kShm
                                      ? ": shm on rank 0, 2, 3; tcp on rank 1;"
                                      : ": auto on rank 3; shm on rank 0, 2; tcp on rank 1;"),
                        HasSubstr("PEAL_TRANSPORT")));
    }
  }
}

TEST(ConnectTest, ARankThatConnectsInAnUnexpectedWayIsRejected) {
  Meeting meeting(options_of_all(2));
  std::vector<Contact> apart = {meeting.contact(0), meeting.contact(1)};
  apart[1].host_id = "elsewhere";  // rank 1 assumes this; rank 0 expects rank 1 in shared memory
  auto together = std::async(std::launch::async, [&] {
    try {
      meeting.pending(0)->connect({{meeting.contact(0), meeting.contact(1)}}, test_deadline());
    } catch (const Error& error) {
      return error;
    }
    return Error(ErrorKind::kBug, "connected");
  });
  try {
    meeting.pending(1)->connect(apart, test_deadline());
    ADD_FAILURE() << "connected";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kMismatch);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("rank 0"), HasSubstr("PEAL_TRANSPORT")));
  }
  meeting.pending(1).reset();
  EXPECT_EQ(together.get().kind(), ErrorKind::kPeerLost);
}

TEST(ConnectTest, ATimeoutNamesTheStoppedRankAtTheEndOfAChainOfWaits) {
  const IdleChild stopped;
  stopped.signal_and_wait(SIGSTOP, WSTOPPED);
  for (const auto choice : {TransportChoice::kShm, TransportChoice::kTcp}) {
    // Rank 0 has accepted rank 2, and never connects to rank 1.
    Meeting meeting(options_of_all(3, choice));
    meeting.contact(0).pid = stopped.pid();
    const std::vector<Contact> all = {meeting.contact(0), meeting.contact(1), meeting.contact(2)};
    const auto not_accepting = open(options_of(0, 3, choice));
    std::vector<Contact> of_rank_1 = all;
    of_rank_1[0].addresses = not_accepting->contact().addresses;
    const Deadline deadline = Deadline::after(seconds(kSanitized ? 5 : 2));
    const auto outcomes = testing::run_ranks(3, [&](Rank rank) {
      return error_of(
          [&] { meeting.pending(rank)->connect(rank == 1 ? of_rank_1 : all, deadline); });
    });
    EXPECT_THAT(outcomes[1].what(), HasSubstr("cannot reach rank 0"));
    EXPECT_THAT(outcomes[2].what(), HasSubstr("cannot reach rank 1"));
    for (const Rank rank : {1, 2}) {
      const Error& error = outcomes[static_cast<std::size_t>(rank)];
      EXPECT_EQ(error.kind(), ErrorKind::kTimeout);
      EXPECT_THAT(std::string(error.message()),
                  StartsWith("rank 0 (pid " + std::to_string(stopped.pid()) + " on "));
      EXPECT_THAT(error.what(), HasSubstr("is stopped (by a signal"));
    }
  }
}

TEST(ConnectTest, RanksWithDifferentStagesGetAnErrorThatNamesTheSetting) {
  for (const int size : {2, 3, 5}) {
    auto options = options_of_all(size);
    options[1].stage = 1_MiB;
    for (const Outcome& outcome : Meeting(options).connect()) {
      ASSERT_TRUE(outcome.error);
      EXPECT_EQ(outcome.error->kind(), ErrorKind::kMismatch) << outcome.error->what();
      EXPECT_THAT(outcome.error->what(), AllOf(HasSubstr("rank"), HasSubstr("PEAL_STAGE")));
    }
  }
}

TEST(ConnectTest, ContactsOfAnotherGroupSizeAreRejected) {
  const auto pending = open(options_of(0, 2));
  EXPECT_THROW(pending->connect({}, test_deadline()), Error);
}

}  // namespace
}  // namespace peal::transport
