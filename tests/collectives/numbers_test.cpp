// Reductions of numbers at the edges of their types: averages of any numbers, and NaNs. Tested on
// several numbers of ranks, over every kind of transport, with every algorithm.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <tuple>
#include <type_traits>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "peal/base/testing/sanitized.h"
#include "peal/plan/plan.h"

#include "tests/support/fabric.h"
#include "tests/support/ranks.h"
#include "tests/support/seed.h"

namespace peal::testing {
namespace {

using Kind = ReduceOp::Kind;

// ---- types

template <class T>
inline constexpr bool kIsHalf = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;
template <class T>
inline constexpr bool kIsFraction = kIsHalf<T> || std::is_floating_point_v<T>;

/// A type's largest number, and u and s of base/reduce_op.h.
template <class T>
struct Edges;
template <>
struct Edges<Float16> {
  static constexpr double kMost = 65504, kU = 0x1p-11, kS = 0x1p-24;
};
template <>
struct Edges<BFloat16> {
  static constexpr double kMost = 0x1.fep127, kU = 0x1p-8, kS = 0x1p-133;
};
template <>
struct Edges<float> {
  static constexpr double kMost = 0x1.fffffep127, kU = 0x1p-24, kS = 0x1p-149;
};
template <>
struct Edges<double> {
  static constexpr double kMost = std::numeric_limits<double>::max(), kU = 0x1p-53, kS = 0x1p-1074;
};

template <class T>
long double wide(T value) {
  if constexpr (kIsHalf<T>) {
    return static_cast<float>(value);
  } else {
    return static_cast<long double>(value);
  }
}

template <class T>
T narrow(double value) {
  if constexpr (kIsHalf<T>) {
    return T(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

/// An unsigned integer of the same size.
template <class T>
using Word =
    std::tuple_element_t<std::bit_width(sizeof(T)) - 1,
                         std::tuple<std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t>>;

template <class T>
T random_bits(std::mt19937_64& random) {
  return std::bit_cast<T>(static_cast<Word<T>>(random()));
}

// ---- inputs. Each rank draws the numbers of all ranks, so that it knows the expected results.

/// By rank, then by element.
template <class T>
using Numbers = std::vector<std::vector<T>>;

template <class T, class Draw>
Numbers<T> drawn(int ranks, std::size_t count, Draw draw) {
  Numbers<T> all(static_cast<std::size_t>(ranks), std::vector<T>(count));
  for (std::size_t i = 0; i < count; ++i) {
    for (std::vector<T>& of_rank : all) of_rank[i] = draw(i);
  }
  return all;
}

/// 64 elements of each kind. The blocks of the ranks differ in size.
std::size_t count_for(int ranks) { return static_cast<std::size_t>(6 * 64 + ranks + 1); }

/// Fractions of six kinds, one after the other: alike on all ranks; near the largest of the type,
/// of one sign and of both; near the smallest; of a middle size; of any finite size.
template <class T>
Numbers<T> fractions(int ranks, std::mt19937_64& random) {
  using E = Edges<T>;
  std::uniform_real_distribution<double> part(0.5, 1.0);
  const auto sign = [&] { return random() % 2 == 0 ? 1.0 : -1.0; };
  const auto any = [&] {
    T value = random_bits<T>(random);
    while (!std::isfinite(static_cast<double>(wide(value)))) value = random_bits<T>(random);
    return value;
  };
  std::vector<T> alike(count_for(ranks));
  for (T& value : alike) value = any();
  return drawn<T>(ranks, count_for(ranks), [&](std::size_t i) -> T {
    const auto tiny = [&] { return E::kS * static_cast<double>(random() % 2000); };
    switch (i % 6) {
      case 0:
        return alike[i];
      case 1:
        return narrow<T>(E::kMost * (random() % 2 == 0 ? 1.0 : part(random)));
      case 2:
        return narrow<T>(sign() * E::kMost * part(random));
      case 3:
        return narrow<T>(sign() * tiny());
      case 4:
        return narrow<T>(sign() * part(random));
      default:
        return any();
    }
  });
}

/// The error in a rank's average; "" if it is right.
template <class T>
std::string compare_average(const Numbers<T>& given, std::size_t i, T actual) {
  const auto ranks = static_cast<long double>(given.size());
  if constexpr (!kIsFraction<T>) {
    std::uint64_t sum = 0;
    for (const auto& of_rank : given) sum += static_cast<std::uint64_t>(of_rank[i]);
    const T wrapped = static_cast<T>(sum);
    const T due = static_cast<T>(static_cast<std::int64_t>(wrapped) /
                                 static_cast<std::int64_t>(given.size()));
    if (actual == due) return "";
    return fmt::format("element {} is {}, not {}", i, std::int64_t{actual}, std::int64_t{due});
  } else {
    long double mean = 0;
    long double size = 0;
    for (const auto& of_rank : given) {
      mean += wide(of_rank[i]) / ranks;
      size += std::fabs(wide(of_rank[i])) / ranks;
    }
    const long double e = std::expm1((ranks + 1) * std::log1p(1.0L * Edges<T>::kU));
    const long double bound = e * size + (ranks + 1) * Edges<T>::kS;
    if (std::fabs(wide(actual) - mean) <= bound) return "";
    return fmt::format("element {} is {}, and the mean {}, {} off where {} is allowed",
                       i,
                       static_cast<double>(wide(actual)),
                       static_cast<double>(mean),
                       static_cast<double>(wide(actual) - mean),
                       static_cast<double>(bound));
  }
}

template <class T>
std::string compare_averages(const Numbers<T>& given,
                             std::size_t from,
                             const std::vector<T>& actual) {
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (std::string wrong = compare_average(given, from + i, actual[i]); !wrong.empty()) {
      return wrong;
    }
  }
  return "";
}

// ---- the operations

template <class T>
Buffer buffer(std::vector<T>& values, std::size_t from = 0, std::size_t count = SIZE_MAX) {
  const std::size_t all = std::min(count, values.size() - from);
  return Buffer(values.data() + from, Elements(static_cast<std::int64_t>(all)), dtype_of<T>);
}

/// The errors of a rank, and its results of the operations that give all ranks the same result.
struct Found {
  std::string wrong;
  std::vector<std::byte> common;

  template <class T>
  void keep(const std::vector<T>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    common.insert(common.end(), bytes.begin(), bytes.end());
  }
  void check(std::string_view what, DType dtype, std::string found) {
    if (!found.empty() && wrong.empty()) {
      wrong = fmt::format("{} of {}: {}", what, name_of(dtype), found);
    }
  }
};

/// The algorithms of each operation, so that no other algorithm runs instead.
struct Able {
  std::string algorithm;
  Fabric fabric;
  int ranks;

  bool operator()(Operation operation) const {
    return algorithm.empty() || plan::algorithm_named(algorithm).applies(
                                    {.operation = operation,
                                     .ranks = ranks,
                                     .ranks_per_host = ranks_per_host(fabric, ranks),
                                     .count = Elements(1),
                                     .stage_limit = Elements(1000)});
  }
};

template <class T>
void average_all(ProcessGroup& group, const Numbers<T>& given, Found& found) {
  const auto self = static_cast<std::size_t>(group.rank());
  std::vector<T> data = given[self];
  group.all_reduce(buffer(data), {.op = ReduceOp::kAvg});
  found.check("all_reduce", dtype_of<T>, compare_averages(given, 0, data));
  found.keep(data);
  data = given[self];
  const std::array list = {buffer(data, 0, 7), buffer(data, 7)};
  group.all_reduce_async(list, {.op = ReduceOp::kAvg})->wait();
  found.check("all_reduce of a list", dtype_of<T>, compare_averages(given, 0, data));
  found.keep(data);
  // If ranks share memory, they use each other's buffers.
  const Bytes size = bytes_of(Elements(std::ssize(data)), dtype_of<T>);
  const auto registered = group.allocate(size);
  std::memcpy(registered.get(), given[self].data(), static_cast<std::size_t>(size.value));
  group.all_reduce(Buffer(registered.get(), Elements(std::ssize(data)), dtype_of<T>),
                   {.op = ReduceOp::kAvg});
  std::memcpy(data.data(), registered.get(), static_cast<std::size_t>(size.value));
  found.check("all_reduce in place", dtype_of<T>, compare_averages(given, 0, data));
  found.keep(data);
}

template <class T>
void average_at_root(ProcessGroup& group, const Numbers<T>& given, Found& found) {
  const Rank root = group.size() - 1;
  const auto self = static_cast<std::size_t>(group.rank());
  std::vector<T> data = given[self];
  group.reduce(buffer(data), root, {.op = ReduceOp::kAvg});
  if (group.rank() == root) {
    found.check("reduce", dtype_of<T>, compare_averages(given, 0, data));
  }
  data = given[self];
  const std::array list = {buffer(data, 0, 7), buffer(data, 7)};
  group.reduce_async(list, root, {.op = ReduceOp::kAvg})->wait();
  if (group.rank() == root) {
    found.check("reduce of a list", dtype_of<T>, compare_averages(given, 0, data));
  }
}

template <class T>
void average_blocks(ProcessGroup& group, const Numbers<T>& given, Found& found) {
  const auto self = static_cast<std::size_t>(group.rank());
  std::vector<T> data = given[self];
  const std::size_t block = data.size() / given.size();
  std::vector<T> mine(block);
  group.reduce_scatter(buffer(data, 0, block * given.size()), buffer(mine), {.op = ReduceOp::kAvg});
  found.check("reduce_scatter", dtype_of<T>, compare_averages(given, block * self, mine));
  mine.assign(block, T());
  group
      .reduce_scatter_async(
          buffer(data, 0, block * given.size()), buffer(mine), {.op = ReduceOp::kAvg})
      ->wait();
  found.check("reduce_scatter, async", dtype_of<T>, compare_averages(given, block * self, mine));
}

template <class T>
void average(ProcessGroup& group, const Able& able, const Numbers<T>& given, Found& found) {
  if (able(Operation::kAllReduce)) average_all(group, given, found);
  if (able(Operation::kReduce)) average_at_root(group, given, found);
  if (able(Operation::kReduceScatter)) average_blocks(group, given, found);
}

template <class T>
void average_integers(ProcessGroup& group, const Able& able, Found& found) {
  std::mt19937_64 random(seed());
  average(group,
          able,
          drawn<T>(group.size(),
                   count_for(group.size()),
                   [&](std::size_t) { return random_bits<T>(random); }),
          found);
}

template <class T>
void average_fractions(ProcessGroup& group, const Able& able, Found& found) {
  std::mt19937_64 random(seed());
  average(group, able, fractions<T>(group.size(), random), found);
}

Found averages(ProcessGroup& group, const Able& able) {
  Found found;
  average_integers<std::uint8_t>(group, able, found);
  average_integers<std::int8_t>(group, able, found);
  average_integers<std::int16_t>(group, able, found);
  average_integers<std::int32_t>(group, able, found);
  average_integers<std::int64_t>(group, able, found);
  average_fractions<Float16>(group, able, found);
  average_fractions<BFloat16>(group, able, found);
  average_fractions<float>(group, able, found);
  average_fractions<double>(group, able, found);
  return found;
}

// ---- NaN

/// Random bits; a third of the elements are a NaN or an infinity.
template <class T>
std::vector<T> with_nans(std::mt19937_64& random, std::size_t count) {
  const auto exponent = std::bit_cast<Word<T>>(narrow<T>(std::numeric_limits<double>::infinity()));
  std::vector<T> values(count);
  for (T& value : values) {
    auto bits = static_cast<Word<T>>(random());
    if (random() % 3 == 0) bits |= exponent;
    value = std::bit_cast<T>(bits);
  }
  return values;
}

/// Describes the first NaN with other bits than the positive quiet NaN without payload; "" if all
/// NaNs have these bits.
template <class T>
std::string compare_nans(const std::vector<T>& values) {
  const T usual = narrow<T>(std::numeric_limits<double>::quiet_NaN());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isnan(static_cast<double>(wide(values[i])))) continue;
    if (std::bit_cast<Word<T>>(values[i]) != std::bit_cast<Word<T>>(usual)) {
      return fmt::format("element {} is a NaN with other bits", i);
    }
  }
  return "";
}

template <class T>
void reduce_nans(ProcessGroup& group, Found& found) {
  std::mt19937_64 random(seed() + static_cast<unsigned>(group.rank()));
  for (const Kind kind : kAllReduceOpKinds) {
    if (!has_meaning(kind, dtype_of<T>)) continue;
    const ReduceOp op = kind == Kind::kPremulSum ? ReduceOp::premul_sum(0.7) : ReduceOp{kind};
    for (const std::size_t count : {std::size_t{3}, std::size_t{1500}}) {
      std::vector<T> data = with_nans<T>(random, count);
      group.all_reduce(buffer(data), {.op = op});
      found.check(name_of(kind), dtype_of<T>, compare_nans(data));
      found.keep(data);
      if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
        if (!has_meaning(kind, dtype_of<std::complex<T>>)) continue;
        std::vector<T> parts = with_nans<T>(random, 2 * count);
        group.all_reduce(Buffer(parts.data(),
                                Elements(static_cast<std::int64_t>(count)),
                                dtype_of<std::complex<T>>),
                         {.op = op});
        found.check(name_of(kind), dtype_of<std::complex<T>>, compare_nans(parts));
        found.keep(parts);
      }
    }
  }
}

Found nans(ProcessGroup& group, const Able& able) {
  Found found;
  if (!able(Operation::kAllReduce)) return found;
  reduce_nans<Float16>(group, found);
  reduce_nans<BFloat16>(group, found);
  reduce_nans<float>(group, found);
  reduce_nans<double>(group, found);
  return found;
}

// ---- the tests

/// The built-in choice, "", and each algorithm. Under a sanitizer, each algorithm runs with one of
/// three successive numbers of ranks.
std::vector<std::string> algorithms_for(int ranks) {
  std::vector<std::string> names = {""};
  for (std::size_t i = 0; i < plan::algorithms().size(); ++i) {
    if (kSanitized && i % 3 != static_cast<std::size_t>(ranks) % 3) continue;
    names.emplace_back(plan::algorithms()[i].name);
  }
  return names;
}

/// Calls body(group, able) on every rank with each algorithm. Returns the errors in the ranks'
/// results, also if the bits differ between ranks.
template <class Body>
std::string failures_of(Fabric fabric, int ranks, Body body) {
  std::string all;
  for (const std::string& algorithm : algorithms_for(ranks)) {
    Config config;
    config.algorithm = algorithm;
    config.stage = 8_KiB;  // so that some staged data is cut into pieces
    Job job(fabric, ranks, config);
    const Able able{algorithm, fabric, ranks};
    const auto outcomes = on_group(job, [&](ProcessGroup& group) { return body(group, able); });
    for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
      const auto& [found, error, kind, cause] = outcomes[rank];
      std::string text = found.wrong + error;
      if (text.empty() && found.common != outcomes[0].result.common)
        text = "bits that differ from rank 0's";
      if (!text.empty()) all += fmt::format("{}: rank {}: {}\n", algorithm, rank, text);
    }
  }
  return all;
}

