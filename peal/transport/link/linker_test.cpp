// Links that are made after the group has connected.
#include "peal/transport/link/linker.h"

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/guarded.h"
#include "peal/net/socket.h"
#include "peal/transport/testing/testing.h"

namespace peal::transport {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using testing::bytes_of;
using testing::connect_all;
using ::testing::HasSubstr;
using testing::receive_all;
using testing::run_ranks;
using testing::send_all;
using testing::test_deadline;
using testing::Transports;

const std::vector kLaterKinds = {LinkKind::kData, LinkKind::kMail};

/// What a linker has reported.
struct SeenLinks {
  std::map<LinkKey, std::unique_ptr<net::Stream>> made;
  std::size_t links = 0;
  std::set<Rank> refused;
  std::map<Rank, Error> failed;
};

/// A rank with a linker, and everything that its linker reports.
class LinkedRank {
 public:
  LinkedRank(Rank self, const std::string& secret, LinkProtection protection)
      : plan_{.self = self,
              .group = "world",
              .context = {Secret(secret), "job", "", protection},
              .peers = {},
              .listeners = {}} {
    listeners_.push_back(net::listen_on(net::Address::parse("127.0.0.1:0")));
    address_ = net::local_address(listeners_.front().get());
  }

  const net::Address& address() const { return address_; }
  void add_peer(Rank peer, const net::Address& address) {
    plan_.peers[peer] = {"rank " + std::to_string(peer), {address}, {}, kLaterKinds};
  }
  void begin() {
    linker_.emplace(
        plan_,
        std::move(listeners_),
        Linker::Events{.made =
                           [this](const LinkKey& key, std::unique_ptr<net::Stream> stream) {
                             seen_.update([&](SeenLinks& seen) {
                               seen.made[key] = std::move(stream);
                               ++seen.links;
                             });
                           },
                       .refused =
                           [this](Rank peer) {
                             seen_.update([&](SeenLinks& seen) { seen.refused.insert(peer); });
                           },
                       .failed =
                           [this](Rank peer, const Error& error) {
                             seen_.update(
                                 [&](SeenLinks& seen) { seen.failed.emplace(peer, error); });
                           }});
  }
  void want(Rank peer, LinkKind kind) { linker_->want({peer, kind}); }
  void stop() { linker_->stop(); }
  void end() {
    linker_.reset();
    listeners_.clear();
  }

  /// Waits until `ready(seen)`, and returns whether that came.
  template <class Ready>
  bool wait(Ready ready) {
    return seen_.wait(test_deadline(), ready, [](SeenLinks&) {});
  }
  bool wait_for(const LinkKey& key) {
    return wait([&](const SeenLinks& seen) { return seen.made.contains(key); });
  }
  template <class Use>
  auto see(Use use) {
    return seen_.with(use);
  }

