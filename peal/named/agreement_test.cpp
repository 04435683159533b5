#include "peal/named/agreement.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace peal::named {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Request sum_named(std::string name, std::int64_t count = 4) {
  Request request;
  request.name = std::move(name);
  request.shape = {count};
  return request;
}

/// The agreements of all ranks, with the exchange of their messages.
class Ranks {
 public:
  explicit Ranks(int ranks, AgreementOptions options = {}) {
    std::vector<Rank> all(static_cast<std::size_t>(ranks));
    std::iota(all.begin(), all.end(), 0);
    for (int rank = 0; rank < ranks; ++rank) agreements_.emplace_back(all, options);
  }

  Agreement& operator[](int rank) { return agreements_[static_cast<std::size_t>(rank)]; }
  int announced_rounds() const { return announced_rounds_; }

  void add_everywhere(const Request& request) {
    for (Agreement& agreement : agreements_) agreement.add(request);
  }

  /// The decisions, which must be the same on all ranks.
  std::vector<Decision> round() {
    std::vector<std::uint64_t> all;
    for (Agreement& agreement : agreements_) {
      const std::vector<std::uint64_t>& votes = agreement.votes();
      all.resize(votes.size());
      for (std::size_t i = 0; i < votes.size(); ++i) all[i] |= votes[i];
    }
    bool announces = false;
    for (Agreement& agreement : agreements_) announces = agreement.accept(all);
    std::vector<std::string> announcements;
    if (announces) {
      ++announced_rounds_;
      for (Agreement& agreement : agreements_) announcements.push_back(agreement.announcements());
    }
    std::vector<Decision> first;
    for (std::size_t rank = 0; rank < agreements_.size(); ++rank) {
      std::vector<Decision> decisions = agreements_[rank].decide(announcements);
      if (rank == 0) {
        first = decisions;
      } else {
        EXPECT_EQ(text(decisions), text(first)) << "rank " << rank;
      }
    }
    return first;
  }

  static std::string text(const std::vector<Decision>& decisions) {
    std::string text;
    for (const Decision& decision : decisions) {
      text += decision.kind == Decision::Kind::kRun ? "run"
              : decision.kind == Decision::Kind::kAllJoined
                  ? "joined " + std::to_string(decision.last)
                  : "fail (" + decision.problem + ")";
      for (const Request& request : decision.requests) text += " " + request.name;
      text += "; ";
    }
    return text;
  }

 private:
  std::vector<Agreement> agreements_;
  int announced_rounds_ = 0;
};

TEST(Agreement, RunsAnOperationWhenAllRanksHaveSubmittedIt) {
  Ranks ranks(3);
  ranks[0].add(sum_named("x"));
  EXPECT_THAT(ranks.round(), IsEmpty());
  ranks[2].add(sum_named("x"));
  EXPECT_THAT(ranks.round(), IsEmpty());
  ranks[1].add(sum_named("x"));
  EXPECT_EQ(Ranks::text(ranks.round()), "run x; ");
  EXPECT_THAT(ranks.round(), IsEmpty());
}

TEST(Agreement, NeedsNoAnnouncementsForWhatItRemembers) {
  Ranks ranks(2);
  for (int step = 0; step < 5; ++step) {
    ranks.add_everywhere(sum_named("x"));
    ranks.add_everywhere(sum_named("y"));
    EXPECT_EQ(Ranks::text(ranks.round()), "run x y; ");
  }
  EXPECT_EQ(ranks.announced_rounds(), 1);
}

TEST(Agreement, TakesRememberedOperationsFromRanksOneByOne) {
  Ranks ranks(2);
  ranks.add_everywhere(sum_named("x"));
  ranks.add_everywhere(sum_named("y"));
  ranks.round();
  ranks[0].add(sum_named("x"));
  ranks[1].add(sum_named("y"));
  EXPECT_THAT(ranks.round(), IsEmpty());
  ranks[0].add(sum_named("y"));
  EXPECT_EQ(Ranks::text(ranks.round()), "run y; ");
  ranks[1].add(sum_named("x"));
  EXPECT_EQ(Ranks::text(ranks.round()), "run x; ");
}

