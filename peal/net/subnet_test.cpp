#include "peal/net/subnet.h"

#include <gtest/gtest.h>

namespace peal::net {
namespace {

bool contains(std::string_view subnet, std::string_view address) {
  return Subnet::parse(subnet).value().contains(Address::parse(address));
}

TEST(SubnetTest, ASubnetContainsAddressesThatBeginWithItsBits) {
  EXPECT_TRUE(contains("10.0.0.0/8", "10.255.1.2:80"));
  EXPECT_FALSE(contains("10.0.0.0/8", "11.0.0.0:80"));
  EXPECT_TRUE(contains("192.168.4.0/22", "192.168.7.255:1"));
  EXPECT_FALSE(contains("192.168.4.0/22", "192.168.8.0:1"));
  EXPECT_TRUE(contains("10.1.2.3/31", "10.1.2.2:1"));
  EXPECT_TRUE(contains("2001:db8::/32", "[2001:db8:ffff::1]:80"));
  EXPECT_FALSE(contains("2001:db8::/33", "[2001:db8:ffff::1]:80"));
}

TEST(SubnetTest, ASubnetWithoutALengthIsOneAddress) {
  EXPECT_TRUE(contains("10.1.2.3", "10.1.2.3:80"));
  EXPECT_FALSE(contains("10.1.2.3", "10.1.2.4:80"));
  EXPECT_TRUE(contains("::1", "[::1]:80"));
}

TEST(SubnetTest, ALengthOfZeroContainsAllAddressesOfTheFamily) {
  EXPECT_TRUE(contains("0.0.0.0/0", "203.0.113.7:80"));
  EXPECT_FALSE(contains("0.0.0.0/0", "[::1]:80"));
  EXPECT_FALSE(contains("0.0.0.0/0", "unix:@name"));
  EXPECT_TRUE(contains("::/0", "[::1]:80"));
}

TEST(SubnetTest, ParseRejectsAnythingElse) {
  for (const char* text : {"",
                           "eth0",
                           "10.0.0.0/33",
                           "10.0.0.0/-1",
                           "10.0.0.0/",
                           "10.0.0/8",
                           "::/129",
                           "10.0.0.0/8x"}) {
    EXPECT_FALSE(Subnet::parse(text)) << text;
  }
}

}  // namespace
}  // namespace peal::net