 private:
  LinkPlan plan_;
  std::vector<Fd> listeners_;
  net::Address address_;
  Guarded<SeenLinks> seen_;
  std::optional<Linker> linker_;  // ends before what it reports to
};

using LinkedRanks = std::vector<std::unique_ptr<LinkedRank>>;

/// Ranks that know each other and have no links. Their linkers have not begun.
LinkedRanks make_ranks(int size, LinkProtection protection = LinkProtection::kPlain) {
  LinkedRanks ranks;
  for (Rank rank = 0; rank < size; ++rank) {
    ranks.push_back(std::make_unique<LinkedRank>(rank, "a secret of the tests", protection));
  }
  for (Rank rank = 0; rank < size; ++rank) {
    for (Rank peer = 0; peer < size; ++peer) {
      if (peer != rank) ranks[rank]->add_peer(peer, ranks[peer]->address());
    }
  }
  return ranks;
}

LinkedRanks begun_ranks(int size, LinkProtection protection = LinkProtection::kPlain) {
  LinkedRanks ranks = make_ranks(size, protection);
  for (const auto& rank : ranks) rank->begin();
  return ranks;
}

/// Whether the two ends of a link belong together: bytes pass in both directions.
void expect_one_link(LinkedRank& a, const LinkKey& to_b, LinkedRank& b, const LinkKey& to_a) {
  net::Stream* const at_a = a.see([&](SeenLinks& seen) { return seen.made.at(to_b).get(); });
  net::Stream* const at_b = b.see([&](SeenLinks& seen) { return seen.made.at(to_a).get(); });
  for (const auto& [from, to] : {std::pair{at_a, at_b}, std::pair{at_b, at_a}}) {
    net::write_all(*from, bytes_of("hello"), test_deadline());
    std::vector<std::byte> got(5);
    net::read_all(*to, got, test_deadline());
    EXPECT_EQ(got, bytes_of("hello"));
  }
}

class ProtectedLinkerTest : public ::testing::TestWithParam<LinkProtection> {};

TEST_P(ProtectedLinkerTest, EitherEndMakesTheLinkThatItWants) {
  for (const Rank dials : {0, 1}) {
    const LinkedRanks ranks = begun_ranks(2, GetParam());
    const Rank accepts = 1 - dials;
    ranks[dials]->want(accepts, LinkKind::kMail);
    ASSERT_TRUE(ranks[dials]->wait_for({accepts, LinkKind::kMail}));
    ASSERT_TRUE(ranks[accepts]->wait_for({dials, LinkKind::kMail}));
    expect_one_link(
        *ranks[dials], {accepts, LinkKind::kMail}, *ranks[accepts], {dials, LinkKind::kMail});
  }
}

TEST_P(ProtectedLinkerTest, RanksThatDialEachOtherAtTheSameTimeGetOneLink) {
  constexpr int kRanks = 4;
  constexpr std::size_t kLinks = 2 * (kRanks - 1);
  for (int repeat = 0; repeat < 20; ++repeat) {
    const LinkedRanks ranks = begun_ranks(kRanks, GetParam());
    run_ranks(kRanks, [&](Rank rank) {
      for (Rank peer = 0; peer < kRanks; ++peer) {
        if (peer != rank) ranks[rank]->want(peer, LinkKind::kData);
      }
      return ranks[rank]->wait([=](const SeenLinks& seen) { return seen.made.size() == kLinks; });
    });
    for (Rank rank = 0; rank < kRanks; ++rank) {
      EXPECT_EQ(ranks[rank]->see([](const SeenLinks& seen) { return seen.links; }), kLinks);
      for (Rank peer = 0; peer < rank; ++peer) {
        for (const LinkKind kind : kLaterKinds) {
          expect_one_link(*ranks[rank], {peer, kind}, *ranks[peer], {rank, kind});
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Protections,
                         ProtectedLinkerTest,
                         ::testing::Values(LinkProtection::kPlain,
                                           LinkProtection::kChecked,
                                           LinkProtection::kEncrypted));

TEST(LinkerTest, TheMailLinkIsMadeBeforeTheDataLink) {
  const LinkedRanks ranks = begun_ranks(2);
  ranks[1]->want(0, LinkKind::kData);
  for (const Rank rank : {0, 1}) {
    ASSERT_TRUE(ranks[rank]->wait([&](const SeenLinks& seen) {
      const bool has_mail = seen.made.contains({1 - rank, LinkKind::kMail});
      if (!seen.made.contains({1 - rank, LinkKind::kData})) return false;
      EXPECT_TRUE(has_mail);
      return true;
    }));
  }
}

TEST(LinkerTest, ALinkIsMadeOnce) {
  const LinkedRanks ranks = begun_ranks(2);
  for (int i = 0; i < 3; ++i) ranks[1]->want(0, LinkKind::kMail);
  ASSERT_TRUE(ranks[1]->wait_for({0, LinkKind::kMail}));
  ranks[1]->want(0, LinkKind::kMail);
  ranks[0]->want(1, LinkKind::kMail);
  ranks[0]->want(1, LinkKind::kData);  // handled after the earlier wishes
  ASSERT_TRUE(ranks[0]->wait_for({1, LinkKind::kData}));
  EXPECT_EQ(ranks[0]->see([](const SeenLinks& seen) { return seen.links; }), 2u);
}

TEST(LinkerTest, APeerThatHasStoppedLinkingIsRefused) {
  const LinkedRanks ranks = begun_ranks(3);
  ranks[1]->stop();
  ranks[2]->end();
  ranks[0]->want(1, LinkKind::kMail);
  ranks[0]->want(2, LinkKind::kData);
  EXPECT_TRUE(ranks[0]->wait([](const SeenLinks& seen) { return seen.refused == std::set{1, 2}; }));
  ranks[0]->see([](const SeenLinks& seen) { EXPECT_TRUE(seen.failed.empty()); });
}

TEST(LinkerTest, APeerThatNeverAnswersDelaysNoOtherLink) {
  LinkedRanks ranks = make_ranks(3);
  const Fd silent = net::listen_on(net::Address::parse("127.0.0.1:0"));  // accepts nothing
  ranks[0]->add_peer(1, net::local_address(silent.get()));
  for (const Rank rank : {0, 2}) ranks[rank]->begin();
  ranks[0]->want(1, LinkKind::kMail);
  ranks[0]->want(2, LinkKind::kMail);
  ASSERT_TRUE(ranks[0]->wait_for({2, LinkKind::kMail}));
  ranks[0]->see([](const SeenLinks& seen) {
    EXPECT_FALSE(seen.made.contains({1, LinkKind::kMail}));
    EXPECT_TRUE(seen.refused.empty() && seen.failed.empty()) << "it may still answer";
  });
}

TEST(LinkerTest, APeerThatStartsLateIsLinkedThen) {
  const LinkedRanks ranks = make_ranks(2);
  ranks[1]->begin();
  ranks[1]->want(0, LinkKind::kMail);
  std::thread late([&] { ranks[0]->begin(); });
  EXPECT_TRUE(ranks[1]->wait_for({0, LinkKind::kMail}));
  late.join();
}

TEST(LinkerTest, AnotherSecretFailsTheLinkWithAnErrorThatNamesThePeer) {
  LinkedRank own(0, "one", LinkProtection::kPlain);
  LinkedRank other(1, "another", LinkProtection::kPlain);
  own.add_peer(1, other.address());
  other.add_peer(0, own.address());
  own.begin();
  other.begin();
  own.want(1, LinkKind::kMail);
  ASSERT_TRUE(own.wait([](const SeenLinks& seen) { return seen.failed.contains(1); }));
  own.see([](const SeenLinks& seen) {
    EXPECT_EQ(seen.failed.at(1).kind(), ErrorKind::kUsage);
    EXPECT_THAT(seen.failed.at(1).what(), AllOf(HasSubstr("rank 1"), HasSubstr("secret")));
  });
  other.see([](const SeenLinks& seen) { EXPECT_EQ(seen.links, 0u); });
}

TEST(LinkerTest, ALinkThatThePlanDoesNotHaveIsRejected) {
  const LinkedRanks ranks = begun_ranks(2);
  ranks[1]->want(0, LinkKind::kBeats);
  ASSERT_TRUE(ranks[1]->wait([](const SeenLinks& seen) { return seen.failed.contains(0); }));
  ranks[1]->see(
      [](const SeenLinks& seen) { EXPECT_EQ(seen.failed.at(0).kind(), ErrorKind::kMismatch); });
}

// ---- the transport

/// Two hosts with two ranks each. Ranks 0 and 2 exchange beats and mail from the start, and so do
/// ranks 1 and 3.
Transports two_hosts() { return connect_all(4, {.linked_at_start = 0}, {"a", "a", "b", "b"}); }

TEST(LinkOnDemandTest, LinksBetweenHostsAreMadeWhenTheyAreNeeded) {
  const Transports transports = two_hosts();
  EXPECT_EQ(transports[0]->data().link_state(1), LinkState::kMade);
  EXPECT_EQ(transports[0]->mail().link_state(2), LinkState::kMade);
  EXPECT_EQ(transports[0]->data().link_state(2), LinkState::kNone);
  EXPECT_EQ(transports[0]->mail().link_state(3), LinkState::kNone);
  EXPECT_THAT(transports[0]->describe(3), HasSubstr("no connection"));
  send_all(transports[0]->data(), 3, bytes_of("hello"), test_deadline());
  EXPECT_EQ(receive_all(transports[3]->data(), 0, 5, test_deadline()), bytes_of("hello"));
  EXPECT_EQ(transports[0]->data().link_state(3), LinkState::kMade);
  EXPECT_EQ(transports[3]->mail().link_state(0), LinkState::kMade);
  EXPECT_THAT(transports[0]->describe(3), HasSubstr("tcp 127.0.0.1:"));
  EXPECT_EQ(transports[1]->mail().link_state(2), LinkState::kNone);
  // These two have a mail link from the start.
  send_all(transports[0]->data(), 2, bytes_of("hello"), test_deadline());
  EXPECT_EQ(receive_all(transports[2]->data(), 0, 5, test_deadline()), bytes_of("hello"));
}

TEST(LinkOnDemandTest, AReceiverAloneMakesTheLink) {
  const Transports transports = two_hosts();
  std::array<std::byte, 1> byte{};
  EXPECT_EQ(transports[3]->data().try_receive(0, byte).bytes, 0_B);
  const Interest interest{0, Readiness::kReadable};
  while (transports[3]->data().link_state(0) == LinkState::kNone) {
    transports[3]->data().wait({&interest, 1}, test_deadline());
  }
  EXPECT_EQ(transports[3]->data().link_state(0), LinkState::kMade);
}

TEST(LinkOnDemandTest, ASleepingRankWakesWhenAPeerLinksToIt) {
  const Transports transports = two_hosts();
  std::thread peer([&] { send_all(transports[0]->mail(), 3, bytes_of("x"), test_deadline()); });
  while (transports[3]->mail().link_state(0) == LinkState::kNone) {
    transports[3]->mail().wait({}, test_deadline());
  }
  peer.join();
  EXPECT_EQ(receive_all(transports[3]->mail(), 0, 1, test_deadline()), bytes_of("x"));
}

TEST(LinkOnDemandTest, TheStreamOfAPeerThatHasLeftIsClosed) {
  const Transports transports = two_hosts();
  transports[3]->stop_linking();
  EXPECT_EQ(receive_all(transports[0]->data(), 3, 1, test_deadline()), bytes_of(""));
  EXPECT_EQ(transports[0]->data().link_state(3), LinkState::kRefused);
  EXPECT_EQ(transports[0]->mail().link_state(3), LinkState::kRefused);
}

TEST(LinkOnDemandTest, FaultsBreakLinksThatAreMadeLater) {
  ConnectOptions options{.linked_at_start = 0};
  options.faults = parse_faults("link 0>3 data corrupt after 4").links;
  const Transports transports = connect_all(4, options, {"a", "a", "b", "b"});
  auto damaged = bytes_of("hello");
  damaged[4] ^= std::byte{0xff};
  send_all(transports[0]->data(), 3, bytes_of("hello"), test_deadline());
  EXPECT_EQ(receive_all(transports[3]->data(), 0, 5, test_deadline()), damaged);
}

TEST(LinkOnDemandTest, ASmallGroupIsLinkedAtItsStart) {
  const Transports transports = connect_all(4, {.linked_at_start = 4}, {"a", "a", "b", "b"});
  for (const Rank peer : {1, 2, 3}) {
    EXPECT_EQ(transports[0]->data().link_state(peer), LinkState::kMade);
    EXPECT_EQ(transports[0]->mail().link_state(peer), LinkState::kMade);
  }
}

}  // namespace
}  // namespace peal::transport