TEST(Agreement, ForgetsAnOperationWhoseShapeHasChanged) {
  Ranks ranks(2);
  ranks.add_everywhere(sum_named("x", 4));
  ranks.round();
  ranks.add_everywhere(sum_named("x", 5));
  EXPECT_EQ(Ranks::text(ranks.round()), "run x; ");
  // One rank votes for the remembered operation, and the other has a new one.
  ranks[0].add(sum_named("x", 5));
  ranks[1].add(sum_named("x", 6));
  EXPECT_THAT(Ranks::text(ranks.round()),
              HasSubstr("Mismatched shapes of x: rank 0 has [5], but rank 1 has [6]"));
  ranks.add_everywhere(sum_named("x", 6));
  EXPECT_EQ(Ranks::text(ranks.round()), "run x; ");
}

TEST(Agreement, FailsOnlyTheOperationThatDiffers) {
  Ranks ranks(2);
  ranks[0].add(sum_named("x", 1));
  ranks[1].add(sum_named("x", 2));
  ranks.add_everywhere(sum_named("y"));
  const auto decisions = ranks.round();
  ASSERT_THAT(decisions, SizeIs(2));
  EXPECT_EQ(decisions[0].kind, Decision::Kind::kFail);
  EXPECT_EQ(decisions[1].kind, Decision::Kind::kRun);
  EXPECT_EQ(decisions[1].requests[0].name, "y");
}

Request member(std::string name, int size = 2) {
  Request request = sum_named(std::move(name));
  request.group = "g";
  request.group_size = size;
  return request;
}

TEST(Agreement, RunsAGroupWhenAllMembersAreThere) {
  Ranks ranks(2);
  for (int step = 0; step < 3; ++step) {  // announced, then remembered
    ranks[0].add(member("a"));
    ranks[1].add(member("a"));
    ranks[1].add(member("b"));
    EXPECT_THAT(ranks.round(), IsEmpty());
    EXPECT_THAT(ranks.round(), IsEmpty());
    ranks[0].add(member("b"));
    EXPECT_EQ(Ranks::text(ranks.round()), "run a b; ");
  }
}

TEST(Agreement, FailsAWholeGroup) {
  Ranks ranks(2);
  Request other = member("a");
  other.dtype = DType::kF64;
  ranks[0].add(member("a"));
  ranks[1].add(other);
  EXPECT_THAT(ranks.round(), IsEmpty());
  ranks.add_everywhere(member("b"));
  const auto decisions = ranks.round();
  ASSERT_THAT(decisions, SizeIs(2));
  for (const Decision& decision : decisions) {
    EXPECT_EQ(decision.kind, Decision::Kind::kFail);
    EXPECT_THAT(decision.problem, HasSubstr("data types of a"));
  }
}

Request member_of(int size, int number) {
  return member("g_" + std::to_string(number) + "of" + std::to_string(size), size);
}

TEST(Agreement, FailsGroupsOfDifferentSizesOnAllRanks) {
  Ranks ranks(3);
  const auto add = [&](int rank, int size) {
    for (int i = 1; i <= size; ++i) ranks[rank].add(member_of(size, i));
  };
  const std::string failure =
      "fail (Mismatched sizes of the group g: ranks 0 and 2 have 2 tensors, but rank 1 has 3 "
      "tensors) ";
  add(0, 2);
  add(1, 3);
  EXPECT_THAT(ranks.round(), IsEmpty());  // rank 2 is also needed
  add(2, 2);
  EXPECT_EQ(Ranks::text(ranks.round()), failure + "g_1of2 g_2of2 g_1of3 g_2of3 g_3of3; ");
  for (int rank = 0; rank < 3; ++rank) add(rank, 2);
  EXPECT_EQ(Ranks::text(ranks.round()), "run g_1of2 g_2of2; ");
  // Now two ranks have a group that is remembered.
  add(0, 2);
  EXPECT_THAT(ranks.round(), IsEmpty());
  add(1, 3);
  EXPECT_THAT(ranks.round(), IsEmpty());
  add(2, 2);
  EXPECT_EQ(Ranks::text(ranks.round()), failure + "g_1of3 g_2of3 g_3of3 g_1of2 g_2of2; ");
  for (int rank = 0; rank < 3; ++rank) add(rank, 2);
  EXPECT_EQ(Ranks::text(ranks.round()), "run g_1of2 g_2of2; ");
  for (int rank = 0; rank < 3; ++rank) add(rank, 3);
  EXPECT_EQ(Ranks::text(ranks.round()), "run g_1of3 g_2of3 g_3of3; ");
}

