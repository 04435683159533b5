// The engine against the verifier. The engine runs proved schedules, on every rank over the memory
// transport, and must compute the verifier's results to the bit. The schedules are those of all
// planners, one by one and in random sequences; those of tests/golden; those that the verifier's
// tests have by hand; and mutants that the verifier still proves right.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "peal/base/reduce_op.h"
#include "peal/base/testing/sanitized.h"
#include "peal/engine/collective.h"
#include "peal/plan/plan.h"
#include "peal/plan/testing/problems.h"
#include "peal/schedule/opening.h"
#include "peal/schedule/problem.h"
#include "peal/schedule/text.h"
#include "peal/transport/memory/memory.h"
#include "peal/transport/window/window.h"
#include "peal/verify/testing/compute.h"
#include "peal/verify/testing/mutants.h"
#include "peal/verify/testing/schedules.h"
#include "peal/verify/verify.h"

namespace peal::testing {
namespace {

using schedule::Problem;
using schedule::Schedule;
using verify::RankBuffers;
using Random = std::mt19937;

constexpr DType kType = DType::kF32;

Bytes bytes_of(Elements count) { return peal::bytes_of(count, kType); }

/// Whether the part of every rank begins with the opening.
bool begins_with_opening(const Schedule& schedule) {
  for (Rank rank = 0; rank < schedule.problem.ranks; ++rank) {
    const std::vector<schedule::Step> opening = schedule::opening(schedule.problem, rank);
    const auto& steps = schedule.parts[static_cast<std::size_t>(rank)].steps;
    if (opening.empty() || steps.size() < opening.size()) return false;
    if (!std::equal(opening.begin(), opening.end(), steps.begin())) return false;
  }
  return true;
}

using Sequence = std::vector<Schedule>;

/// How the engine computes an average of floats (engine/plan_cache.cpp).
verify::Scaling scaling_of(ReduceOp::Kind reduce, int ranks) {
  if (reduce == ReduceOp::Kind::kSum) return {};
  const auto scale = static_cast<float>(std::bit_ceil(static_cast<unsigned>(ranks)));
  return {.weight = 1 / scale, .divisor = static_cast<float>(ranks) / scale};
}

/// Returns the parts of the schedules of a sequence. Takes the number of a schedule as its
/// algorithm.
class GivenPlanner final : public engine::Planner {
 public:
  GivenPlanner(const Sequence& sequence, Rank self) : sequence_(sequence), self_(self) {}

  void go_on() { ++at_; }

  Choice choose(const Problem&, Bytes) override {
    return {.algorithm = static_cast<std::uint8_t>(at_),
            .opens = begins_with_opening(sequence_[at_])};
  }

  schedule::Part plan(std::uint8_t number, const Problem&) override {
    return sequence_[number].parts[static_cast<std::size_t>(self_)];
  }

 private:
  const Sequence& sequence_;
  Rank self_;
  std::size_t at_ = 0;
};

/// One rank and its memory. It runs the operations of a sequence one after the other.
class Member {
 public:
  Member(const Sequence& sequence,
         Rank self,
         std::unique_ptr<transport::Transport> transport,
         const std::vector<RankBuffers>& inputs,
         ReduceOp::Kind reduce)
      : sequence_(sequence),
        inputs_(inputs),
        reduce_(reduce),
        self_(self),
        transport_(std::move(transport)),
        planner_(sequence, self),
        collective_(self, sequence.front().problem.ranks, *transport_, planner_, 1_MiB) {
    begin();
  }

  /// Takes one step. Returns whether all operations are done.
  bool advance() {
    if (collective_.advance() != engine::Progress::kDone) return false;
    const float* const memory = outputs_[at_];
    results_.emplace_back(memory, memory + output_size(problem(), self_).value);
    if (++at_ == sequence_.size()) return true;
    planner_.go_on();
    begin();
    return false;
  }

  /// The output of operation `i`.
  const std::vector<float>& result(std::size_t i) const { return results_[i]; }

 private:
  const Problem& problem() const { return sequence_[at_].problem; }

