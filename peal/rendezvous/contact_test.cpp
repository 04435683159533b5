#include "peal/rendezvous/contact.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/base/testing/error_of.h"
#include "peal/net/socket.h"
#include "peal/store/file_lock.h"
#include "peal/store/file_store.h"
#include "peal/store/memory_store.h"
#include "peal/store/tcp_store.h"
#include "peal/store/tcp_store_server.h"

namespace peal::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using transport::Contact;

Contact example(int i) {
  return {"boot/0/" + std::to_string(i),
          "node" + std::to_string(i),
          1000 + i,
          4026531836 + i,
          kAllTransportChoices[static_cast<std::size_t>(i) % 3],
          {net::Address::parse("10.0.0.1:" + std::to_string(4000 + i)),
           net::Address::parse("[2001:db8::1]:80"),
           net::Address::parse("unix:@peal")}};
}

TEST(ContactTest, DecodeRestoresAnEncodedContact) {
  EXPECT_EQ(decode(encode(example(3))), example(3));
  EXPECT_EQ(decode(encode(Contact{})), Contact{});
}

TEST(ContactTest, DecodeRejectsAnythingElse) {
  const std::string whole = encode(example(3));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THROW(decode(whole.substr(0, size)), Error) << size;
  }
  EXPECT_THROW(decode(whole + "x"), Error);
  std::string nowhere = whole;
  nowhere.replace(nowhere.find("10.0.0.1"), 8, "10.0.0.x");
  EXPECT_THROW(decode(nowhere), Error);
  std::string pigeon = encode(Contact{});
  pigeon[pigeon.size() - 3] = 3;
  EXPECT_THROW(decode(pigeon), Error);
  std::string future = whole;
  future[0] = 9;
  EXPECT_THROW(decode(future), Error);
  std::string crowd = encode(Contact{});
  crowd.replace(crowd.size() - 2, 2, "\xff\xff");
  EXPECT_THROW(decode(crowd), Error);
}

TEST(ContactTest, CollectReturnsContactsInTheOrderOfTheRanks) {
  const auto store = store::make_memory_store();
  const std::vector<Rank> ranks = {2, 0};
  auto collecting = std::async(
      std::launch::async, [&] { return collect(*store, ranks, Deadline::after(seconds(20))); });
  for (const Rank rank : {0, 1, 2}) publish(*store, rank, example(rank));
  EXPECT_EQ(collecting.get(), (std::vector{example(2), example(0)}));
}

TEST(ContactTest, CollectTimesOutAndNamesTheMissingRanks) {
  const auto store = store::make_memory_store();
  publish(*store, 1, example(1));
  try {
    collect(*store, std::vector<Rank>{0, 1, 2}, Deadline::after(milliseconds(10)));
    FAIL() << "collected";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kTimeout);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("2 of 3"), HasSubstr("rank 0, 2")));
  }
}

TEST(ContactTest, CollectReportsAStoreThatDoesNotAnswerAndCallsLookMeanwhile) {
  const std::string path = ::testing::TempDir() + "peal-contact-" + std::to_string(::getpid());
  const auto store = store::open_file_store(
      path, {.members = 1, .timeout = minutes(2)}, Deadline::after(seconds(20)));
  const Fd other(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(store::try_lock(other.get(), store::LockByte::kChange, store::LockKind::kAlone));
  bool looked = false;
  const TimePoint begin = Clock::now();
  const Error error = error_of([&] {
    collect(*store,
            std::vector<Rank>{0, 1},
            Deadline::after(seconds(3)),
            [&](std::span<const Rank> missing) { looked = missing.empty(); });
  });
  EXPECT_LT(Clock::now() - begin, minutes(1)) << "collect waited for the store's full timeout";
  store::unlock(other.get(), store::LockByte::kChange);
  EXPECT_EQ(error.kind(), ErrorKind::kTimeout);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("store in which the ranks met"), HasSubstr(path)));
  EXPECT_TRUE(looked);
}

TEST(ContactTest, CollectNamesARankThatEndsBeforeItPublishesAtOnceWhileOthersAreLate) {
  const net::ProofContext context{Secret("hush"), "job", "store"};
  std::vector<Fd> listeners;
  listeners.push_back(net::listen_on(net::Address::parse("127.0.0.1:0")));
  const store::TcpStoreServer server(std::move(listeners), context);
  const auto join = [&] {
    return store::connect_tcp_store(
        {server.address()}, context, seconds(20), Deadline::after(seconds(20)));
  };
  const auto own = join();
  auto other = join();
  publish(*own, 0, example(0));
  set_contact_will(*other, 1, "process 7 on b");
  auto collecting = std::async(std::launch::async, [&] {
    return error_of([&] {
      collect(*own, std::vector<Rank>{0, 1, 2}, Deadline::after(minutes(5)));
    });
  });
  other.reset();
  const Error error = collecting.get();
  EXPECT_EQ(error.kind(), ErrorKind::kPeerLost);
  EXPECT_THAT(error.what(), HasSubstr("rank 1 (process 7 on b) ended before"));
}

}  // namespace
}  // namespace peal::rendezvous
