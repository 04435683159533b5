#include "peal/rendezvous/interfaces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"

namespace peal::rendezvous {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::vector<Interface> kMachine = {{"lo", net::Address::parse("127.0.0.1:0")},
                                         {"docker0", net::Address::parse("172.17.0.1:0")},
                                         {"eth0", net::Address::parse("10.0.0.5:0")},
                                         {"ib0", net::Address::parse("192.168.7.5:0")},
                                         {"lo", net::Address::parse("[::1]:0")},
                                         {"eth0", net::Address::parse("[2001:db8::5]:0")}};

std::vector<std::string> chosen(std::string_view filter, Reach reach) {
  std::vector<std::string> texts;
  for (const net::Address& address : choose_addresses(kMachine, filter, reach)) {
    texts.push_back(address.to_string());
  }
  return texts;
}

TEST(InterfacesTest, OtherHostsGetAllAddressesExceptLoopbackWithBridgesLast) {
  EXPECT_THAT(chosen("", Reach::kOtherHosts),
              ElementsAre("10.0.0.5:0", "192.168.7.5:0", "[2001:db8::5]:0", "172.17.0.1:0"));
}

TEST(InterfacesTest, AJobOnOneHostUsesLoopback) {
  EXPECT_THAT(chosen("", Reach::kThisHost), ElementsAre("127.0.0.1:0", "[::1]:0"));
}

TEST(InterfacesTest, NamesAndSubnetsKeepTheFiltersOrder) {
  EXPECT_THAT(chosen("ib0", Reach::kOtherHosts), ElementsAre("192.168.7.5:0"));
  EXPECT_THAT(chosen("ib0,eth0", Reach::kOtherHosts),
              ElementsAre("192.168.7.5:0", "10.0.0.5:0", "[2001:db8::5]:0"));
  EXPECT_THAT(chosen("10.0.0.0/8", Reach::kOtherHosts), ElementsAre("10.0.0.5:0"));
  EXPECT_THAT(chosen("2001:db8::/32", Reach::kOtherHosts), ElementsAre("[2001:db8::5]:0"));
  EXPECT_THAT(chosen("10.0.0.0/8,eth0", Reach::kOtherHosts),
              ElementsAre("10.0.0.5:0", "[2001:db8::5]:0"));
}

TEST(InterfacesTest, ANamedInterfaceIsChosenForEitherReach) {
  EXPECT_THAT(chosen("lo", Reach::kOtherHosts), ElementsAre("127.0.0.1:0", "[::1]:0"));
  EXPECT_THAT(chosen("eth0", Reach::kThisHost), ElementsAre("10.0.0.5:0", "[2001:db8::5]:0"));
}

TEST(InterfacesTest, ACaretExcludesAnEntry) {
  EXPECT_THAT(chosen("^docker0,^ib0", Reach::kOtherHosts),
              ElementsAre("10.0.0.5:0", "[2001:db8::5]:0"));
  EXPECT_THAT(chosen("^::/0", Reach::kThisHost), ElementsAre("127.0.0.1:0"));
  EXPECT_THAT(chosen("eth0,^10.0.0.5", Reach::kOtherHosts), ElementsAre("[2001:db8::5]:0"));
}

TEST(InterfacesTest, IfNoAddressIsLeftTheErrorListsTheMachinesAddresses) {
  for (const char* filter : {"eth7", "10.1.0.0/16", "eth0,^eth0", "eth"}) {
    try {
      choose_addresses(kMachine, filter, Reach::kOtherHosts);
      ADD_FAILURE() << filter << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      EXPECT_THAT(error.what(),
                  AllOf(HasSubstr(filter), HasSubstr("eth0 10.0.0.5"), HasSubstr("lo [::1]")));
    }
  }
  EXPECT_THROW(choose_addresses({}, "", Reach::kOtherHosts), Error);
}

TEST(InterfacesTest, ThisMachineHasLoopbackAndNoLinkLocalAddresses) {
  const std::vector<Interface> interfaces = own_interfaces();
  EXPECT_THAT(interfaces, Contains(Interface{"lo", net::Address::parse("127.0.0.1:0")}));
  for (const Interface& interface : interfaces) {
    EXPECT_FALSE(interface.address.to_string().starts_with("[fe80"));
  }
}

}  // namespace
}  // namespace peal::rendezvous
