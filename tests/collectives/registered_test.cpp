// Which operations access the ranks' registered memory in place: the problems that the engine gives
// to its planner, over a window. The grid tests the results, with operations of the same size and
// types.
#include <algorithm>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/engine/collective.h"
#include "peal/plan/choose.h"
#include "peal/plan/plan.h"
#include "peal/schedule/problem.h"
#include "peal/transport/memory/memory.h"
#include "peal/transport/window/window.h"

#include "tests/collectives/cases.h"

namespace peal::testing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::SizeIs;

/// Whether operations access the memory of other ranks, or go through the stage.
enum class DataPath : std::uint8_t { kStaged, kDirect };

/// Plans as usual, and records the last request.
class Observer final : public engine::Planner {
 public:
  explicit Observer(Rank self) : self_(self) {}

  Choice choose(const schedule::Problem& problem, Bytes element) override {
    const plan::Algorithm& algorithm = plan::choose(plan::built_in_choices(), problem, element);
    return {.algorithm = static_cast<std::uint8_t>(&algorithm - plan::algorithms().data()),
            .opens = algorithm.opens(problem.operation)};
  }

  schedule::Part plan(std::uint8_t algorithm, const schedule::Problem& problem) override {
    asked_ = works_on_registered(problem, self_) ? DataPath::kDirect : DataPath::kStaged;
    return plan::algorithms()[algorithm].plan(problem, self_);
  }

  std::optional<DataPath> asked() const { return asked_; }

 private:
  Rank self_;
  std::optional<DataPath> asked_;
};

/// One rank with the memory of one operation.
class Member {
 public:
  Member(Rank self, int ranks, std::unique_ptr<transport::Transport> transport)
      : self_(self),
        transport_(std::move(transport)),
        planner_(self),
        collective_(self, ranks, *transport_, planner_, 0_B) {}

  ~Member() {
    for (const std::byte* memory : registered_) transport_->window()->deregister_memory(memory);
  }
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  void begin(const schedule::Problem& problem, DType dtype, Case::Memory memory) {
    const Elements input = schedule::input_size(problem, self_);
    const Elements output = schedule::output_size(problem, self_);
    task_ = {};
    engine::Task& task = task_;
    task.problem = problem;
    task.dtype = dtype;
    if (const auto place = schedule::placement(problem, self_)) {
      const Elements size = std::max(place->input + input, place->output + output);
      std::byte* const both = allocate(bytes_of(size, dtype), memory);
      task.input.add(both + bytes_of(place->input, dtype).value, input);
      task.output.add(both + bytes_of(place->output, dtype).value, output);
    } else {
      task.input.add(allocate(bytes_of(input, dtype), memory), input);
      task.output.add(allocate(bytes_of(output, dtype), memory), output);
    }
    collective_.begin(task);
  }

  bool is_done() { return collective_.advance() == engine::Progress::kDone; }
  std::optional<DataPath> asked() const { return planner_.asked(); }

 private:
  /// Registered memory is released with the transport.
  std::byte* allocate(Bytes size, Case::Memory memory) {
    if (is_allocated(memory, self_)) return transport_->window()->allocate(size);
    std::vector<std::byte>& own = foreign_.emplace_back(static_cast<std::size_t>(size.value));
    if (memory == Case::Memory::kHandedOver) {
      transport_->window()->register_memory(own);
      registered_.push_back(own.data());
    }
    return own.data();
  }

  Rank self_;
  std::unique_ptr<transport::Transport> transport_;
  Observer planner_;
  engine::Task task_;
  engine::Collective collective_;
  std::vector<std::vector<std::byte>> foreign_;
  std::vector<const std::byte*> registered_;
};

