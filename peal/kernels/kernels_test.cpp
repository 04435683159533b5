#include "peal/kernels/kernels.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "peal/base/error.h"
#include "peal/base/testing/error_of.h"
#include "peal/base/testing/sanitized.h"
#include "peal/kernels/testing/every_target.h"
#include "peal/kernels/testing/reference.h"

namespace peal::kernels {
namespace {

using Kind = ReduceOp::Kind;

constexpr std::size_t kMost = 1000;
constexpr std::array<std::size_t, 13> kCounts = {0, 1, 2, 7, 8, 15, 16, 17, 31, 33, 64, 100, kMost};

class KernelsTest : public EveryTarget {};
INSTANTIATE_TEST_SUITE_P(Targets,
                         KernelsTest,
                         testing::ValuesIn(targets_of_this_cpu()),
                         target_name);

/// Memory at a chosen distance from the beginning of a line, with guards on both sides.
class Placed {
 public:
  Placed(std::size_t size, std::size_t shift)
      : memory_(kGuard + kLine + shift + size + kGuard, kFiller),
        start_(kGuard + shift + (0 - address(memory_.data() + kGuard)) % kLine),
        size_(size) {}
  Placed(const Memory& content, std::size_t size, std::size_t shift) : Placed(size, shift) {
    std::copy_n(content.begin(), size, data());
  }
  std::byte* data() { return memory_.data() + start_; }
  const std::byte* data() const { return memory_.data() + start_; }
  bool guards_stand() const {
    const auto first = memory_.begin();
    const auto is_filler = [](std::byte b) { return b == kFiller; };
    return std::all_of(first, first + static_cast<std::ptrdiff_t>(start_), is_filler) &&
           std::all_of(
               first + static_cast<std::ptrdiff_t>(start_ + size_), memory_.end(), is_filler);
  }

 private:
  static std::size_t address(const std::byte* p) { return reinterpret_cast<std::uintptr_t>(p); }

  static constexpr std::size_t kGuard = 64;
  static constexpr std::size_t kLine = 64;
  static constexpr std::byte kFiller{0xa5};
  Memory memory_;
  std::size_t start_;
  std::size_t size_;
};

std::vector<const std::byte*> addresses_to_read(std::vector<Placed>& memories) {
  std::vector<const std::byte*> addresses;
  for (Placed& memory : memories) addresses.push_back(memory.data());
  return addresses;
}

std::vector<std::byte*> addresses_to_write(std::vector<Placed>& memories) {
  std::vector<std::byte*> addresses;
  for (Placed& memory : memories) addresses.push_back(memory.data());
  return addresses;
}

/// The first index at which `actual` differs from `expected`; nothing if they are equal.
template <class T>
std::optional<std::size_t> first_difference(const std::byte* actual,
                                            const Memory& expected,
                                            std::size_t count) {
  if (std::equal(actual, actual + count * sizeof(T), expected.begin())) return {};
  const auto wrong = std::mismatch(actual, actual + count * sizeof(T), expected.begin());
  return static_cast<std::size_t>(wrong.first - actual) / sizeof(T);
}

/// A reduction out of place. Places are offsets from the beginning of a line.
struct Case {
  Kind op = Kind::kSum;
  Finish finish = {};
  std::size_t count = kMost;
  std::size_t outputs = 1;
  std::size_t input_shift = 0;  // from the place of one input to that of the next
  std::size_t output_place = 0;
  std::size_t output_shift = 0;
  Stores stores = Stores::kCached;
  std::vector<double> weights = {};
};

/// Expects every output as computed, nothing written beside it, and unchanged inputs.
template <class T>
void expect_reduces(const std::vector<Memory>& inputs, const Memory& expected, const Case& c) {
  const std::size_t size = c.count * sizeof(T);
  std::vector<Placed> from;
  std::vector<Placed> to;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    from.emplace_back(inputs[k], size, c.input_shift * k);
  }
  for (std::size_t k = 0; k < c.outputs; ++k) {
    to.emplace_back(size, c.output_place + c.output_shift * k);
  }
  Reducer(dtype_of<T>, c.op, c.finish)(addresses_to_read(from),
                                       addresses_to_write(to),
                                       Elements(static_cast<std::int64_t>(c.count)),
                                       c.stores,
                                       c.weights);
  const std::string what =
      fmt::format("{} of {}, {} {}inputs {} apart, {} outputs from {} on {} apart, {} elements, {}",
                  name_of(c.op),
                  name_of(dtype_of<T>),
                  inputs.size(),
                  c.weights.empty() ? "" : "weighted ",
                  c.input_shift,
                  c.outputs,
                  c.output_place,
                  c.output_shift,
                  c.count,
                  c.stores == Stores::kStreaming ? "streaming" : "cached");
  for (const Placed& output : to) {
    ASSERT_EQ(first_difference<T>(output.data(), expected, c.count), std::nullopt) << what;
    ASSERT_TRUE(output.guards_stand()) << what;
  }
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    ASSERT_TRUE(std::equal(from[k].data(), from[k].data() + size, inputs[k].begin())) << what;
  }
}

