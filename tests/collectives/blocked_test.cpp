// A thread sleeps until an event that a blocked collective names. So the collective must name the
// right events: while none of them has come, `advance` moves nothing, and with sleeps on these
// events every operation still ends. Random runs over the memory transport, checked after each
// step.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "peal/engine/collective.h"
#include "peal/plan/plan.h"
#include "peal/schedule/problem.h"
#include "peal/transport/memory/memory.h"
#include "peal/transport/shm/ring_channel.h"
#include "peal/transport/window/window.h"

namespace peal::testing {
namespace {

using engine::Progress;
using Random = std::mt19937;

constexpr DType kType = DType::kF32;

/// Chooses one of the algorithms that apply, the same one on all ranks.
class AnyPlanner final : public engine::Planner {
 public:
  AnyPlanner(Rank self, unsigned seed) : self_(self), seed_(seed) {}

  Choice choose(const schedule::Problem& problem, Bytes) override {
    std::vector<std::uint8_t> possible;
    const auto algorithms = plan::algorithms();
    for (std::size_t i = 0; i < algorithms.size(); ++i) {
      if (algorithms[i].applies(problem)) possible.push_back(static_cast<std::uint8_t>(i));
    }
    Random random(seed_ + static_cast<unsigned>(problem.count.value));
    const std::uint8_t chosen = possible.at(random() % possible.size());
    return {.algorithm = chosen, .opens = algorithms[chosen].opens(problem.operation)};
  }

  schedule::Part plan(std::uint8_t algorithm, const schedule::Problem& problem) override {
    return plan::algorithms()[algorithm].plan(problem, self_);
  }

 private:
  Rank self_;
  unsigned seed_;
};

/// One rank. All ranks carry out the same operations, one after the other.
class Member {
 public:
  Member(Rank self,
         std::unique_ptr<transport::Transport> transport,
         const std::vector<schedule::Problem>& problems,
         unsigned seed)
      : self_(self),
        transport_(std::move(transport)),
        planner_(self, seed),
        collective_(self, problems.front().ranks, *transport_, planner_, 64_KiB),
        problems_(problems) {}

  bool is_finished() const { return !is_busy_ && next_ == problems_.size(); }
  bool is_asleep() const { return is_busy_ && is_blocked_; }
  bool holds_back() { return collective_.blocked().holds_back; }
  void raise_limit() { collective_.raise_limit(); }

  /// Whether one of the events that the rank sleeps on has come.
  bool has_event() {
    const engine::Blocked& blocked = collective_.blocked();
    if (blocked.counter) {
      const auto [rank, turn, value] = *blocked.counter;
      if (transport_->window()->counter(rank, turn) >= value) return true;
    }
    auto& channel = dynamic_cast<transport::RingChannel&>(transport_->data());
    const bool would_sleep = channel.announce_sleep(blocked.interests);
    channel.end_sleep();
    return !would_sleep;
  }

  /// Starts the next operation, or advances the current one. Returns whether anything moved.
  bool step() {
    if (!is_busy_) {
      begin(problems_[next_++]);
      is_busy_ = true;
      is_blocked_ = false;
      return true;
    }
    const Progress progress = collective_.advance();
    is_blocked_ = progress == Progress::kBlocked;
    if (progress == Progress::kDone) is_busy_ = false;
    return !is_blocked_;
  }

  std::string describe() const { return collective_.describe(); }

 private:
  void begin(const schedule::Problem& problem) {
    task_ = {};
    task_.problem = problem;
    task_.dtype = kType;
    const Elements input = schedule::input_size(problem, self_);
    const Elements output = schedule::output_size(problem, self_);
    memory_.resize(static_cast<std::size_t>(bytes_of(input + output, kType).value));
    task_.input.add(memory_.data(), input);
    const bool is_shared = schedule::placement(problem, self_).has_value();
    task_.output.add(memory_.data() + (is_shared ? 0 : bytes_of(input, kType).value), output);
    collective_.begin(task_);
  }

