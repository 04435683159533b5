#include "peal/transport/link/hosts.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace peal::transport {
namespace {

using ::testing::ElementsAre;

/// One rank for each letter, on the host that the letter names.
std::vector<Contact> contacts_on(const std::string& hosts) {
  std::vector<Contact> contacts;
  for (const char host : hosts) contacts.emplace_back().host_id = host;
  return contacts;
}

TEST(HostsTest, HostsAreNumberedInOrderOfAppearance) {
  EXPECT_THAT(number_hosts(contacts_on("baab")), ElementsAre(0, 1, 1, 0));
}

TEST(HostsTest, RanksThatAlwaysUseTcpCountAsHosts) {
  auto contacts = contacts_on("aab");
  for (Contact& contact : contacts) contact.choice = TransportChoice::kTcp;
  EXPECT_THAT(number_hosts(contacts), ElementsAre(0, 1, 2));
}

TEST(HostsTest, HostsWithEquallyManyNeighboursAreEven) {
  EXPECT_EQ(ranks_per_host(contacts_on("aa")), 2U);
  EXPECT_EQ(ranks_per_host(contacts_on("aabb")), 2U);
  EXPECT_EQ(ranks_per_host(contacts_on("aaabbbccc")), 3U);
}

TEST(HostsTest, OnUnevenHostsEachRankCountsAlone) {
  for (const char* hosts : {"aab", "abab", "abba", "aabbaa", "aabbb", "ab"}) {
    EXPECT_EQ(ranks_per_host(contacts_on(hosts)), 1U) << hosts;
  }
}

}  // namespace
}  // namespace peal::transport
