#include "peal/bench/case.h"

#include <vector>

#include <gtest/gtest.h>

#include "peal/bench/values.h"

namespace peal::bench {
namespace {

/// A rank's buffers, as in a backend.
struct Buffers {
  std::vector<std::byte> input_memory, output_memory;
  Placement where;
  std::size_t input_size = 0;
  std::size_t output_size = 0;
  std::size_t element = 1;

  Buffers(const Case& c, Rank rank)
      : where(placement(c, rank)),
        input_size(static_cast<std::size_t>(peal::bytes_of(input_count(c, rank), c.dtype).value)),
        output_size(static_cast<std::size_t>(peal::bytes_of(output_count(c, rank), c.dtype).value)),
        element(static_cast<std::size_t>(size_of(c.dtype).value)) {
    const bool shared = where.sharing == Sharing::kOneMemory;
    input_memory.resize(shared ? std::max(input_size, output_size) : input_size);
    if (!shared) output_memory.resize(output_size);
  }
  std::span<std::byte> input() {
    return std::span(input_memory)
        .subspan(static_cast<std::size_t>(where.input.value) * element, input_size);
  }
  std::span<std::byte> output() {
    auto& memory = where.sharing == Sharing::kOneMemory ? input_memory : output_memory;
    return std::span(memory).subspan(static_cast<std::size_t>(where.output.value) * element,
                                     output_size);
  }
};

/// Cases with every operation, type, place and number of ranks, and a few elements.
std::vector<Case> grid() {
  std::vector<Case> cases;
  for (const Op op : kAllOps) {
    for (const DType dtype : kAllDTypes) {
      for (const int ranks : {2, 3, 8}) {
        for (const BlockPlace place : {BlockPlace::kOut, BlockPlace::kIn}) {
          if (is_measured(dtype)) cases.push_back(make_case(op, dtype, ranks, 96_B, place));
        }
      }
    }
  }
  return cases;
}

/// The right result of the operation on floats, from the inputs of all ranks.
std::vector<float> meaning(const Case& c, Rank rank, const std::vector<std::vector<float>>& in) {
  const auto block = static_cast<std::size_t>(c.count.value);
  const auto own = block * static_cast<std::size_t>(rank);
  const auto part = [](const std::vector<float>& whole, std::size_t at, std::size_t size) {
    return std::vector<float>(whole.begin() + static_cast<std::ptrdiff_t>(at),
                              whole.begin() + static_cast<std::ptrdiff_t>(at + size));
  };
  std::vector<float> out;
  const auto append = [&](const std::vector<float>& more) {
    out.insert(out.end(), more.begin(), more.end());
  };
  std::vector<float> sum;
  if (reduces(operation_of(c.op))) {
    sum.resize(in[0].size());
    for (const auto& values : in) {
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];
    }
  }
  switch (c.op) {
    case Op::kAllReduce:
      return sum;
    case Op::kReduce:
      return rank == kRoot ? sum : out;
    case Op::kReduceScatter:
      return part(sum, own, block);
    case Op::kBroadcast:
      return in[kRoot];
    case Op::kScatter:
      return part(in[kRoot], own, block);
    case Op::kAllGather:
      for (const auto& values : in) append(values);
      return out;
    case Op::kGather:
      for (const auto& values : in) {
        if (rank == kRoot) append(values);
      }
      return out;
    case Op::kAllToAll:
      for (const auto& values : in) append(part(values, own, block));
      return out;
    case Op::kSendRecv:
      if (rank == 0) return in.back();
      return rank == c.ranks - 1 ? in.front() : out;
    case Op::kBarrier:
      return out;
  }
  return out;
}

std::vector<float> floats(std::span<const std::byte> bytes) {
  const auto* values = reinterpret_cast<const float*>(bytes.data());
  return {values, values + bytes.size() / sizeof(float)};
}

TEST(CaseTest, SizesAreRoundedUpToWholeElementsInEachBlock) {
  EXPECT_EQ(bytes_of(make_case(Op::kAllReduce, DType::kF32, 3, 5_B, BlockPlace::kOut)), 8_B);
  EXPECT_EQ(bytes_of(make_case(Op::kAllGather, DType::kF32, 3, 4_B, BlockPlace::kOut)), 12_B);
  EXPECT_EQ(bytes_of(make_case(Op::kAllGather, DType::kF32, 3, 13_B, BlockPlace::kOut)), 24_B);
  EXPECT_EQ(bytes_of(make_case(Op::kBarrier, DType::kF32, 3, 4_B, BlockPlace::kOut)), 0_B);
}

TEST(CaseTest, InputsAndOutputsInOneMemoryStayInsideIt) {
  for (const Case& c : grid()) {
    for (Rank rank = 0; rank < c.ranks; ++rank) {
      const Placement where = placement(c, rank);
      if (where.sharing == Sharing::kApart) continue;
      const Elements room = std::max(input_count(c, rank), output_count(c, rank));
      EXPECT_LE(where.input + input_count(c, rank), room) << describe(c) << ", rank " << rank;
      EXPECT_LE(where.output + output_count(c, rank), room) << describe(c) << ", rank " << rank;
    }
  }
}

TEST(ValuesTest, TheExpectedOutputIsTheResultOfTheOperation) {
  for (const Case& c : grid()) {
    if (c.dtype != DType::kF32) continue;
    std::vector<std::vector<float>> inputs;
    for (Rank rank = 0; rank < c.ranks; ++rank) {
      Buffers buffers(c, rank);
      fill_input(buffers.input(), c, rank);
      inputs.push_back(floats(buffers.input()));
    }
    for (Rank rank = 0; rank < c.ranks; ++rank) {
      std::vector<float> output = meaning(c, rank, inputs);
      ASSERT_EQ(output.size(), static_cast<std::size_t>(output_count(c, rank).value))
          << describe(c);
      EXPECT_EQ(find_wrong(std::as_bytes(std::span(output)), c, rank), std::nullopt) << describe(c);
      if (output.empty()) continue;
      output.back() += 1;
      EXPECT_NE(find_wrong(std::as_bytes(std::span(output)), c, rank), std::nullopt) << describe(c);
    }
  }
}

TEST(ValuesTest, ASumOverAllRanksIsExactInEveryType) {
  for (const int ranks : {2, 8, 64}) {
    const auto most = [&](DType dtype) {
      return static_cast<float>(ranks * (modulus(dtype, ranks) - 1));
    };
    EXPECT_LE(most(DType::kI8), 127);
    EXPECT_EQ(static_cast<float>(BFloat16(most(DType::kBF16))), most(DType::kBF16));
    EXPECT_EQ(static_cast<float>(Float16(most(DType::kF16))), most(DType::kF16));
  }
}

TEST(ValuesTest, AMisplacedOrForeignValueIsFound) {
  int same_neighbour = 0;
  int same_rank = 0;
  for (std::int64_t i = 0; i < 1000; ++i) {
    same_neighbour += value_at(0, i, 1024) == value_at(0, i + 1, 1024) ? 1 : 0;
    same_rank += value_at(0, i, 1024) == value_at(1, i, 1024) ? 1 : 0;
  }
  EXPECT_LT(same_neighbour, 10);
  EXPECT_EQ(same_rank, 0);
}

TEST(ValuesTest, AWrongValueIsReportedWithItsIndex) {
  const Case c = make_case(Op::kAllReduce, DType::kI32, 2, 16_B, BlockPlace::kOut);
  Buffers buffers(c, 0);
  EXPECT_TRUE(find_wrong(buffers.output(), c, 0)->starts_with("index 0: got 0, expected "));
}

TEST(CaseTest, TheRequestedPlaceAppliesOnlyToSomeOperations) {
  for (const Op op : kAllOps) {
    const auto place = [&](BlockPlace asked) {
      return place_of(make_case(op, DType::kF32, 2, 64_B, asked));
    };
    const bool has_one_buffer = op == Op::kAllReduce || op == Op::kBroadcast || op == Op::kReduce;
    const bool has_a_choice =
        op == Op::kAllGather || op == Op::kReduceScatter || op == Op::kGather || op == Op::kScatter;
    EXPECT_EQ(place(BlockPlace::kOut), has_one_buffer ? BlockPlace::kIn : BlockPlace::kOut)
        << name_of(op);
    EXPECT_EQ(place(BlockPlace::kIn),
              has_one_buffer || has_a_choice ? BlockPlace::kIn : BlockPlace::kOut)
        << name_of(op);
  }
}

}  // namespace
}  // namespace peal::bench
