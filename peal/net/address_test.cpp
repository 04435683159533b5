#include "peal/net/address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"

namespace peal::net {
namespace {

using testing::HasSubstr;

TEST(AddressTest, ToStringReturnsTheParsedText) {
  for (const char* text : {"127.0.0.1:4711",
                           "10.1.2.3:0",
                           "255.255.255.255:65535",
                           "[::1]:4711",
                           "[2001:db8::42]:80",
                           "unix:@peal-test",
                           "unix:/tmp/peal-test"}) {
    EXPECT_EQ(Address::parse(text).to_string(), text);
    EXPECT_EQ(Address::parse(text), Address::parse(text));
  }
}

TEST(AddressTest, ParseRejectsAnythingElseAndQuotesTheText) {
  const std::string too_long = "unix:@" + std::string(107, 'x');
  const std::vector<std::string> wrong = {"localhost:80",
                                          "127.0.0.1",
                                          "127.0.0.1:",
                                          "127.0.0.1:65536",
                                          "127.0.0.1:-1",
                                          "127.1:80",
                                          "::1:80",
                                          "[::1]",
                                          "[::g]:80",
                                          "unix:",
                                          "unix:@",
                                          "",
                                          too_long};
  for (const std::string& text : wrong) {
    try {
      Address::parse(text);
      ADD_FAILURE() << text << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      EXPECT_THAT(error.what(), HasSubstr(text.substr(text.find('@') + 1)));
    }
  }
}

TEST(AddressTest, ParseRejectsATextWithAZeroByte) {
  using namespace std::string_view_literals;
  EXPECT_THROW(Address::parse("127.0.0.1\0:80"sv), Error);
  EXPECT_THROW(Address::parse("unix:/path\0rest"sv), Error);
  EXPECT_THROW(Address::parse("unix:@name\0rest"sv), Error);
}

TEST(AddressTest, PortsCanBeReadAndReplaced) {
  EXPECT_EQ(Address::parse("127.0.0.1:4711").port(), 4711);
  EXPECT_EQ(Address::parse("[::1]:4711").port(), 4711);
  EXPECT_EQ(Address::parse("127.0.0.1:1").with_port(2), Address::parse("127.0.0.1:2"));
  EXPECT_EQ(Address::parse("[::1]:1").with_port(2), Address::parse("[::1]:2"));
  const Address unix_address = Address::parse("unix:@name");
  EXPECT_EQ(unix_address.port(), 0);
  EXPECT_EQ(unix_address.with_port(2), unix_address);
}

TEST(AddressTest, LoopbackAddressesAreThoseThatNoOtherMachineReaches) {
  for (const char* text : {"127.0.0.1:1", "127.8.9.10:1", "[::1]:1", "unix:@name"}) {
    EXPECT_TRUE(Address::parse(text).is_loopback()) << text;
  }
  for (const char* text : {"10.0.0.1:1", "0.0.0.0:1", "[::]:1", "[2001:db8::1]:1"}) {
    EXPECT_FALSE(Address::parse(text).is_loopback()) << text;
  }
}

TEST(AddressTest, AddressesDifferInHostPortAndFamily) {
  const Address address = Address::parse("127.0.0.1:4711");
  EXPECT_FALSE(address == Address::parse("127.0.0.2:4711"));
  EXPECT_FALSE(address == Address::parse("127.0.0.1:4712"));
  EXPECT_FALSE(address == Address::parse("[::1]:4711"));
  EXPECT_FALSE(Address::parse("unix:@a") == Address::parse("unix:@ab"));
  EXPECT_EQ(Address().to_string(), "nowhere");
}

}  // namespace
}  // namespace peal::net
