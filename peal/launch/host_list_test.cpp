#include "peal/launch/host_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/testing/error_of.h"

namespace peal::launch {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(HostListTest, AListNamesHostsAndTheirSlots) {
  EXPECT_THAT(parse_host_list("h1:2,h2:2"), ElementsAre(HostSlots{"h1", 2}, HostSlots{"h2", 2}));
  EXPECT_THAT(parse_host_list("h1, 10.0.0.1:3"),
              ElementsAre(HostSlots{"h1", 1}, HostSlots{"10.0.0.1", 3}));
  EXPECT_THAT(parse_host_list("[::1]:2,[fe80::1%eth0]"),
              ElementsAre(HostSlots{"::1", 2}, HostSlots{"fe80::1%eth0", 1}));
}

TEST(HostListTest, AHostThatIsNamedTwiceHasTheSumOfItsSlots) {
  EXPECT_THAT(parse_host_list("a:2,b:1,a:3"), ElementsAre(HostSlots{"a", 5}, HostSlots{"b", 1}));
}

TEST(HostListTest, AWrongHostIsNamedWithTheRightForm) {
  for (const auto& [text, problem] : std::vector<std::pair<std::string, std::string>>{
           {"", "hosts are written as in h1:2,h2:2"},
           {"a:1,", "hosts are written as in"},
           {"a:", "the number of slots is from 1 to 1000000"},
           {"a:0", "\"a:0\": the number of slots"},
           {"a:-1", "the number of slots"},
           {"a:x", "the number of slots"},
           {"a:1000001", "the number of slots"},
           {"a:1000000,b:1", "\"b\": the hosts have more than 1000000 slots"},
           {"::1", "an IPv6 address needs brackets, as in [::1]:2"},
           {"[::1", "an IPv6 address is written as in"},
           {"[]:2", "an IPv6 address is written as in"},
           {"[::1]2", "an IPv6 address is written as in"},
           {"a b:2", "\"a b:2\": it is not the name of a host"},
           {"$(reboot):2", "it is not the name of a host"},
           {std::string(254, 'a'), "it is not the name of a host"},
       }) {
    EXPECT_THAT(usage_error_of([&given = text] { parse_host_list(given); }), HasSubstr(problem))
        << text;
  }
}

TEST(HostListTest, AFileMayHaveCommentsBlankLinesAndAllForms) {
  EXPECT_THAT(parse_hostfile("# the cluster\n\n"
                             "a slots=4   # with GPUs\n"
                             "  b:2\r\n"
                             "\tc\n"
                             "[::1] slots=3 max_slots=8\n"
                             "[::2]:2\n"
                             "a"),
              ElementsAre(HostSlots{"a", 5},
                          HostSlots{"b", 2},
                          HostSlots{"c", 1},
                          HostSlots{"::1", 3},
                          HostSlots{"::2", 2}));
}

TEST(HostListTest, AWrongLineOfAFileIsNamed) {
  for (const auto& [text, problem] : std::vector<std::pair<std::string, std::string>>{
           {"a\nb slots\n", "line 2, \"b slots\": a line has the form"},
           {"a slots=x", "line 1, \"a slots=x\": the number of slots"},
           {"a slots=2 b", "line 1, \"a slots=2 b\": a line has the form"},
           {"root@a", "set its user in ~/.ssh/config"},
           {"a:2 slots=2", "a line has the form host, host:2 or host slots=2"},
           {"\n\n::1 slots=2", "line 3, \"::1\": an IPv6 address needs brackets"},
           {"", "the file names no host"},
           {"# a:2\n\n", "the file names no host"},
       }) {
    EXPECT_THAT(usage_error_of([&given = text] { parse_hostfile(given); }), HasSubstr(problem))
        << text;
  }
}

TEST(HostListTest, ADiscoveryScriptMayPrintAllFormsOfAHostfile) {
  EXPECT_THAT(parse_discovered_hosts(
                  "a:2\nb\n c:1 \r\n\n# comment\nd:3 # why\n[::1]:4\n[::2]\nf slots=2", 8),
              ElementsAre(HostSlots{"a", 2},
                          HostSlots{"b", 8},
                          HostSlots{"c", 1},
                          HostSlots{"d", 3},
                          HostSlots{"::1", 4},
                          HostSlots{"::2", 8},
                          HostSlots{"f", 2}));
}

TEST(HostListTest, ADiscoveredHostMayHaveNoSlotsAndItsLastLineCounts) {
  EXPECT_THAT(parse_discovered_hosts("", 1), ElementsAre());
  EXPECT_THAT(parse_discovered_hosts("a:2\nb:0\na:3", 1),
              ElementsAre(HostSlots{"a", 3}, HostSlots{"b", 0}));
}

TEST(HostListTest, AWrongLineOfADiscoveryScriptIsNamed) {
  for (const char* const line : {"a:", "a:x", ":2", "a b", "a:-1", "a:2:x y", "[]:2 x", "::1"}) {
    EXPECT_THAT(usage_error_of([&] { parse_discovered_hosts(std::string("ok:1\n") + line, 1); }),
                HasSubstr("line 2, "))
        << line;
  }
  EXPECT_THAT(usage_error_of([] { parse_discovered_hosts("a:-1", 1); }),
              HasSubstr("the number of slots is from 0 to"));
}

}  // namespace
}  // namespace peal::launch
