#include "peal/transport/link/contact.h"

#include <unistd.h>

#include <gtest/gtest.h>

namespace peal::transport {
namespace {

TEST(ContactTest, TheOwnContactDescribesThisProcess) {
  const Contact contact = own_contact();
  EXPECT_EQ(contact.host_id, own_host_id());
  EXPECT_FALSE(contact.host_id.empty());
  EXPECT_FALSE(contact.hostname.empty());
  EXPECT_EQ(contact.pid, ::getpid());
  EXPECT_TRUE(contact.addresses.empty());
}

TEST(ContactTest, AProcessIsVisibleOnlyWhereItsPidIsValid) {
  const Contact own = own_contact();
  EXPECT_TRUE(is_visible(own, own));
  Contact other = own;
  other.pid_namespace += 1;
  EXPECT_FALSE(is_visible(other, own)) << "the pid of a container names another process here";
  other = own;
  other.host_id = "elsewhere/0/1";
  EXPECT_FALSE(is_visible(other, own));
  EXPECT_FALSE(is_visible({.host_id = own.host_id, .hostname = "", .addresses = {}},
                          {.host_id = own.host_id, .hostname = "", .addresses = {}}))
      << "nothing is known";
}

TEST(ContactTest, HostsOfOneMachineWithDifferentNetworksShareItsCores) {
  EXPECT_EQ(machine_of("boot/0/1"), machine_of("boot/1000/2"));
  EXPECT_NE(machine_of("boot/0/1"), machine_of("other/0/1"));
  EXPECT_EQ(machine_of("a name"), "a name");
  EXPECT_FALSE(machine_of(own_host_id()).empty());
}

}  // namespace
}  // namespace peal::transport
