#include "peal/rendezvous/nodelist.h"

#include <gtest/gtest.h>

#include "peal/base/error.h"

namespace peal::rendezvous {
namespace {

TEST(NodelistTest, FirstHostReturnsTheWholeName) {
  EXPECT_EQ(first_host("node7"), "node7");
  EXPECT_EQ(first_host("node7,node8"), "node7");
  EXPECT_EQ(first_host("node[003-010,12],gpu7"), "node003");
  EXPECT_EQ(first_host("node[12,003-010]"), "node12");
  EXPECT_EQ(first_host("gpu-[7]"), "gpu-7");
  EXPECT_EQ(first_host("rack[1-2]node[3-4]"), "rack1node3");
  EXPECT_EQ(first_host("node[1-2].cluster"), "node1.cluster");
}

TEST(NodelistTest, AllHostsAreInTheOrderOfTheList) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(all_hosts("node7"), Names({"node7"}));
  EXPECT_EQ(all_hosts("node[008-010,12],gpu7"),
            Names({"node008", "node009", "node010", "node12", "gpu7"}));
  EXPECT_EQ(all_hosts("r[1-2]n[3-4].x"), Names({"r1n3.x", "r1n4.x", "r2n3.x", "r2n4.x"}));
  EXPECT_THROW(all_hosts("node[1-999999]"), Error);
  EXPECT_THROW(all_hosts("node[1-2"), Error);
  EXPECT_THROW(all_hosts("node[2-1]"), Error);
  EXPECT_THROW(all_hosts("node1,"), Error);
}

TEST(NodelistTest, FirstHostRejectsMalformedLists) {
  for (const char* text : {"", ",node1", "node[", "node[]", "node[-3]", "node[1-2"}) {
    EXPECT_THROW(first_host(text), Error) << text;
  }
}

TEST(NodelistTest, TasksOnNodeFindsTheNumberByTheNodesIndex) {
  EXPECT_EQ(tasks_on_node("4", 0), 4);
  EXPECT_EQ(tasks_on_node("4(x2),2", 0), 4);
  EXPECT_EQ(tasks_on_node("4(x2),2", 1), 4);
  EXPECT_EQ(tasks_on_node("4(x2),2", 2), 2);
  EXPECT_EQ(tasks_on_node("4(x2),2", 3), std::nullopt);
  for (const char* text : {"", "x", "4(x", "4(x)", "4(xy)", "4(x0)"}) {
    EXPECT_EQ(tasks_on_node(text, 0), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace peal::rendezvous
