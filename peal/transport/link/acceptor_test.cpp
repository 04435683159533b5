// Which connections the ranks of a group accept while they connect, and what they report of the
// others.
#include <unistd.h>

#include <future>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/base/serialize.h"
#include "peal/base/testing/in_child.h"
#include "peal/net/socket.h"
#include "peal/net/testing/prove.h"
#include "peal/transport/testing/meeting.h"

namespace peal::transport {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kHang;
using testing::Meeting;
using testing::options_of_all;
using testing::Outcome;
using testing::Reports;
using testing::test_deadline;

TEST(AcceptorTest, BothSidesSoonReportASecretThatDiffers) {
  Reports reports;
  auto options = options_of_all(2);
  options[0].report = reports.sink();
  options[0].secret = Secret("one");
  options[1].secret = Secret("another");
  const auto outcomes = Meeting(options).connect();
  ASSERT_TRUE(outcomes[1].error);
  EXPECT_EQ(outcomes[1].error->kind(), ErrorKind::kUsage);
  EXPECT_THAT(outcomes[1].error->what(), AllOf(HasSubstr("rank 0 (pid"), HasSubstr("secret")));
  ASSERT_TRUE(outcomes[0].error);
  EXPECT_EQ(outcomes[0].error->kind(), ErrorKind::kPeerLost);
  EXPECT_THAT(outcomes[0].error->what(), HasSubstr("rank 1 (pid"));
  EXPECT_LT(outcomes[0].took, kHang);
  EXPECT_THAT(reports.all(), ElementsAre(HasSubstr("does not know this job's secret")));
}

TEST(AcceptorTest, RanksWithDifferentProtectionGetAnErrorThatNamesBoth) {
  auto options = options_of_all(2, TransportChoice::kTcp);
  Reports reports;
  for (ConnectOptions& each : options) each.secret = Secret("a secret of the tests");
  options[0].report = reports.sink();
  options[1].protection = LinkProtection::kEncrypted;
  const auto outcomes = Meeting(options).connect();
  ASSERT_TRUE(outcomes[1].error);
  EXPECT_EQ(outcomes[1].error->kind(), ErrorKind::kUsage);
  EXPECT_THAT(outcomes[1].error->what(),
              AllOf(HasSubstr("PEAL_TLS=on"), HasSubstr("PEAL_TLS=off")));
  ASSERT_TRUE(outcomes[0].error);
  // it does not know which rank that was
  EXPECT_EQ(outcomes[0].error->kind(), ErrorKind::kPeerLost);
  EXPECT_THAT(reports.all(),
              ElementsAre(AllOf(HasSubstr("PEAL_TLS=on"), HasSubstr("PEAL_TLS=off"))));
}

TEST(AcceptorTest, TlsNeedsASecret) {
  auto options = options_of_all(2, TransportChoice::kTcp);
  for (ConnectOptions& each : options) each.protection = LinkProtection::kEncrypted;
  for (const Outcome& outcome : Meeting(options).connect()) {
    ASSERT_TRUE(outcome.error);
    EXPECT_EQ(outcome.error->kind(), ErrorKind::kUsage);
    EXPECT_THAT(outcome.error->what(), HasSubstr("PEAL_SECRET"));
  }
}

TEST(AcceptorTest, ACrowdOfStrangersIsReportedOnceAndDroppedSoon) {
  Reports reports;
  auto options = options_of_all(2);
  options[0].report = reports.sink();
  Meeting meeting(options);
  std::vector<Fd> strangers;
  for (const net::Address& address : meeting.contact(0).addresses) {
    strangers.push_back(net::connect_to(address, test_deadline()));
    net::write_all(strangers.back().get(), bytes_of("GET / HTTP/1.1\r\n"), test_deadline());
    for (int i = 0; i < 80; ++i) strangers.push_back(net::connect_to(address, test_deadline()));
  }
  const auto outcomes = meeting.connect();
  ASSERT_FALSE(outcomes[0].error) << outcomes[0].error->what();
  ASSERT_FALSE(outcomes[1].error) << outcomes[1].error->what();
  EXPECT_LT(outcomes[0].took, kHang);
  EXPECT_THAT(reports.all(),
              ElementsAre(AllOf(HasSubstr("dropped a connection to rank 0 of group world"),
                                HasSubstr("not a peal process"))))
      << "one report, whatever their number";
}

TEST(AcceptorTest, AStrangerThatStopsAfterTheProofIsReported) {
  Reports reports;
  auto options = options_of_all(2, TransportChoice::kTcp);
  options[0].report = reports.sink();
  for (ConnectOptions& each : options) {
    each.secret = Secret("a secret of the tests");
    each.protection = LinkProtection::kEncrypted;
  }
  Meeting meeting(options);
  const std::vector<Contact> contacts = {meeting.contact(0), meeting.contact(1)};
  auto first = std::async(std::launch::async,
                          [&] { return meeting.pending(0)->connect(contacts, test_deadline()); });
  // A process in between can forward a proof, but it cannot speak as the rank that made the proof.
  const Fd between = net::connect_to(contacts[0].addresses.at(0), test_deadline());
  net::prove(between.get(),
             net::Role::kConnector,
             {options[0].secret, "", "world/0", LinkProtection::kEncrypted},
             {.rank = 1},
             test_deadline());
  net::write_all(between.get(), bytes_of("no TLS of any version"), test_deadline());
  EXPECT_TRUE(reports.wait(test_deadline()));
  EXPECT_THAT(reports.all(), ElementsAre(HasSubstr("the TLS handshake with 127.0.0.1")));
  const auto second = meeting.pending(1)->connect(contacts, test_deadline());
  EXPECT_NE(first.get(), nullptr) << "the rank itself is still accepted";
}

TEST(AcceptorTest, ARankThatHangsUpBeforeItsProofIsNotReported) {
  Reports reports;
  auto options = options_of_all(2, TransportChoice::kTcp);
  options[0].report = reports.sink();
  Meeting meeting(options);
  for (int i = 0; i < 3; ++i) net::connect_to(meeting.contact(0).addresses.at(0), test_deadline());
  for (const Outcome& outcome : meeting.connect()) EXPECT_FALSE(outcome.error);
  EXPECT_THAT(reports.all(), IsEmpty());
}

/// What rank 0 reports after a process of another user has made `count` connections to it. The
/// ranks must still connect.
std::vector<std::string> reports_after_connections_of_another_user(int count) {
  Reports reports;
  auto options = options_of_all(2, TransportChoice::kShm);
  options[0].report = reports.sink();
  Meeting meeting(options);
  EXPECT_TRUE(holds_in_child([&] {
    if (::setuid(65534) != 0) return false;
    for (int i = 0; i < count; ++i) {
      net::connect_to(meeting.contact(0).addresses.at(0), test_deadline());
    }
    return true;
  }));
  for (const Outcome& outcome : meeting.connect()) EXPECT_FALSE(outcome.error);
  return reports.all();
}

/// If these connections were counted, 200 of them in a second would block new ones for the rest of
/// that second.
TEST(AcceptorTest, ManyProcessesOfAnotherUserDoNotKeepARankOut) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can act as another user";
  EXPECT_THAT(reports_after_connections_of_another_user(4000),
              Contains(HasSubstr("belongs to another user")));
}

TEST(AcceptorTest, AProcessOfAnotherUserIsRejected) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can act as another user";
  EXPECT_THAT(reports_after_connections_of_another_user(1),
              ElementsAre(HasSubstr("belongs to another user")));
}

}  // namespace
}  // namespace peal::transport
