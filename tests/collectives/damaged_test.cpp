// Two ranks and a process between them that changes a byte. With checks or encryption both ranks
// get an error that the link is damaged, and no rank ever gets a wrong value.
#include <algorithm>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/backends/native/native.h"
#include "peal/group/process_group.h"
#include "peal/transport/link/connect.h"

#include "tests/support/interceptor.h"
#include "tests/support/ranks.h"

namespace peal::testing {
namespace {

constexpr int kRanks = 2;
/// No heartbeats, because the interceptor could damage a heartbeat instead of data.
/// As in a sub-group of a larger world.
const std::vector<Rank> kWorldRanks = {4, 6};
constexpr transport::HeartbeatLimits kNoBeats{.every = std::chrono::hours(1),
                                              .lost_after = std::chrono::hours(3)};

/// Two ranks. The second rank reaches the first one through an interceptor.
class InterceptedPair {
 public:
  explicit InterceptedPair(LinkProtection protection) {
    std::vector<transport::Contact> honest;
    for (Rank rank = 0; rank < kRanks; ++rank) {
      pending_.push_back(transport::open({.rank = rank,
                                          .size = kRanks,
                                          .world_ranks = kWorldRanks,
                                          .secret = Secret("a secret"),
                                          .protection = protection,
                                          .choice = TransportChoice::kTcp,
                                          .listen_on = {net::Address::parse("127.0.0.1:0")},
                                          .arena = 16_MiB,
                                          .heartbeat = kNoBeats}));
      honest.push_back(pending_.back()->contact());
    }
    interceptor_ = std::make_unique<Interceptor>(honest[0].addresses[0]);
    contacts_ = honest;
    contacts_[0].addresses = {interceptor_->address()};
  }

  Interceptor& interceptor() { return *interceptor_; }

  ProcessGroupPtr join(Rank rank) {
    native::Options options;
    options.rank = rank;
    options.world_ranks = kWorldRanks;
    options.connect = [this, rank](std::span<const Rank>,
                                   const std::string&,
                                   Deadline deadline,
                                   const std::function<void()>&,
                                   const native::UseTransport& use) {
      use(pending_[static_cast<std::size_t>(rank)]->connect(contacts_, deadline));
    };
    ProcessGroup::Options group;
    group.timeout = std::chrono::seconds(30);
    return std::make_shared<ProcessGroup>(
        native::make_backend(std::move(options), Deadline::after(group.timeout)), group);
  }

 private:
  std::vector<std::unique_ptr<transport::PendingTransport>> pending_;
  std::vector<transport::Contact> contacts_;
  std::unique_ptr<Interceptor> interceptor_;
};

class DamagedTest : public ::testing::TestWithParam<LinkProtection> {
 protected:
  /// Repeats `step`, which returns whether its data is right, and damages the link after a while.
  /// `step` ends by throwing.
  template <class Step>
  void expect_that_both_fail(Step step) {
    InterceptedPair pair(GetParam());
    const auto outcomes = on_ranks(kRanks, [&](Rank rank) -> std::string {
      const ProcessGroupPtr group = pair.join(rank);
      constexpr int kBefore = 5;
      for (int i = 0; i < 100'000; ++i) {
        if (i == kBefore && rank == 0) pair.interceptor().flip_next();
        if (!step(*group, i)) return "wrong data";
      }
      return "the damage was not noticed";
    });
    EXPECT_TRUE(pair.interceptor().has_flipped());
    for (Rank rank = 0; rank < kRanks; ++rank) {
      const auto& outcome = outcomes[static_cast<std::size_t>(rank)];
      EXPECT_EQ(outcome.result, "");
      EXPECT_EQ(outcome.kind, ErrorKind::kPeerLost) << outcome.error;
      // Either rank may detect the damage, and the other receives its error.
      EXPECT_THAT(outcome.details.rank, ::testing::AnyOf(kWorldRanks[0], kWorldRanks[1]))
          << outcome.error;
      EXPECT_NE(outcome.details.host, "");
      EXPECT_EQ(outcome.details.cause, ErrorCause::kUnreachable) << outcome.error;
      EXPECT_THAT(outcome.error, ::testing::HasSubstr("damaged"));
      EXPECT_THAT(outcome.error,
                  ::testing::ContainsRegex(
                      "rank [01] of the group world lost rank [01] \\(pid [0-9]+ on host "));
    }
  }
};

TEST_P(DamagedTest, ADamagedSmallCollectiveFailsAndIsNeverWrong) {
  expect_that_both_fail([](ProcessGroup& group, int i) {
    std::vector<float> data = {static_cast<float>(i + group.rank())};
    group.all_reduce(data);
    return data[0] == static_cast<float>(2 * i + 1);
  });
}

TEST_P(DamagedTest, ADamagedLargeCollectiveFailsAndIsNeverWrong) {
  expect_that_both_fail([](ProcessGroup& group, int i) {
    std::vector<float> data(300'000, static_cast<float>(i + group.rank()));
    group.all_reduce(data);
    return std::ranges::all_of(data, [i](float x) { return x == static_cast<float>(2 * i + 1); });
  });
}

TEST_P(DamagedTest, ADamagedMessageFailsAndIsNeverWrong) {
  expect_that_both_fail([](ProcessGroup& group, int i) {
    const Rank other = 1 - group.rank();
    std::vector<int> data(100, i);
    if (group.rank() == 0) group.send(data, other);
    group.recv(data, other);
    if (group.rank() == 1) group.send(data, other);
    return std::ranges::all_of(data, [i](int x) { return x == i; });
  });
}

INSTANTIATE_TEST_SUITE_P(Protections,
                         DamagedTest,
                         ::testing::Values(LinkProtection::kChecked, LinkProtection::kEncrypted),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace peal::testing