  void begin() {
    const std::vector<float>& values = inputs_[at_][static_cast<std::size_t>(self_)];
    const Elements in = input_size(problem(), self_);
    const Elements out = output_size(problem(), self_);
    engine::Task task;
    task.problem = problem();
    task.problem.in_place = is_in_place(problem(), self_);
    task.problem.in_place_of.clear();  // a rank knows only its own
    task.dtype = kType;
    task.reduce = reduce_;
    float* input = nullptr;
    float* output = nullptr;
    if (const auto place = placement(problem(), self_)) {
      float* const both = allocate(std::max(place->input + in, place->output + out));
      input = both + place->input.value;
      output = both + place->output.value;
    } else {
      input = allocate(in);
      output = allocate(out);
    }
    std::copy(values.begin(), values.end(), input);
    add(task.input, input, in);
    add(task.output, output, out);
    outputs_.push_back(output);
    collective_.begin(task);
  }

  static void add(engine::Regions& regions, float* memory, Elements count) {
    regions.add(reinterpret_cast<std::byte*>(memory), count);
  }

  /// Filled with values that are never a right result.
  float* allocate(Elements count) {
    constexpr float kGarbage = -12345.0F;
    if (is_registered(problem(), self_) && transport_->window() != nullptr) {
      auto* const memory =
          reinterpret_cast<float*>(transport_->window()->allocate(bytes_of(count)));
      std::fill_n(memory, count.value, kGarbage);
      return memory;
    }
    return own_.emplace_back(static_cast<std::size_t>(count.value), kGarbage).data();
  }

