#include "peal/bench/values.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "peal/base/error.h"

namespace peal::bench {
namespace {

/// Calls body(T()) with the C++ type of `dtype`, which must be one of the listed types.
template <class T, class... Others, class Body>
auto with_type_of(DType dtype, const Body& body) {
  if (dtype == dtype_of<T>) return body(T());
  if constexpr (sizeof...(Others) > 0) return with_type_of<Others...>(dtype, body);
  throw Error(ErrorKind::kUnsupported, fmt::format("{} is not measured", name_of(dtype)));
}

/// The same for all types that are measured.
template <class Body>
auto with_type(DType dtype, const Body& body) {
  return with_type_of<float,
                      double,
                      BFloat16,
                      Float16,
                      std::int64_t,
                      std::int32_t,
                      std::int16_t,
                      std::int8_t,
                      std::uint8_t>(dtype, body);
}

template <class T>
T from_int(int value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<T>(value);
  } else {
    return T(static_cast<float>(value));
  }
}

template <class T>
double to_double(T value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<double>(value);
  } else {
    return static_cast<double>(static_cast<float>(value));
  }
}

/// The index of a rank's first input element in the whole.
std::int64_t input_begin(const Case& c, Rank rank) {
  const bool has_own_block = c.op == Op::kAllGather || c.op == Op::kGather;
  return has_own_block ? rank * c.count.value : 0;
}

int sum_at(std::int64_t index, int ranks, int modulus) {
  int sum = 0;
  for (Rank rank = 0; rank < ranks; ++rank) sum += value_at(rank, index, modulus);
  return sum;
}

/// The right value at `index` of the output of `rank`.
int expected_at(const Case& c, Rank rank, std::int64_t index, int modulus) {
  const std::int64_t block = c.count.value;
  switch (c.op) {
    case Op::kAllReduce:
    case Op::kReduce:
      return sum_at(index, c.ranks, modulus);
    case Op::kReduceScatter:
      return sum_at(rank * block + index, c.ranks, modulus);
    case Op::kBroadcast:
      return value_at(kRoot, index, modulus);
    case Op::kScatter:
      return value_at(kRoot, rank * block + index, modulus);
    case Op::kAllGather:
    case Op::kGather:
      return value_at(static_cast<Rank>(index / block), index, modulus);
    case Op::kAllToAll:
      return value_at(static_cast<Rank>(index / block), rank * block + index % block, modulus);
    case Op::kSendRecv:
      return value_at(rank == 0 ? c.ranks - 1 : 0, index, modulus);
    case Op::kBarrier:
      return 0;
  }
  return 0;
}

}  // namespace

int modulus(DType dtype, int ranks) {
  const bool is_byte = size_of(dtype) == 1_B;
  const int largest = is_byte ? 127 : dtype == DType::kBF16 ? 256 : 2048;  // 8, 9 and 12 bits
  return std::max(2, largest / ranks);
}

void fill_input(std::span<std::byte> input, const Case& c, Rank rank) {
  const int m = modulus(c.dtype, c.ranks);
  const std::int64_t begin = input_begin(c, rank);
  with_type(c.dtype, [&]<class T>(T) {
    auto* values = reinterpret_cast<T*>(input.data());
    const auto count = static_cast<std::int64_t>(input.size() / sizeof(T));
    for (std::int64_t i = 0; i < count; ++i) values[i] = from_int<T>(value_at(rank, begin + i, m));
  });
}

std::optional<std::string> find_wrong(std::span<const std::byte> output, const Case& c, Rank rank) {
  const int m = modulus(c.dtype, c.ranks);
  return with_type(c.dtype, [&]<class T>(T) -> std::optional<std::string> {
    const auto* values = reinterpret_cast<const T*>(output.data());
    const auto count = static_cast<std::int64_t>(output.size() / sizeof(T));
    for (std::int64_t i = 0; i < count; ++i) {
      const int expected = expected_at(c, rank, i, m);
      const double got = to_double(values[i]);
      if (got == expected) continue;
      return fmt::format("index {}: got {}, expected {}", i, got, expected);
    }
    return std::nullopt;
  });
}

void rewrite(std::span<std::byte> input, DType dtype) {
  if (input.empty()) return;  // its pointer may be null, which memcpy does not accept
  std::uint64_t word = 0;
  with_type(dtype, [&]<class T>(T) {
    std::array<T, sizeof word / sizeof(T)> ones;
    ones.fill(from_int<T>(1));
    word = std::bit_cast<std::uint64_t>(ones);
  });
  // Hides the value: for equal bytes the compiler would call memset, which bypasses the caches for
  // large memory.
  __asm__ volatile("" : "+r"(word));
  const std::size_t whole = input.size() / sizeof word;
  for (std::size_t i = 0; i < whole; ++i) {
    std::memcpy(input.data() + i * sizeof word, &word, sizeof word);
  }
  const auto rest = input.subspan(whole * sizeof word);
  const auto element = static_cast<std::size_t>(size_of(dtype).value);
  std::memcpy(rest.data(), &word, rest.size() / element * element);
}

bool is_measured(DType dtype) {
  return dtype != DType::kBool && dtype != DType::kC64 && dtype != DType::kC128;
}

}  // namespace peal::bench