class NumbersTest : public ::testing::TestWithParam<std::tuple<Fabric, int>> {};

/// A group of one rank keeps its NaNs.
class NanTest : public NumbersTest {};

TEST_P(NumbersTest, AveragesAreWithinTheirBoundAndTheSameBitsOnAllRanks) {
  const auto [fabric, ranks] = GetParam();
  EXPECT_EQ(failures_of(fabric, ranks, averages), "");
}

template <class T>
void average_equals(ProcessGroup& group, double number, Found& found) {
  std::vector<T> data(200, narrow<T>(number));
  group.all_reduce(buffer(data), {.op = ReduceOp::kAvg});
  const bool all =
      std::ranges::all_of(data, [&](T value) { return wide(value) == wide(narrow<T>(number)); });
  const auto actual = static_cast<double>(wide(data[0]));
  found.check(
      "all_reduce", dtype_of<T>, all ? "" : fmt::format("{} instead of {}", actual, number));
}

/// Every algorithm for up to five ranks. From six ranks on, a 16-bit sum that passes along all
/// ranks is rounded so often that it may become the next number. So there only the default
/// algorithm is tested.
TEST_P(NumbersTest, AnAverageOfEqualNumbersIsThatNumber) {
  const auto [fabric, ranks] = GetParam();
  const auto body = [many = ranks > 5](ProcessGroup& group, const Able& able) {
    Found found;
    if (!able(Operation::kAllReduce)) return found;
    if (!many || able.algorithm.empty()) {
      for (const double number : {40000.0, 1.0, 0.0, -65504.0}) {
        average_equals<Float16>(group, number, found);
      }
      average_equals<BFloat16>(group, 40192.0, found);
    }
    average_equals<float>(group, 40000.0, found);
    average_equals<double>(group, 40000.0, found);
    average_equals<std::int32_t>(group, -40000.0, found);
    return found;
  };
  EXPECT_EQ(failures_of(fabric, ranks, body), "");
}