TEST(Agreement, FailsGroupsOfDifferentSizesWithTheSameNames) {
  Ranks ranks(2);
  for (int step = 0; step < 2; ++step) {
    ranks[0].add(member("a", 2));
    ranks[0].add(member("b", 2));
    ranks[1].add(member("a", 3));
    ranks[1].add(member("b", 3));
    ranks[1].add(member("c", 3));
    EXPECT_EQ(Ranks::text(ranks.round()),
              "fail (Mismatched sizes of the group g: rank 0 has 2 tensors, but rank 1 has 3 "
              "tensors) a b c; ");
    ranks.add_everywhere(member("a", 2));
    ranks.add_everywhere(member("b", 2));
    EXPECT_EQ(Ranks::text(ranks.round()), "run a b; ");
  }
}

TEST(Agreement, ComparesTheSizesOfGroupsWithoutRanksThatHaveJoined) {
  Ranks ranks(3);
  ranks[2].join();
  ranks[0].add(member_of(1, 1));
  ranks[1].add(member_of(2, 1));
  ranks[1].add(member_of(2, 2));
  EXPECT_THAT(Ranks::text(ranks.round()),
              HasSubstr("rank 0 has 1 tensor, but rank 1 has 2 tensors"));
}

TEST(Agreement, RunsAllReducesWithoutRanksThatHaveJoined) {
  Ranks ranks(3);
  ranks.add_everywhere(sum_named("x"));
  ranks.round();
  ranks[2].join();
  ranks[0].add(sum_named("x"));
  ranks[1].add(sum_named("x"));
  ranks[0].add(sum_named("new"));
  ranks[1].add(sum_named("new"));
  EXPECT_EQ(Ranks::text(ranks.round()), "run x new; ");
  ranks[0].join();
  EXPECT_THAT(ranks.round(), IsEmpty());
  ranks[1].add(sum_named("x"));
  EXPECT_EQ(Ranks::text(ranks.round()), "run x; ");
  ranks[1].join();
  EXPECT_EQ(Ranks::text(ranks.round()), "joined 1; ");
  EXPECT_THAT(ranks.round(), IsEmpty());
  ranks[0].add(sum_named("x"));  // all ranks are needed again
  EXPECT_THAT(ranks.round(), IsEmpty());
}

TEST(Agreement, RefusesOtherOperationsWhileARankHasJoined) {
  for (const Kind kind :
       {Kind::kAllGather, Kind::kBroadcast, Kind::kAllToAll, Kind::kReduceScatter}) {
    Request request = sum_named("x");
    request.kind = kind;
    Ranks ranks(2);
    ranks.add_everywhere(request);
    ranks.round();
    ranks[1].join();
    ranks[0].add(request);
    const auto decisions = ranks.round();
    ASSERT_THAT(decisions, SizeIs(1));
    EXPECT_THAT(decisions[0].problem, HasSubstr("is not supported with Join at this time"));
    EXPECT_THAT(decisions[0].problem,
                HasSubstr("(x) cannot run, because rank 1 has called join()"));

    Ranks all(2, {.runs_all_kinds_while_joined = true});
    all[1].join();
    all[0].add(request);
    EXPECT_EQ(Ranks::text(all.round()), "run x; ");
  }
}

