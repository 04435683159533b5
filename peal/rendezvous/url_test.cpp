#include "peal/rendezvous/url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"

namespace peal::rendezvous {
namespace {

using ::testing::HasSubstr;

TEST(UrlTest, ParseReadsEnvTcpAndFileUrls) {
  EXPECT_EQ(parse_url("env://"), (Url{EnvironmentUrl{}}));
  EXPECT_EQ(parse_url("tcp://10.0.0.1:29500"), (Url{TcpUrl{"10.0.0.1", 29500}}));
  EXPECT_EQ(parse_url("tcp://node-7.cluster:1"), (Url{TcpUrl{"node-7.cluster", 1}}));
  EXPECT_EQ(parse_url("tcp://[::1]:65535"), (Url{TcpUrl{"::1", 65535}}));
  EXPECT_EQ(parse_url("file:///tmp/a:b"), (Url{FileUrl{"/tmp/a:b"}}));
}

TEST(UrlTest, TheQueryGivesRankAndWorldSize) {
  EXPECT_EQ(parse_url("tcp://h:1?rank=3&world_size=4"), (Url{TcpUrl{"h", 1}, 3, 4}));
  EXPECT_EQ(parse_url("file:///f?world_size=4"), (Url{FileUrl{"/f"}, std::nullopt, 4}));
  EXPECT_EQ(parse_url("env://?rank=0"), (Url{EnvironmentUrl{}, 0}));
}

TEST(UrlTest, TheErrorQuotesAWrongUrlAndNamesTheForms) {
  for (const char* text : {"",
                           "localhost:29500",
                           "udp://h:1",
                           "env://h",
                           "tcp://h",
                           "tcp://:1",
                           "tcp://h:0",
                           "tcp://h:65536",
                           "tcp://h:x",
                           "tcp://::1:80",
                           "file://relative",
                           "file://",
                           "tcp://h:1?rank",
                           "tcp://h:1?rank=",
                           "tcp://h:1?rank=x",
                           "tcp://h:1?size=2",
                           "tcp://h:1?"}) {
    try {
      parse_url(text);
      ADD_FAILURE() << text << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      EXPECT_THAT(error.what(), HasSubstr("\"" + std::string(text) + "\""));
      EXPECT_THAT(error.what(), HasSubstr("tcp://host:port"));
    }
  }
}

}  // namespace
}  // namespace peal::rendezvous