TEST_P(NanTest, EveryNanIsTheSameOnAllRanks) {
  const auto [fabric, ranks] = GetParam();
  EXPECT_EQ(failures_of(fabric, ranks, nans), "");
}

TEST(BoolsTest, AnAverageOfBoolsIsUnsupported) {
  for (const int ranks : {1, 2}) {
    Job job(Fabric::kMemory, ranks);
    const auto outcomes = on_group(job, [](ProcessGroup& group) {
      bool value = true;
      try {
        group.all_reduce(Buffer(&value, Elements(1), DType::kBool), {.op = ReduceOp::kAvg});
      } catch (const Error& error) {
        const std::string said = error.what();
        if (error.kind() == ErrorKind::kUnsupported &&
            said.find("avg has no meaning for bool") != std::string::npos) {
          return std::string();
        }
        return said;
      }
      return std::string("accepted");
    });
    EXPECT_EQ(complaints(outcomes), "");
  }
}

const auto kName = [](const auto& instance) {
  return name_of(std::get<0>(instance.param)) + "_" + std::to_string(std::get<1>(instance.param));
};

const auto kFabrics = ::testing::Values(
    Fabric::kMemory, Fabric::kHosts, Fabric::kShm, Fabric::kTcp, Fabric::kShortWrites);
const std::vector kSeveralRanks =
    kSanitized ? std::vector{3, 4, 5} : std::vector{2, 3, 4, 5, 6, 7, 8, 9};

INSTANTIATE_TEST_SUITE_P(OneRank,
                         NumbersTest,
                         ::testing::Combine(kFabrics, ::testing::Values(1)),
                         kName);
INSTANTIATE_TEST_SUITE_P(Fabrics,
                         NumbersTest,
                         ::testing::Combine(kFabrics, ::testing::ValuesIn(kSeveralRanks)),
                         kName);
INSTANTIATE_TEST_SUITE_P(Fabrics,
                         NanTest,
                         ::testing::Combine(kFabrics, ::testing::ValuesIn(kSeveralRanks)),
                         kName);

}  // namespace
}  // namespace peal::testing