const std::vector<std::size_t> kInputCounts =
    kSanitized ? std::vector<std::size_t>{1, 2, 9} : std::vector<std::size_t>{1, 2, 3, 4, 5, 9, 19};

std::vector<Case> all_shapes(Kind op, Finish finish, const std::vector<double>& weights) {
  std::vector<Case> cases;
  for (const std::size_t count : kCounts) {
    for (const std::size_t outputs : {1, 2, 3}) {
      for (const std::size_t shift : {0, 1}) {
        cases.push_back({.op = op,
                         .finish = finish,
                         .count = count,
                         .outputs = outputs,
                         .input_shift = shift,
                         .output_place = shift,
                         .output_shift = shift});
      }
    }
    cases.push_back({.op = op,
                     .finish = finish,
                     .count = count,
                     .outputs = 2,
                     .input_shift = 1,
                     .output_place = 48,
                     .stores = Stores::kStreaming});
  }
  for (Case& c : cases) c.weights = weights;
  return cases;
}

/// Three choices of weights: none, the same weight for all, and the mixed weights of an average.
template <class T>
std::vector<std::vector<double>> weights_for(Kind op, std::size_t inputs) {
  std::vector<std::vector<double>> all = {{}};
  if (op != Kind::kAvg || !(is_floating(dtype_of<T>) || is_complex(dtype_of<T>))) return all;
  all.emplace_back(inputs, 0.125);
  for (std::size_t k = 0; k < inputs; k += 2) all.back()[k] = 1.0;
  if (!kSanitized) all.emplace_back(inputs, 0.125);
  return all;
}