  const Sequence& sequence_;
  const std::vector<RankBuffers>& inputs_;  // of each operation
  ReduceOp::Kind reduce_;
  Rank self_;
  std::unique_ptr<transport::Transport> transport_;
  GivenPlanner planner_;
  engine::Collective collective_;
  std::size_t at_ = 0;
  std::vector<std::vector<float>> own_;
  std::vector<float*> outputs_;
  std::vector<std::vector<float>> results_;
};

RankBuffers inputs_of(const Problem& problem, Random& random) {
  std::uniform_real_distribution<float> number(-1.0F, 1.0F);
  RankBuffers inputs;
  for (Rank rank = 0; rank < problem.ranks; ++rank) {
    std::vector<float>& input = inputs.emplace_back();
    for (Elements i; i < input_size(problem, rank); i += Elements(1))
      input.push_back(number(random));
  }
  return inputs;
}

/// The results of each operation by the engine, whose ranks advance in random order. Empty if they
/// do not end.
std::vector<RankBuffers> carry_out(const Sequence& sequence,
                                   const std::vector<RankBuffers>& inputs,
                                   ReduceOp::Kind reduce,
                                   Random& random) {
  constexpr int kRounds = 20'000;
  const Problem& problem = sequence.front().problem;
  transport::MemoryOptions options;
  options.arena = 4_MiB;
  options.ranks_per_host = problem.ranks_per_host;
  if (problem.ranks_per_host == 1) {
    options.sharing = transport::MemoryOptions::Sharing::kMessagesOnly;
  }
  auto transports = transport::make_memory_transports(problem.ranks, options);
  std::vector<std::unique_ptr<Member>> members;
  std::vector<Member*> busy;
  for (Rank rank = 0; rank < problem.ranks; ++rank) {
    auto& transport = transports[static_cast<std::size_t>(rank)];
    members.push_back(
        std::make_unique<Member>(sequence, rank, std::move(transport), inputs, reduce));
    busy.push_back(members.back().get());
  }
  for (int round = 0; round < kRounds && !busy.empty(); ++round) {
    std::shuffle(busy.begin(), busy.end(), random);
    if (busy.front()->advance()) busy.erase(busy.begin());
  }
  if (!busy.empty()) return {};
  std::vector<RankBuffers> results(sequence.size());
  for (std::size_t i = 0; i < sequence.size(); ++i) {
    for (const auto& member : members) results[i].push_back(member->result(i));
  }
  return results;
}

/// Whether the engine computes the verifier's results to the bit: sums, or averages.
::testing::AssertionResult agrees(const Sequence& sequence, Random& random) {
  const ReduceOp::Kind reduce = random() % 2 == 0 ? ReduceOp::Kind::kSum : ReduceOp::Kind::kAvg;
  const verify::Scaling scaling = scaling_of(reduce, sequence.front().problem.ranks);
  std::vector<RankBuffers> inputs;
  std::vector<RankBuffers> expected;
  for (const Schedule& schedule : sequence) {
    inputs.push_back(inputs_of(schedule.problem, random));
    expected.push_back(verify::compute(schedule, inputs.back(), scaling));
  }
  const std::vector<RankBuffers> results = carry_out(sequence, inputs, reduce, random);
  if (results == expected) return ::testing::AssertionSuccess();
  ::testing::AssertionResult failure = ::testing::AssertionFailure();
  failure << (results.empty() ? "the engine does not end: " : "other results: ") << name_of(reduce)
          << '\n';
  for (const Schedule& schedule : sequence) failure << to_text(schedule);
  return failure;
}

::testing::AssertionResult agrees(const Schedule& schedule, Random& random) {
  return agrees(Sequence{schedule}, random);
}

struct Layout {
  int ranks;
  int ranks_per_host;
};

/// The problem with registered memory on no rank, on all, and on some ranks.
std::vector<Problem> with_registered(Problem problem, Random& random) {
  std::vector<Problem> all = {problem};
  problem.registered = schedule::all_registered(problem.ranks);
  all.push_back(problem);
  for (int set = 0; set < 2; ++set) {
    for (int rank = 0; rank < problem.ranks; ++rank) {
      problem.registered[static_cast<std::size_t>(rank)] = random() % 2 == 0;
    }
    all.push_back(problem);
  }
  return all;
}

/// The problem in place on some ranks only.
Problem partly_in_place(Problem problem, Random& random) {
  problem.in_place = false;
  for (int rank = 0; rank < problem.ranks; ++rank) {
    problem.in_place_of.push_back(random() % 2 == 0);
  }
  return problem;
}

/// Calls `use(schedule)` for the schedules of all planners for ranks of that layout.
template <class Use>
void for_each_schedule(const Layout& layout, Random& random, Use&& use) {
  for (const plan::Algorithm& algorithm : plan::algorithms()) {
    for (const Operation operation : kAllCollectives) {
      for (const Problem& problem : plan::problems(operation, layout.ranks)) {
        const bool is_here =
            problem.ranks_per_host == layout.ranks_per_host && problem.registered.empty();
        if (!is_here || !algorithm.applies(problem)) continue;
        auto variants =
            algorithm.opens(operation) ? with_registered(problem, random) : std::vector{problem};
        if (problem.in_place) variants.push_back(partly_in_place(problem, random));
        for (const Problem& variant : variants) use(plan::plan_all(algorithm, variant));
      }
    }
  }
}

/// All for which the planners are proved (plan/plan_proof_test.cpp). A few under a sanitizer.
std::vector<Layout> layouts() {
  if (kSanitized) return {{2, 2}, {3, 3}, {4, 2}, {6, 3}, {5, 1}};
  std::vector<Layout> all;
  for (const int ranks : {2, 3, 4, 5, 6, 7, 8, 9, 16}) {
    for (int local = 1; local <= ranks; ++local) {
      if (ranks % local == 0) all.push_back({ranks, local});
    }
  }
  return all;
}

/// Without which memory is registered or in place.
Problem without_memory(Problem problem) {
  problem.registered.clear();
  problem.in_place = false;
  problem.in_place_of.clear();
  return problem;
}

class DifferentialTest : public ::testing::TestWithParam<Layout> {};

TEST_P(DifferentialTest, TheEngineComputesTheVerifiersResultForAllPlannedSchedules) {
  Random random(static_cast<unsigned>(GetParam().ranks));
  int carried_out = 0;
  for_each_schedule(GetParam(), random, [&](const Schedule& schedule) {
    EXPECT_TRUE(agrees(schedule, random));
    ++carried_out;
  });
  EXPECT_GT(carried_out, 100);
  fmt::print("{} schedules\n", carried_out);
}

TEST_P(DifferentialTest, TheEngineComputesTheVerifiersResultsForRandomSequences) {
  constexpr std::size_t kLength = 5;
  constexpr int kSequences = kSanitized ? 20 : 100;
  Random random(static_cast<unsigned>(GetParam().ranks));
  Sequence all;
  for_each_schedule(GetParam(), random, [&](Schedule schedule) {
    if (random() % 4 == 0) all.push_back(std::move(schedule));
  });
  for (int i = 0; i < kSequences; ++i) {
    Sequence sequence;
    while (sequence.size() < kLength) {
      const Schedule& next = all[random() % all.size()];
      // A planner always chooses the same algorithm for a problem, whatever memory is registered or
      // in place. The engine relies on it.
      const bool is_new = std::ranges::none_of(sequence, [&](const Schedule& other) {
        return without_memory(other.problem) == without_memory(next.problem);
      });
      if (is_new) sequence.push_back(next);
    }
    EXPECT_TRUE(agrees(sequence, random));
  }
}

/// Mutants that the verifier rejects are not run: they may read past the end of memory.
TEST_P(DifferentialTest, TheEngineComputesTheVerifiersResultForAcceptedMutants) {
  constexpr std::size_t kLongest = 60;
  const int ranks = GetParam().ranks;
  const unsigned share = kSanitized ? 100 : ranks > 9 ? 600 : 20;  // runs one of this many mutants
  Random random(static_cast<unsigned>(ranks));
  int refused = 0;
  int accepted = 0;
  const auto attempt = [&](const Schedule& mutant) {
    if (random() % share != 0) return;
    if (!verify::verify(mutant).empty()) {
      ++refused;
    } else if (begins_with_opening(mutant) || mutant.problem.registered.empty()) {
      ++accepted;
      EXPECT_TRUE(agrees(mutant, random));
    }
  };
  for_each_schedule(GetParam(), random, [&](Schedule schedule) {
    for (schedule::Part& part : schedule.parts) {
      if (part.steps.size() > kLongest || random() % 2 != 0) continue;
      verify::mutate_fields(part, [&](std::string_view) { attempt(schedule); });
      verify::delete_steps(part, [&](std::string_view) { attempt(schedule); });
    }
  });
  fmt::print("{} mutants rejected, {} accepted and run\n", refused, accepted);
  EXPECT_GT(refused, 100);
  EXPECT_GT(accepted, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, DifferentialTest, ::testing::ValuesIn(layouts()), [](const auto& test) {
      return fmt::format("{}Ranks{}AHost", test.param.ranks, test.param.ranks_per_host);
    });

TEST(GoldenDifferentialTest, TheEngineComputesTheVerifiersResultForGoldenSchedules) {
  Random random(1);
  int carried_out = 0;
  for (const auto& entry : std::filesystem::directory_iterator(PEAL_GOLDEN_FOLDER)) {
    if (entry.path().filename() == "CMakeLists.txt" || entry.path().extension() != ".txt") continue;
    std::ifstream file(entry.path());
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    EXPECT_TRUE(agrees(schedule::parse_schedule(text), random)) << entry.path();
    ++carried_out;
  }
  EXPECT_GE(carried_out, 12);
}

TEST(HandwrittenDifferentialTest, TheEngineComputesTheVerifiersResultForSchedulesWrittenByHand) {
  Random random(1);
  int carried_out = 0;
  for (const auto& [name, text] : verify::kRight) {
    const Schedule schedule = schedule::parse_schedule(text);
    // If memory is registered, the engine needs the opening.
    if (!schedule.problem.registered.empty() && !begins_with_opening(schedule)) continue;
    EXPECT_TRUE(agrees(schedule, random)) << name;
    ++carried_out;
  }
  EXPECT_GE(carried_out, 10);
}

}  // namespace
}  // namespace peal::testing