TEST(Agreement, RefusesABroadcastOfARootThatHasJoined) {
  Request request = sum_named("x");
  request.kind = Kind::kBroadcast;
  request.root = 1;
  Ranks ranks(2, {.runs_all_kinds_while_joined = true});
  ranks[1].join();
  ranks[0].add(request);
  EXPECT_THAT(Ranks::text(ranks.round()), HasSubstr("fail"));
}

TEST(Fuse, JoinsOperationsOfOneKindUpToTheThreshold) {
  std::vector<Request> requests = {
      sum_named("a", 4), sum_named("b", 4), sum_named("c", 4), sum_named("d", 100)};
  requests[1].dtype = DType::kF64;
  const auto names = [](const std::vector<std::vector<Request>>& batches) {
    std::vector<std::string> result;
    for (const auto& batch : batches) {
      std::string text;
      for (const Request& request : batch) text += request.name;
      result.push_back(text);
    }
    return result;
  };
  EXPECT_THAT(names(fuse(requests, {.fusion_threshold = 64_B})), ElementsAre("ac", "b", "d"));
  EXPECT_THAT(names(fuse(requests, {})), ElementsAre("acd", "b"));
  EXPECT_THAT(names(fuse(requests, {.fusion_threshold = 0_B})), ElementsAre("a", "b", "c", "d"));
  requests[0].group = "g";
  EXPECT_THAT(names(fuse(requests, {.fuses_groups_with_others = false})),
              ElementsAre("a", "b", "cd"));
}

TEST(Fuse, LeavesAdasumAlone) {
  std::vector<Request> requests = {sum_named("a"), sum_named("b")};
  for (Request& request : requests) request.reduction = Reduction::kAdasum;
  EXPECT_THAT(fuse(requests, {}), SizeIs(2));
}

/// Random submissions: every rank submits the same operations in its own order, some with other
/// shapes in later steps, some in groups.
TEST(Agreement, RunsEachOperationOnceInAnyOrderOfSubmission) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const auto below = [&](std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
  };
  for (int repetition = 0; repetition < 60; ++repetition) {
    const int count = 1 + static_cast<int>(below(4));
    const AgreementOptions options{.fusion_threshold = Bytes(static_cast<std::int64_t>(below(200))),
                                   .cache_capacity = below(12)};
    Ranks ranks(count, options);
    for (int step = 0; step < 6; ++step) {
      std::vector<Request> requests;
      for (std::size_t i = 0; i < 10; ++i) {
        Request request =
            sum_named("op" + std::to_string(i), static_cast<std::int64_t>(1 + below(2)));
        if (i < 4) {
          request.group = i < 2 ? "g" : "h";
          request.group_size = 2;
        }
        requests.push_back(request);
      }
      std::vector<std::vector<Request>> left(static_cast<std::size_t>(count), requests);
      std::map<std::string, int> submitted;
      std::vector<std::string> run;
      while (run.size() < requests.size()) {
        for (int rank = 0; rank < count; ++rank) {
          auto& mine = left[static_cast<std::size_t>(rank)];
          for (std::size_t n = below(3); n > 0 && !mine.empty(); --n) {
            const std::size_t at = below(mine.size());
            ranks[rank].add(mine[at]);
            ++submitted[mine[at].name];
            mine.erase(mine.begin() + static_cast<std::ptrdiff_t>(at));
          }
        }
        for (const Decision& decision : ranks.round()) {
          ASSERT_EQ(decision.kind, Decision::Kind::kRun) << decision.problem;
          Bytes size;
          for (const Request& request : decision.requests) {
            EXPECT_EQ(submitted[request.name], count) << request.name;
            EXPECT_EQ(request, *std::ranges::find(requests, request.name, &Request::name));
            run.push_back(request.name);
            size += bytes_of(request);
          }
          EXPECT_TRUE(decision.requests.size() == 1 || size <= options.fusion_threshold);
        }
      }
      EXPECT_EQ(std::set<std::string>(run.begin(), run.end()).size(), requests.size());
    }
  }
}

}  // namespace
}  // namespace peal::named
