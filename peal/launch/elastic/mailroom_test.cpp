#include "peal/launch/elastic/mailroom.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/config/environment.h"

namespace peal::launch::elastic {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Mailroom mailroom(HostsAre hosts_are) {
  return Mailroom(
      config_from(fixed_environment({{"PEAL_SECRET", "hush hush hush hush"}})), "job", hosts_are);
}

TEST(MailroomTest, WithoutOtherMachinesItServesAtLoopbackOnly) {
  const Mailroom here = mailroom(HostsAre::kThisMachine);
  EXPECT_THAT(here.address(), StartsWith("127.0.0.1:"));
  EXPECT_EQ(here.addresses_for("10.0.0.1"), here.address());
}

TEST(MailroomTest, TheAddressThatTheOtherMachineKnowsComesFirst) {
  const Mailroom everywhere = mailroom(HostsAre::kAnyMachine);
  EXPECT_THAT(everywhere.addresses_for("127.0.0.1"), StartsWith(everywhere.address()));
  const std::string all = everywhere.addresses_for("");
  if (all == everywhere.address()) return;  // this machine has no network
  EXPECT_THAT(all, Not(HasSubstr(everywhere.address())));
  const std::string last = all.substr(all.rfind(',') + 1);
  std::string host = last.substr(0, last.rfind(':'));
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  EXPECT_THAT(everywhere.addresses_for(host), StartsWith(last));
}

}  // namespace
}  // namespace peal::launch::elastic
