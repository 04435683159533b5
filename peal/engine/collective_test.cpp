// Collectives of ranks that advance in turns in one thread: how they learn about registered memory,
// what they wait for, and their errors when they are in different operations. The results of all
// operations and types are checked in tests/collectives.
#include "peal/engine/collective.h"

#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/schedule/opening.h"
#include "peal/schedule/problem.h"
#include "peal/transport/memory/memory.h"

namespace peal::engine {
namespace {

using schedule::Move;
using schedule::Part;
using schedule::Problem;
using schedule::Slice;
using schedule::Space;
using schedule::Step;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kMembers = 2;
constexpr std::int64_t kCount = 4;

/// Plans by hand an all_gather, or a gather, of two ranks on one host.
class TwoRankPlanner final : public Planner {
 public:
  explicit TwoRankPlanner(Rank self) : self_(self) {}

  Choice choose(const Problem&, Bytes) override { return {.algorithm = 0, .opens = true}; }

  Part plan(std::uint8_t, const Problem& problem) override {
    asked.push_back(problem.registered);
    Part part{.steps = schedule::opening(problem, self_)};
    const Rank other = 1 - self_;
    const Elements own = problem.count * self_;
    const Elements theirs = problem.count * other;
    add_copy(part, {Space::kInput, {self_}}, {Space::kOutput, {self_}, own}, problem.count);
    if (works_on_registered(problem, self_)) {
      add_copy(part, {Space::kInput, {other}}, {Space::kOutput, {self_}, theirs}, problem.count);
    } else {
      part.stage = problem.count;
      if (!is_registered(problem, self_)) part.steps.push_back(schedule::Wait{{other}, 0});
      add_copy(part, {Space::kInput, {self_}}, {Space::kStage, {self_}}, problem.count);
      meet(part, other, 2);
      add_copy(part, {Space::kStage, {other}}, {Space::kOutput, {self_}, theirs}, problem.count);
    }
    meet(part, other, works_on_registered(problem, self_) ? 2 : 3);
    return part;
  }

  std::vector<std::vector<bool>> asked;

 private:
  static void add_copy(Part& part, Slice from, Slice to, Elements count) {
    part.steps.push_back(Move{.from = {from}, .to = {to}, .count = count});
  }
  static void meet(Part& part, Rank other, std::int64_t value) {
    part.steps.push_back(schedule::Signal{value});
    part.steps.push_back(schedule::Wait{{other}, value});
    part.span = value;
  }

  Rank self_;
};

enum class Kind { kRegistered, kForeign };

/// One rank, with registered and with ordinary buffers.
struct Member {
  Member(Rank r, std::unique_ptr<transport::Transport> t)
      : rank(r),
        transport(std::move(t)),
        planner(r),
        collective(r, kMembers, *transport, planner, 1_MiB) {
    for (std::byte*& memory : registered) {
      memory = transport->window()->allocate(Bytes(2 * kCount * 4));
    }
    for (std::vector<float>& memory : foreign) memory.resize(2 * kCount);
  }

  float* buffer(std::size_t which, Kind kind) {
    return kind == Kind::kRegistered ? reinterpret_cast<float*>(registered[which])
                                     : foreign[which].data();
  }

  void begin(Kind kind, const Problem& problem) {
    input = buffer(0, kind);
    output = buffer(1, kind);
    std::iota(input, input + kCount, 10.0F * static_cast<float>(rank + 1));
    std::fill_n(output, 2 * kCount, -1.0F);
    task = {};
    task.problem = problem;
    task.dtype = DType::kF32;
    task.input.add(reinterpret_cast<std::byte*>(input), Elements(kCount));
    task.output.add(reinterpret_cast<std::byte*>(output), Elements(2 * kCount));
    collective.begin(task);
  }
  void begin(Kind kind) {
    begin(kind, {.operation = Operation::kAllGather, .count = Elements(kCount)});
  }

  std::vector<float> result() const { return {output, output + 2 * kCount}; }

  Rank rank;
  std::unique_ptr<transport::Transport> transport;
  TwoRankPlanner planner;
  std::array<std::byte*, 2> registered = {};
  std::array<std::vector<float>, 2> foreign;
  float* input = nullptr;
  float* output = nullptr;
  Task task;
  Collective collective;
};

class CollectiveTest : public ::testing::Test {
 protected:
  CollectiveTest() {
    transport::MemoryOptions options;
    options.arena = 1_MiB;
    auto transports = transport::make_memory_transports(kMembers, options);
    for (Rank rank = 0; rank < kMembers; ++rank) {
      members_.push_back(
          std::make_unique<Member>(rank, std::move(transports[static_cast<std::size_t>(rank)])));
    }
  }