  Rank self_;
  std::unique_ptr<transport::Transport> transport_;
  AnyPlanner planner_;
  engine::Collective collective_;
  const std::vector<schedule::Problem>& problems_;
  std::size_t next_ = 0;
  bool is_busy_ = false;
  bool is_blocked_ = false;
  std::vector<std::byte> memory_;
  engine::Task task_;
};

std::vector<schedule::Problem> some_problems(Random& random, int ranks) {
  constexpr std::array kOperations = {Operation::kAllReduce,
                                      Operation::kReduceScatter,
                                      Operation::kAllGather,
                                      Operation::kBroadcast,
                                      Operation::kReduce,
                                      Operation::kScatter,
                                      Operation::kGather,
                                      Operation::kAllToAll,
                                      Operation::kBarrier};
  constexpr std::array kCounts = {1, 7, 1'000, 5'000, 40'000};
  std::vector<schedule::Problem> problems;
  for (int i = 0; i < 6; ++i) {
    const Operation operation = kOperations.at(random() % kOperations.size());
    const bool is_barrier = operation == Operation::kBarrier;
    problems.push_back({.operation = operation,
                        .ranks = ranks,
                        .root = static_cast<Rank>(random() % static_cast<unsigned>(ranks)),
                        .count = Elements(is_barrier ? 0 : kCounts.at(random() % kCounts.size())),
                        .in_place = operation == Operation::kBroadcast});
  }
  return problems;
}

class BlockedTest : public ::testing::TestWithParam<std::pair<int, int>> {
 protected:
  static std::vector<std::unique_ptr<Member>> members(
      const std::vector<schedule::Problem>& problems, unsigned seed) {
    const auto [ranks, ranks_per_host] = GetParam();
    transport::MemoryOptions options{.data_ring = 8_KiB, .stage = 8_KiB, .arena = 1_MiB};
    if (ranks_per_host == 1) {
      options.sharing = transport::MemoryOptions::Sharing::kMessagesOnly;
    } else {
      options.ranks_per_host = ranks_per_host;
    }
    auto transports = transport::make_memory_transports(ranks, options);
    std::vector<std::unique_ptr<Member>> members;
    for (Rank rank = 0; rank < ranks; ++rank) {
      auto& transport = transports[static_cast<std::size_t>(rank)];
      members.push_back(std::make_unique<Member>(rank, std::move(transport), problems, seed));
    }
    return members;
  }

  /// The ranks that would run if all threads slept on the events that their collectives name.
  static std::vector<Member*> runnable(const std::vector<std::unique_ptr<Member>>& members) {
    std::vector<Member*> found;
    for (const auto& member : members) {
      if (member->is_finished()) continue;
      if (!member->is_asleep() || member->has_event()) found.push_back(member.get());
    }
    return found;
  }
};

TEST_P(BlockedTest, NothingMovesWithoutAnEventAndEventsAloneEndAllOperations) {
  constexpr int kMostSteps = 200'000;
  for (unsigned seed = 0; seed < 60; ++seed) {
    Random random(seed);
    const std::vector<schedule::Problem> problems = some_problems(random, GetParam().first);
    const auto all = members(problems, seed);
    int steps = 0;
    for (; steps < kMostSteps; ++steps) {
      for (const auto& member : all) {
        if (!member->is_asleep() || member->has_event()) continue;
        ASSERT_FALSE(member->step()) << member->describe() << ", seed " << seed;
      }
      std::vector<Member*> ready = runnable(all);
      if (ready.empty()) {  // only time wakes a rank that holds back
        for (const auto& member : all) {
          if (member->is_asleep() && member->holds_back()) ready.push_back(member.get());
        }
        for (Member* member : ready) member->raise_limit();
      }
      if (ready.empty()) break;
      ready[random() % ready.size()]->step();
    }
    ASSERT_LT(steps, kMostSteps) << "seed " << seed;
    for (const auto& member : all) {
      ASSERT_TRUE(member->is_finished()) << member->describe() << ", seed " << seed;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(RanksAndRanksPerHost,
                         BlockedTest,
                         ::testing::Values(std::pair(2, 1),
                                           std::pair(3, 1),
                                           std::pair(2, 2),
                                           std::pair(4, 2),
                                           std::pair(5, 5)));

}  // namespace
}  // namespace peal::testing