/// Runs the operation on all ranks in turn and returns the path of each planner's request. Fewer
/// than all ranks' if the operation does not end.
std::vector<DataPath> paths_of(schedule::Problem problem, DType dtype, Case::Memory memory) {
  constexpr int kRounds = 100'000;
  transport::MemoryOptions options;
  options.stage = 8_KiB;
  options.arena = 4_MiB;
  auto transports = transport::make_memory_transports(problem.ranks, options);
  std::vector<std::unique_ptr<Member>> members;
  for (Rank rank = 0; rank < problem.ranks; ++rank) {
    auto& transport = transports[static_cast<std::size_t>(rank)];
    members.push_back(std::make_unique<Member>(rank, problem.ranks, std::move(transport)));
    members.back()->begin(problem, dtype, memory);
  }
  std::vector<Member*> busy;
  for (const auto& member : members) busy.push_back(member.get());
  std::vector<DataPath> paths;
  for (int round = 0; round < kRounds && !busy.empty(); ++round) {
    std::erase_if(busy, [&](Member* member) {
      const bool done = member->is_done();
      if (done) paths.push_back(member->asked().value());
      return done;
    });
  }
  return paths;
}

std::vector<Case::Placement> places_of(Operation operation) {
  if (operation == Operation::kBroadcast) return {Case::Placement::kInPlace};
  if (operation == Operation::kAllToAll) return {Case::Placement::kApart};
  return {Case::Placement::kApart, Case::Placement::kInPlace};
}

class RegisteredTest : public ::testing::TestWithParam<std::tuple<Operation, int>> {
 protected:
  static void expect(DataPath path, std::int64_t count, DType dtype, Case::Memory memory) {
    const auto [operation, ranks] = GetParam();
    for (const Case::Placement place : places_of(operation)) {
      const schedule::Problem problem{.operation = operation,
                                      .ranks = ranks,
                                      .root = ranks - 1,
                                      .count = Elements(count),
                                      .in_place = place == Case::Placement::kInPlace};
      EXPECT_THAT(paths_of(problem, dtype, memory),
                  AllOf(SizeIs(static_cast<std::size_t>(ranks)), Each(path)))
          << name_of(dtype) << (problem.in_place ? " in place" : " apart");
    }
  }
};

TEST_P(RegisteredTest, LargeOperationsAccessRegisteredMemoryInPlace) {
  for (const DType dtype : {kLargeDTypes.front(), kLargeDTypes.back()}) {  // smallest and largest
    expect(DataPath::kDirect, kLargeCount, dtype, Case::Memory::kRegistered);
  }
}

TEST_P(RegisteredTest, MemoryRegisteredInPlaceIsAccessedInPlaceToo) {
  expect(DataPath::kDirect, kLargeCount, DType::kC128, Case::Memory::kHandedOver);
}

TEST_P(RegisteredTest, ForeignMemoryOfOneRankPreventsAccessUnlessOnlyTheRootsMemoryIsAccessed) {
  const auto [operation, ranks] = GetParam();
  const bool only_the_roots_is_touched = operation == Operation::kBroadcast ||
                                         operation == Operation::kScatter ||
                                         operation == Operation::kGather;
  const bool root_has_registered = (ranks - 1) % 2 == 0;
  expect(only_the_roots_is_touched && root_has_registered ? DataPath::kDirect : DataPath::kStaged,
         kLargeCount,
         DType::kC128,
         Case::Memory::kMixed);
}

TEST_P(RegisteredTest, ForeignMemoryIsNotAccessed) {
  expect(DataPath::kStaged, kLargeCount, DType::kC128, Case::Memory::kForeign);
}

TEST_P(RegisteredTest, SmallOperationsDoNotAgreeOnRegisteredMemory) {
  expect(DataPath::kStaged, 1, DType::kC128, Case::Memory::kRegistered);
}

INSTANTIATE_TEST_SUITE_P(Operations,
                         RegisteredTest,
                         ::testing::Combine(::testing::Values(Operation::kBroadcast,
                                                              Operation::kReduce,
                                                              Operation::kAllReduce,
                                                              Operation::kScatter,
                                                              Operation::kGather,
                                                              Operation::kAllGather,
                                                              Operation::kReduceScatter,
                                                              Operation::kAllToAll),
                                            ::testing::Values(2, 3, 16)),
                         [](const auto& instance) {
                           return std::string(name_of(std::get<0>(instance.param))) + "_" +
                                  std::to_string(std::get<1>(instance.param));
                         });

}  // namespace
}  // namespace peal::testing