  Member& member(Rank rank) { return *members_[static_cast<std::size_t>(rank)]; }

  void run() {
    std::vector<Member*> busy = {&member(0), &member(1)};
    for (int round = 0; round < 1000 && !busy.empty(); ++round) {
      std::erase_if(busy, [](Member* m) { return m->collective.advance() == Progress::kDone; });
    }
    EXPECT_TRUE(busy.empty());
    for (const auto& m : members_) {
      EXPECT_THAT(m->result(), ElementsAre(10, 11, 12, 13, 20, 21, 22, 23));
    }
  }

  std::vector<std::unique_ptr<Member>> members_;
};

using Flags = std::vector<bool>;

TEST_F(CollectiveTest, RanksWithRegisteredMemoryWorkDirectlyOnIt) {
  member(0).begin(Kind::kRegistered);
  member(1).begin(Kind::kRegistered);
  run();
  EXPECT_EQ(member(0).planner.asked.back(), (Flags{true, true}));
  EXPECT_EQ(member(1).planner.asked.back(), (Flags{true, true}));
}

TEST_F(CollectiveTest, ARankWithoutRegisteredMemoryKnowsItsPartAtOnce) {
  member(0).begin(Kind::kForeign);
  member(1).begin(Kind::kForeign);
  run();
  EXPECT_THAT(member(0).planner.asked, ElementsAre(Flags{false, false}));
  EXPECT_THAT(member(1).planner.asked, ElementsAre(Flags{false, false}));
}

TEST_F(CollectiveTest, ARankLearnsThatAnotherRanksMemoryIsNotRegistered) {
  member(0).begin(Kind::kRegistered);
  member(1).begin(Kind::kForeign);
  run();
  EXPECT_THAT(member(0).planner.asked, ElementsAre(Flags{true, true}, Flags{true, false}));
  EXPECT_THAT(member(1).planner.asked, ElementsAre(Flags{false, false}));
}

TEST_F(CollectiveTest, MemoryMayDifferInEachOperation) {
  for (int i = 0; i < 200; ++i) {
    member(0).begin(i % 3 == 0 ? Kind::kRegistered : Kind::kForeign);
    member(1).begin(i % 5 < 3 ? Kind::kRegistered : Kind::kForeign);
    run();
  }
  EXPECT_EQ(member(0).planner.asked.size(), 3u) << "each part is planned once";
}

TEST_F(CollectiveTest, ABlockedRankNamesTheMissingRank) {
  member(0).begin(Kind::kRegistered);
  Collective& collective = member(0).collective;
  EXPECT_EQ(collective.advance(), Progress::kBlocked);
  ASSERT_TRUE(collective.blocked().counter.has_value());
  EXPECT_EQ(collective.blocked().counter->rank, 1);
  EXPECT_THAT(collective.waiting_for(), ElementsAre(1));
  EXPECT_THAT(collective.describe_missing(),
              AllOf(HasSubstr("rank 1"), HasSubstr("has entered no operation")));
  member(1).begin(Kind::kRegistered);
  for (int i = 0; i < 10; ++i) collective.advance();
  EXPECT_THAT(collective.describe_missing(), HasSubstr("has entered the operation"));
  run();
}

TEST_F(CollectiveTest, RanksInDifferentOperationsGetAMismatch) {
  member(0).begin(Kind::kForeign);
  member(1).begin(Kind::kForeign,
                  {.operation = Operation::kAllGather, .count = Elements(kCount - 1)});
  const auto error_of = [](Collective& collective) -> std::string {
    try {
      for (int i = 0; i < 10; ++i) collective.advance();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kMismatch);
      return error.what();
    }
    return "no error";
  };
  member(0).collective.advance();
  EXPECT_THAT(error_of(member(1).collective), AllOf(HasSubstr("4 f32"), HasSubstr("3 f32")));
  EXPECT_THROW(member(0).collective.compare_entries(), Error);
}

TEST_F(CollectiveTest, AnAbandonedOperationDoesNotTouchItsMemory) {
  member(0).begin(Kind::kRegistered);
  EXPECT_EQ(member(0).collective.advance(), Progress::kBlocked);
  member(0).collective.abandon();
  EXPECT_TRUE(member(0).collective.waiting_for().empty());
  EXPECT_EQ(member(0).result(), std::vector<float>(2 * kCount, -1.0F));
}

}  // namespace
}  // namespace peal::engine