template <class T>
void expect_reduces_all_shapes(Kind op) {
  std::mt19937_64 random(20240607);
  for (const double divisor : {1.0, 3.0, 4.0}) {
    if (divisor != 1.0 && op != Kind::kAvg) continue;
    for (const std::size_t input_count : kInputCounts) {
      std::vector<Memory> inputs;
      for (std::size_t k = 0; k < input_count; ++k) {
        inputs.push_back(random_memory<T>(kMost, random));
      }
      for (const std::vector<double>& weights : weights_for<T>(op, input_count)) {
        const Memory expected = reference<T>(inputs, op, divisor, weights);
        for (const Case& c : all_shapes(op, {divisor}, weights)) {
          expect_reduces<T>(inputs, expected, c);
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST_P(KernelsTest, ReductionsGiveTheSameBitsAsAScalarLoop) {
  with_each_type([]<class T>(T) {
    for (const Kind op : kAllReduceOpKinds) {
      if (has_meaning(op, dtype_of<T>)) expect_reduces_all_shapes<T>(op);
    }
  });
}

TEST_P(KernelsTest, ManyLargeInputsAreReducedInOrder) {
  constexpr std::size_t kCount = 20'001;
  std::mt19937_64 random(6);
  for (const std::size_t input_count : {16, 17, 40}) {
    std::vector<Memory> inputs;
    for (std::size_t k = 0; k < input_count; ++k) {
      inputs.push_back(random_memory<BFloat16>(kCount, random));
    }
    const Memory expected = reference<BFloat16>(inputs, Kind::kAvg, 40.0);
    expect_reduces<BFloat16>(inputs,
                             expected,
                             {.op = Kind::kAvg,
                              .finish = {40.0},
                              .count = kCount,
                              .outputs = 2,
                              .input_shift = 1,
                              .output_shift = 1});
  }
}

TEST_P(KernelsTest, StreamingStoresGiveTheSameBitsAtAnyAddress) {
  std::mt19937_64 random(11);
  const std::vector<Memory> inputs = {random_memory<float>(kMost, random),
                                      random_memory<float>(kMost, random)};
  const Memory expected = reference<float>(inputs, Kind::kSum, 1.0);
  for (std::size_t place = 0; place < 64; ++place) {
    for (const std::size_t output_shift : {0, 1, 4}) {
      for (const std::size_t count : {std::size_t{1}, std::size_t{40}, kMost}) {
        expect_reduces<float>(inputs,
                              expected,
                              {.count = count,
                               .outputs = 3,
                               .input_shift = place,
                               .output_place = place,
                               .output_shift = output_shift,
                               .stores = Stores::kStreaming});
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(KernelsTest, AReducerCanBeUsedRepeatedly) {
  std::mt19937_64 random(13);
  const Reducer average(DType::kF16, Kind::kAvg, {.divisor = 3.0});
  for (const std::size_t input_count : {1, 2, 3}) {
    std::vector<Memory> inputs;
    std::vector<const std::byte*> from;
    for (std::size_t k = 0; k < input_count; ++k) {
      inputs.push_back(random_memory<Float16>(kMost, random));
    }
    for (const Memory& input : inputs) from.push_back(input.data());
    Memory output(inputs[0].size());
    const std::array to = {output.data()};
    average(from, to, Elements(kMost));
    const Memory expected = reference<Float16>(inputs, Kind::kAvg, 3.0);
    EXPECT_EQ(first_difference<Float16>(output.data(), expected, kMost), std::nullopt);
  }
}

TEST_P(KernelsTest, AnOutputMayBeAnyOfTheInputs) {
  with_each_type([]<class T>(T) {
    std::mt19937_64 random(7);
    for (const std::size_t count : kCounts) {
      std::vector<Memory> inputs;
      for (int k = 0; k < 3; ++k) inputs.push_back(random_memory<T>(count, random));
      const Memory expected = reference<T>(inputs, Kind::kSum, 1.0);
      for (std::size_t own = 0; own < inputs.size(); ++own) {
        std::vector<Memory> work = inputs;
        Memory other(work[0].size());
        const std::vector<const std::byte*> from = {work[0].data(), work[1].data(), work[2].data()};
        const std::vector<std::byte*> to = {work[own].data(), other.data()};
        const Elements elements(static_cast<std::int64_t>(count));
        Reducer(dtype_of<T>, Kind::kSum)(from, to, elements);
        EXPECT_EQ(first_difference<T>(work[own].data(), expected, count), std::nullopt);
        EXPECT_EQ(first_difference<T>(other.data(), expected, count), std::nullopt);
      }
    }
  });
}

TEST_P(KernelsTest, TwoInputsAreReducedInPlace) {
  with_each_type([]<class T>(T) {
    std::mt19937_64 random(8);
    std::vector<Memory> inputs = {random_memory<T>(kMost, random), random_memory<T>(kMost, random)};
    const Memory expected = reference<T>(inputs, Kind::kProduct, 1.0);
    const std::array<const std::byte*, 2> from = {inputs[0].data(), inputs[1].data()};
    const std::array to = {inputs[0].data()};
    Reducer(dtype_of<T>, Kind::kProduct)(from, to, Elements(kMost));
    EXPECT_EQ(first_difference<T>(inputs[0].data(), expected, kMost), std::nullopt);
  });
}

TEST_P(KernelsTest, ScalingGivesTheSameBitsAsAScalarLoop) {
  with_each_type([]<class T>(T) {
    if constexpr (kIsComplex<T> || std::is_floating_point_v<Wide<T>>) {
      std::mt19937_64 random(9);
      const Memory from = random_memory<T>(kMost, random);
      const Memory expected = scaled_reference<T>(from, 0.3);
      for (const std::size_t count : kCounts) {
        Placed source(from, count * sizeof(T), 1);
        Placed target(count * sizeof(T), 3);
        const auto elements = Elements(static_cast<std::int64_t>(count));
        scale(source.data(), target.data(), elements, dtype_of<T>, 0.3);
        scale(source.data(), source.data(), elements, dtype_of<T>, 0.3);
        EXPECT_EQ(first_difference<T>(target.data(), expected, count), std::nullopt);
        EXPECT_EQ(first_difference<T>(source.data(), expected, count), std::nullopt);
        EXPECT_TRUE(target.guards_stand() && source.guards_stand());
      }
    }
  });
}

/// The message of the unsupported error that `call` throws.
template <class Call>
std::string unsupported(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
    return error.what();
  }
  return "nothing was thrown";
}

TEST(KernelsArgumentsTest, UnsupportedErrorsNameOperatorAndType) {
  std::array<std::byte, 16> memory{};
  const std::array<const std::byte*, 1> from = {memory.data()};
  const std::array to = {memory.data()};
  int refused = 0;
  for (const DType dtype : kAllDTypes) {
    for (const Kind op : kAllReduceOpKinds) {
      if (has_meaning(op, dtype)) continue;
      ++refused;
      EXPECT_THAT(unsupported([&] { Reducer(dtype, op)(from, to, Elements(1)); }),
                  testing::AllOf(testing::HasSubstr(std::string(name_of(op))),
                                 testing::HasSubstr(std::string(name_of(dtype)))));
    }
  }
  EXPECT_EQ(refused, 6 * 1 + 1 + 4 * 3 + 2 * 5);
}

TEST(KernelsArgumentsTest, OnlyAveragesAndFloatingSumsCanBeDivided) {
  std::array<std::byte, 16> memory{};
  const std::array<const std::byte*, 1> from = {memory.data()};
  const std::array to = {memory.data()};
  const auto divide = [&](DType dtype, Kind op) {
    Reducer(dtype, op, Finish{2.0})(from, to, Elements(1));
  };
  EXPECT_NO_THROW(divide(DType::kF32, Kind::kSum));
  EXPECT_NO_THROW(divide(DType::kI32, Kind::kAvg));
  EXPECT_THAT(unsupported([&] { divide(DType::kF32, Kind::kMax); }), testing::HasSubstr("max"));
  EXPECT_THAT(unsupported([&] { divide(DType::kI32, Kind::kSum); }), testing::HasSubstr("i32"));
}

TEST(KernelsArgumentsTest, IntegersCanOnlyBeDividedByWholeNumbers) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double divisor : {2.5, 0.5, 0.0, -2.0, 0x1p63, infinity, std::nan("")}) {
    for (const DType dtype : kAllDTypes) {
      if (!has_meaning(Kind::kAvg, dtype)) continue;
      const auto make = [&] { Reducer(dtype, Kind::kAvg, Finish{divisor}); };
      if (is_floating(dtype) || is_complex(dtype)) {
        EXPECT_NO_THROW(make()) << name_of(dtype) << " by " << divisor;
      } else {
        const Error error = error_of(make);
        EXPECT_EQ(error.kind(), ErrorKind::kUsage) << error.what();
        EXPECT_THAT(error.what(), testing::HasSubstr(std::string(name_of(dtype))));
      }
    }
  }
}

TEST(KernelsArgumentsTest, OnlyFloatingSumsHaveWeightsAndEachInputNeedsOne) {
  std::array<std::byte, 16> memory{};
  const std::array<const std::byte*, 2> from = {memory.data(), memory.data()};
  const std::array to = {memory.data()};
  const auto weigh = [&](DType dtype, Kind op, std::size_t count) {
    const std::vector<double> weights(count, 0.5);
    Reducer(dtype, op)(from, to, Elements(1), Stores::kCached, weights);
  };
  EXPECT_NO_THROW(weigh(DType::kC64, Kind::kSum, 2));
  EXPECT_THAT(unsupported([&] { weigh(DType::kF32, Kind::kProduct, 2); }),
              testing::HasSubstr("only sums of floating"));
  EXPECT_THAT(unsupported([&] { weigh(DType::kI32, Kind::kAvg, 2); }),
              testing::HasSubstr("only sums of floating"));
  for (const std::size_t count : {1, 3}) {
    try {
      weigh(DType::kF32, Kind::kAvg, count);
      FAIL() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      EXPECT_THAT(error.what(), testing::HasSubstr("weights for 2 inputs"));
    }
  }
}

TEST(KernelsArgumentsTest, ErrorsOfScalingIntegersNameTheType) {
  std::array<std::byte, 4> memory{};
  EXPECT_THAT(
      unsupported([&] { scale(memory.data(), memory.data(), Elements(1), DType::kI32, 2.0); }),
      testing::HasSubstr("i32"));
}

TEST(KernelsArgumentsTest, AReductionWithoutInputsOrOutputsIsAUsageError) {
  std::array<std::byte, 4> memory{};
  const std::array<const std::byte*, 1> from = {memory.data()};
  const std::array to = {memory.data()};
  for (const auto& [inputs, outputs] : {std::pair{0, 1}, std::pair{1, 0}}) {
    try {
      Reducer(DType::kF32, Kind::kSum)(std::span(from).first(static_cast<std::size_t>(inputs)),
                                       std::span(to).first(static_cast<std::size_t>(outputs)),
                                       Elements(1));
      FAIL() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    }
  }
}

TEST(KernelsArgumentsTest, CopiesExactlyTheRequestedBytes) {
  std::mt19937_64 random(10);
  const Memory from = random_memory<std::uint8_t>(kMost, random);
  for (const std::size_t size : kCounts) {
    Placed target(size, 1);
    copy(from.data(), target.data(), Bytes(static_cast<std::int64_t>(size)));
    EXPECT_TRUE(std::equal(target.data(), target.data() + size, from.begin()));
    EXPECT_TRUE(target.guards_stand());
  }
  copy(nullptr, nullptr, 0_B);
}

TEST_P(KernelsTest, CopiesToSeveralTargetsAtAnyAddress) {
  constexpr std::size_t kSize = 40'000;  // more than one piece
  std::mt19937_64 random(12);
  const Memory content = random_memory<std::uint8_t>(kSize, random);
  for (const Stores stores : {Stores::kCached, Stores::kStreaming}) {
    for (std::size_t shift = 0; shift < 64; ++shift) {
      for (const std::size_t size : {std::size_t{0}, std::size_t{70}, kSize}) {
        Placed source(content, size, 63 - shift);
        std::vector<Placed> placed = {{size, shift}, {size, 2 * shift}};
        std::vector<std::byte*> targets = addresses_to_write(placed);
        targets.push_back(source.data());
        copy(source.data(), targets, Bytes(static_cast<std::int64_t>(size)), stores);
        for (const std::byte* target : targets) {
          ASSERT_TRUE(std::equal(target, target + size, content.begin())) << shift << " " << size;
        }
        ASSERT_TRUE(placed[0].guards_stand() && placed[1].guards_stand()) << shift << " " << size;
      }
    }
  }
}

}  // namespace
}  // namespace peal::kernels
