#include "peal/rendezvous/verdict.h"

#include <future>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/testing/error_of.h"
#include "peal/net/socket.h"
#include "peal/store/memory_store.h"
#include "peal/store/tcp_store.h"
#include "peal/store/tcp_store_server.h"

namespace peal::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

const Error kKilled(ErrorKind::kPeerLost, "rank 2 ended");
const Error kLeft(ErrorKind::kPeerLost, "rank 0 left");

TEST(VerdictTest, WhatIsEncodedIsDecodedTheSame) {
  EXPECT_FALSE(decode_verdict(encode(Verdict())));
  const Verdict decoded = decode_verdict(encode(Verdict(kKilled)));
  ASSERT_TRUE(decoded);
  EXPECT_STREQ(decoded->what(), kKilled.what());
  EXPECT_EQ(error_of([] { decode_verdict(""); }).kind(), ErrorKind::kMismatch);
  EXPECT_EQ(error_of([] { decode_verdict("\1\2"); }).kind(), ErrorKind::kMismatch);
}

TEST(VerdictTest, TheFirstOneCountsForAll) {
  const auto store = store::make_memory_store();
  EXPECT_STREQ(pass(*store, kKilled)->what(), kKilled.what());
  EXPECT_STREQ(pass(*store, kLeft)->what(), kKilled.what());
  EXPECT_STREQ(pass(*store, std::nullopt)->what(), kKilled.what());
}

TEST(VerdictTest, WhoSeesOnlyThatAnotherLeftThrowsWhatMadeItLeave) {
  const auto store = store::make_memory_store();
  auto first =
      std::async(std::launch::async, [&] { return agree_on_failure(*store, kKilled, 0, 3); });
  store->get("verdict", Deadline::after(seconds(30)));
  EXPECT_THAT(error_of([&] { check_for_failure(*store); }).what(),
              HasSubstr("rank 0 could not join the group: rank 2 ended"));
  const Error second = agree_on_failure(*store, kLeft, 1, 3);
  EXPECT_STREQ(second.what(), "peer_lost: rank 0 could not join the group: rank 2 ended");
  EXPECT_STREQ(first.get().what(), kKilled.what());
}

TEST(VerdictTest, WhoKnowsWhatIsWrongKeepsItsOwnError) {
  const auto store = store::make_memory_store();
  pass(*store, kKilled);
  const Error own(ErrorKind::kMismatch, "rank 1 has another stage");
  EXPECT_STREQ(agree_on_failure(*store, own, 0, 3).what(), own.what());
}

TEST(VerdictTest, WhereNobodyHasFailedNothingIsThrown) {
  const auto store = store::make_memory_store();
  check_for_failure(*store);
  pass(*store, std::nullopt);
  check_for_failure(*store);
}

TEST(VerdictTest, WhereTheStoreIsGoneARankGoesByWhatItHasSeen) {
  std::vector<Fd> listeners;
  listeners.push_back(net::listen_on(net::Address::parse("127.0.0.1:0")));
  const net::Address address = net::local_address(listeners.front().get());
  const net::ProofContext context{"hush", "job", "store"};
  auto server = std::make_unique<store::TcpStoreServer>(std::move(listeners), context);
  const auto store =
      store::connect_tcp_store({address}, context, seconds(30), Deadline::after(seconds(30)));
  server.reset();
  const TimePoint start = Clock::now();
  EXPECT_STREQ(agree_on_failure(*store, kLeft, 1, 3).what(), kLeft.what());
  EXPECT_GE(Clock::now() - start, kStayAfterLoss) << "others are to see for themselves who is gone";
}

}  // namespace
}  // namespace peal::rendezvous
