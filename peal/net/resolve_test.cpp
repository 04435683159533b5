#include "peal/net/resolve.h"

#include <future>
#include <memory>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/testing/error_of.h"
#include "peal/base/testing/soon.h"

namespace peal::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(ResolveTest, NumbersAndNamesAreResolved) {
  EXPECT_THAT(resolve("127.0.0.1", 80, soon()), Contains(Address::parse("127.0.0.1:80")));
  EXPECT_THAT(resolve("::1", 80, soon()), Contains(Address::parse("[::1]:80")));
  const std::vector<Address> found = resolve("localhost", 80, soon());
  ASSERT_FALSE(found.empty());
  for (const Address& address : found) EXPECT_TRUE(address.is_loopback()) << address.to_string();
}

TEST(ResolveTest, TheErrorNamesAnUnknownHost) {
  const Error error = error_of([] { resolve("no-such-host.invalid", 80, soon()); });
  EXPECT_EQ(error.kind(), ErrorKind::kUsage);
  EXPECT_THAT(error.what(), HasSubstr("no-such-host.invalid"));
}

TEST(ResolveTest, TheServicesAddressesGetThePort) {
  const auto service = [](const std::string& host) {
    EXPECT_EQ(host, "belfry");
    return Answer{{Address::parse("10.0.0.1:0"), Address::parse("[2001:db8::1]:0")}, ""};
  };
  EXPECT_THAT(resolve("belfry", 80, soon(), service),
              ElementsAre(Address::parse("10.0.0.1:80"), Address::parse("[2001:db8::1]:80")));
}

TEST(ResolveTest, TheErrorSaysWhyTheServiceHasNoAnswer) {
  for (const NameService& service : {NameService([](const std::string&) {
                                       return Answer{{}, "no bells here"};
                                     }),
                                     NameService([](const std::string&) -> Answer {
                                       throw std::runtime_error("no bells here");
                                     })}) {
    const Error error = error_of([&] { resolve("belfry", 80, soon(), service); });
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("belfry"), HasSubstr("no bells here")));
  }
}

TEST(ResolveTest, AServiceThatDoesNotAnswerIsATimeoutThatNamesTheHost) {
  const auto answer = std::make_shared<std::promise<Answer>>();
  const auto gone = std::make_shared<std::promise<void>>();
  const TimePoint begin = Clock::now();
  const Error error = error_of([&] {
    resolve("belfry", 80, Deadline::after(milliseconds(50)), [answer, gone](const std::string&) {
      const Answer late = answer->get_future().get();
      gone->set_value();
      return late;
    });
  });
  EXPECT_EQ(error.kind(), ErrorKind::kTimeout);
  EXPECT_THAT(error.what(), HasSubstr("\"belfry\""));
  EXPECT_LT(Clock::now() - begin, seconds(30));

  answer->set_value({});  // a late answer does no harm
  EXPECT_EQ(gone->get_future().wait_for(seconds(60)), std::future_status::ready);
}

TEST(ResolveTest, ANumericHostDoesNotUseTheService) {
  const auto service = [](const std::string&) -> Answer { throw std::logic_error("was asked"); };
  EXPECT_THAT(resolve("10.0.0.1", 80, Deadline::after(milliseconds(0)), service),
              ElementsAre(Address::parse("10.0.0.1:80")));
}

}  // namespace
}  // namespace peal::net
