// Sub-groups, coalesced forms, several groups at once, memory, and the order of operations.
#include <numeric>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "tests/support/fabric.h"

namespace peal::testing {
namespace {

/// The sum of `value` over the group's ranks.
float sum_of(ProcessGroup& group, float value) {
  std::vector<float> data = {value};
  group.all_reduce(data);
  return data[0];
}

class GroupsTest : public ::testing::TestWithParam<Fabric> {
 protected:
  template <class Body>
  void expect_well(int ranks, Body body) {
    Job job(GetParam(), ranks);
    EXPECT_EQ(complaints(on_group(job, body)), "");
  }
};

TEST_P(GroupsTest, ANewGroupHasTheGivenRanksInTheGivenOrder) {
  expect_well(4, [](ProcessGroup& world) -> std::string {
    if (world.rank() == 1) return "";  // only members call it
    const std::vector<Rank> members = {3, 0, 2};
    const ProcessGroupPtr group = world.new_group(members);
    if (group->size() != 3) return "wrong size";
    if (members[static_cast<std::size_t>(group->rank())] != world.rank()) return "wrong rank";
    if (group->global_rank(0) != 3) return "wrong global rank";
    std::vector<float> data = {static_cast<float>(world.rank())};
    group->broadcast(data, 0);
    if (data[0] != 3) return "the root is not the group's rank 0";
    const float sum = sum_of(*group, static_cast<float>(world.rank()));
    group->destroy();
    return sum == 5 ? "" : "wrong sum";
  });
}

TEST_P(GroupsTest, AGroupOfAGroupKnowsTheWorldsRanks) {
  expect_well(4, [](ProcessGroup& world) -> std::string {
    const ProcessGroupPtr half = world.split(world.rank() % 2);
    const std::vector<Rank> only_last = {1};
    if (half->rank() != 1) return "";
    const ProcessGroupPtr last = half->new_group(only_last);
    return last->size() == 1 && last->global_rank(0) == world.rank() ? ""
                                                                     : "wrong size or global rank";
  });
}

TEST_P(GroupsTest, ASplitOrdersByKeyAndOmitsRanksWithoutAColor) {
  expect_well(5, [](ProcessGroup& world) -> std::string {
    const int color = world.rank() == 4 ? kNoColor : world.rank() % 2;
    const ProcessGroupPtr group = world.split(color, -world.rank());
    if (color == kNoColor) return group == nullptr ? "" : "joined without a color";
    const std::vector<Rank> expected =
        color == 0 ? std::vector<Rank>{2, 0} : std::vector<Rank>{3, 1};
    for (Rank r = 0; r < group->size(); ++r) {
      if (group->global_rank(r) != expected[static_cast<std::size_t>(r)]) return "wrong order";
    }
    return sum_of(*group, 1) == 2 ? "" : "wrong sum";
  });
}

TEST_P(GroupsTest, SeveralGroupsWorkAtOnceFromSeveralThreads) {
  expect_well(3, [](ProcessGroup& world) -> std::string {
    const std::vector<Rank> all = {0, 1, 2};
    const ProcessGroupPtr first = world.new_group(all);
    const ProcessGroupPtr second = world.new_group(all);
    bool well[2] = {true, true};
    const auto work = [](ProcessGroup& group, bool& good) {
      for (int i = 0; i < 100; ++i)
        good &= sum_of(group, static_cast<float>(i)) == static_cast<float>(3 * i);
    };
    std::thread one([&] { work(*first, well[0]); });
    std::thread two([&] { work(*second, well[1]); });
    one.join();
    two.join();
    return well[0] && well[1] ? "" : "a sum is wrong";
  });
}

TEST_P(GroupsTest, OperationsEndInTheOrderOfTheirStart) {
  expect_well(3, [](ProcessGroup& group) -> std::string {
    std::vector<std::vector<float>> data(40, std::vector<float>(500, 1));
    std::vector<WorkPtr> works;
    for (auto& one : data) works.push_back(group.all_reduce_async(one));
    group.all_reduce(data[0]);  // a blocking operation waits for those before it
    for (const WorkPtr& work : works) {
      if (!work->is_completed()) return "overtaken";
    }
    if (data[0][499] != 9) return "wrong order";
    return data[39][0] == 3 ? "" : "wrong sum";
  });
}

TEST_P(GroupsTest, ListsOfBuffersAreHandledAsOneBuffer) {
  expect_well(3, [](ProcessGroup& group) -> std::string {
    const auto rank = static_cast<float>(group.rank());
    std::vector<float> a(3, rank);
    std::vector<float> b(700, 1);
    std::vector<float> c;
    const std::vector<Buffer> list = {a, b, c};
    group.all_reduce(list);
    if (a[2] != 3 || b[699] != 3) return "all_reduce";
    a.assign(3, rank);
    group.broadcast(list, 2);
    if (a[0] != 2) return "broadcast";
    a.assign(3, rank);
    group.reduce_async(list, 1)->wait();
    if (a[1] != (group.rank() == 1 ? 3.F : rank)) return "reduce";

    std::vector<float> all_a(9);
    std::vector<float> all_b(2100);
    a.assign(3, rank);
    b.assign(700, 10 + rank);
    const std::vector<ConstBuffer> in = {a, b};
    const std::vector<Buffer> out = {all_a, all_b};
    group.all_gather(in, out);
    if (all_a[8] != 2 || all_a[3] != 1 || all_b[0] != 10 || all_b[1400] != 12) return "all_gather";

    const std::vector<ConstBuffer> whole = {all_a, all_b};
    const std::vector<Buffer> parts = {a, b};
    group.reduce_scatter(whole, parts);
    return a[0] == 3 * rank && b[699] == 3 * (10 + rank) ? "" : "reduce_scatter";
  });
}

TEST_P(GroupsTest, AllocatedMemoryIsZeroAndOutlivesItsGroup) {
  Job job(GetParam(), 2);
  const auto outcomes = on_ranks(2, [&](Rank rank) -> std::string {
    ProcessGroupPtr group = job.join(rank);
    const Memory memory = group->allocate(100'000_B);
    for (int i = 0; i < 100'000; ++i) {
      if (memory[i] != std::byte{0}) return "not zero";
    }
    auto* values = reinterpret_cast<float*>(memory.get());
    std::fill_n(values, 25'000, 1.F);
    group->all_reduce(Buffer(values, Elements(25'000), DType::kF32));
    group->destroy();
    group.reset();
    return values[24'999] == 2 ? "" : "lost";
  });
  EXPECT_EQ(complaints(outcomes), "");
}

TEST_P(GroupsTest, OneOperationMayUseMemoryOfTheGroupAndOtherMemory) {
  expect_well(2, [](ProcessGroup& group) -> std::string {
    const Memory memory = group.allocate(80'000_B);
    std::vector<float> own(20'000, 1);
    auto* values = reinterpret_cast<float*>(memory.get());
    std::fill_n(values, 20'000, 2.F);
    float* data = group.rank() == 0 ? values : own.data();
    for (int i = 0; i < 20; ++i)
      group.all_reduce(Buffer(data, Elements(20'000), DType::kF32), {.op = ReduceOp::kMax});
    return data[0] == 2 && data[19'999] == 2 ? "" : "wrong";
  });
}

TEST_P(GroupsTest, RegisteredMemoryIsUsedInPlaceAndOutlivesItsGroup) {
  Job job(GetParam(), 2);
  const auto outcomes = on_ranks(2, [&](Rank rank) -> std::string {
    ProcessGroupPtr group = job.join(rank);
    std::vector<float> values(100'000);
    std::iota(values.begin(), values.end(), 0.F);
    Registration registration =
        group->register_memory(values.data(), bytes_of(Elements(100'000), DType::kF32));
    const bool has_window = group->capabilities().registered_memory;
    if ((registration != nullptr) != has_window)
      return "the registration does not match the capabilities";
    for (int i = 0; i < 5; ++i) {  // the whole, and a part that ends inside a page
      group->all_reduce(values, {.op = ReduceOp::kMax});
      group->all_reduce(std::span(values).subspan(1, 30'000));
      for (float& value : std::span(values).subspan(1, 30'000)) value /= 2;
    }
    if (rank == 0) group->send(std::span(values).subspan(3, 50'000), 1);
    std::vector<float> received(50'000);
    if (rank == 1) group->recv(received, 0);
    if (rank == 1 && (received[0] != 3 || received[49'999] != 50'002)) return "wrong message";
    group->destroy();
    group.reset();
    for (int i = 0; i < 100'000; ++i) {
      if (values[static_cast<std::size_t>(i)] != static_cast<float>(i)) return "wrong values";
    }
    registration.reset();
    values[0] = values[99'999] = 7;
    return values[50'000] == 50'000 ? "" : "lost";
  });
  EXPECT_EQ(complaints(outcomes), "");
}

TEST_P(GroupsTest, MemoryIsRegisteredWithOneGroupAtATime) {
  expect_well(2, [](ProcessGroup& world) -> std::string {
    const ProcessGroupPtr other = world.split(0);
    std::vector<float> values(50'000, 1);
    const auto registered_with = [&](ProcessGroup& group) {
      return group.register_memory(values.data(), bytes_of(Elements(50'000), DType::kF32));
    };
    Registration registration = registered_with(world);
    if (registration) {
      try {
        const Registration second = registered_with(*other);
        return "registered twice";
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::kUsage) return error.what();
      }
    }
    other->all_reduce(values);  // not registered with that group
    world.all_reduce(values);
    registration.reset();
    registration = registered_with(*other);
    other->all_reduce(values);
    registration.reset();
    other->destroy();
    return values.front() == 8 && values.back() == 8 ? "" : "wrong";
  });
}

TEST_P(GroupsTest, MemoryThatCannotBeRegisteredIsOnlyAnError) {
  expect_well(2, [](ProcessGroup& group) -> std::string {
    const auto kind_of = [&](void* memory, Bytes size) -> std::optional<ErrorKind> {
      try {
        const Registration registration = group.register_memory(memory, size);
      } catch (const Error& error) {
        return error.kind();
      }
      return std::nullopt;
    };
    std::vector<float> values(10);
    if (kind_of(nullptr, 1_B) != ErrorKind::kUsage) return "a null pointer";
    if (kind_of(values.data(), Bytes(-1)) != ErrorKind::kUsage) return "a negative size";
    if (kind_of(nullptr, 0_B)) return "zero bytes";
    if (group.capabilities().registered_memory) {
      const Memory allocated = group.allocate(100'000_B);
      if (kind_of(allocated.get(), 100'000_B) != ErrorKind::kUsage)
        return "memory that is shared already";
      auto* const text = const_cast<char*>("read-only memory of the program");
      if (kind_of(text, 10_B) != ErrorKind::kUnsupported) return "read-only memory";
    }
    group.all_reduce(values);
    group.destroy();
    return kind_of(values.data(), 40_B) == ErrorKind::kUsage ? "" : "after the end";
  });
}

TEST_P(GroupsTest, EveryRankEndsWithTheSameBits) {
  for (const char* algorithm : {"", "ring", "recursive_doubling", "halving_doubling", "pairwise"}) {
    Config config;
    config.algorithm = algorithm;
    Job job(GetParam(), 5, config);
    const auto outcomes = on_group(job, [](ProcessGroup& group) {
      std::vector<float> data(3'001);
      for (std::size_t i = 0; i < data.size(); ++i) {
        data[i] = 1.F / static_cast<float>(3 + i + 7 * static_cast<std::size_t>(group.rank()));
      }
      group.all_reduce(data);
      return data;
    });
    for (const auto& outcome : outcomes) {
      ASSERT_EQ(outcome.error, "");
      EXPECT_EQ(outcome.result, outcomes[0].result) << algorithm;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Fabrics,
                         GroupsTest,
                         ::testing::ValuesIn(kAllFabrics),
                         [](const auto& instance) { return name_of(instance.param); });

}  // namespace
}  // namespace peal::testing
