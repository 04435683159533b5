#include "peal/launch/own_host.h"

#include <vector>

#include <gtest/gtest.h>

#include "peal/base/error.h"

namespace peal::launch {
namespace {

bool is_own(std::string_view name) {
  const std::vector<net::Address> addresses = {net::Address::parse("10.1.2.3:0"),
                                               net::Address::parse("[2001:db8::7]:0")};
  return is_own_host(name, "box.example.org", addresses);
}

TEST(OwnHostTest, NamesAndAddressesOfThisMachineAreItsOwn) {
  for (const char* const name : {"localhost",
                                 "LocalHost",
                                 "127.0.0.1",
                                 "127.3.2.1",
                                 "::1",
                                 "box",
                                 "BOX.example.org",
                                 "10.1.2.3",
                                 "2001:db8::7",
                                 "2001:db8:0::7"}) {
    EXPECT_TRUE(is_own(name)) << name;
  }
}

TEST(OwnHostTest, OtherNamesAndAddressesAreNot) {
  for (const char* const name : {"box.example.com",
                                 "bo",
                                 "example.org",
                                 "10.1.2.4",
                                 "2001:db8::8",
                                 "localhost.example.org",
                                 "unix",
                                 ""}) {
    EXPECT_FALSE(is_own(name)) << name;
  }
}

TEST(OwnHostTest, LoopbackIsThisMachineAndAnAddressForDocumentationIsNot) {
  for (const char* const host : {"localhost", "127.0.0.1", "127.0.0.2", "::1"}) {
    EXPECT_TRUE(is_this_machine(host)) << host;
  }
  EXPECT_FALSE(is_this_machine("192.0.2.1"));
}

}  // namespace
}  // namespace peal::launch
