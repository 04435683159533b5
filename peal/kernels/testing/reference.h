// Reference results for the tests of the kernels: reduce and scale in plain C++, one element at a
// time, and test data.
#pragma once

#include <array>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "peal/base/dtype.h"
#include "peal/base/reduce_op.h"

namespace peal::kernels {

using Memory = std::vector<std::byte>;

template <class T>
inline constexpr bool kIsHalf = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;
template <class T>
inline constexpr bool kIsComplex = false;
template <class T>
inline constexpr bool kIsComplex<std::complex<T>> = true;

/// The type in which T is accumulated.
template <class T>
using Wide = std::conditional_t<kIsHalf<T>, float, T>;

/// The type of the parts of a number: for a complex number, the type of its real part.
template <class T>
struct PartOf {
  using Type = T;
};
template <class T>
struct PartOf<std::complex<T>> {
  using Type = T;
};

/// a op b
template <class T>
T combined(T a, T b, ReduceOp::Kind op) {
  if constexpr (std::is_same_v<T, bool>) {
    if (op == ReduceOp::Kind::kBxor) return a != b;
    const bool both =
        op == ReduceOp::Kind::kProduct || op == ReduceOp::Kind::kMin || op == ReduceOp::Kind::kBand;
    return both ? a && b : a || b;
  } else if constexpr (kIsComplex<T>) {
    if (op != ReduceOp::Kind::kProduct) return {a.real() + b.real(), a.imag() + b.imag()};
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  } else if constexpr (std::is_integral_v<T>) {
    const auto x = static_cast<std::uint64_t>(a);
    const auto y = static_cast<std::uint64_t>(b);
    if (op == ReduceOp::Kind::kMin) return b < a ? b : a;
    if (op == ReduceOp::Kind::kMax) return b > a ? b : a;
    if (op == ReduceOp::Kind::kProduct) return static_cast<T>(x * y);
    if (op == ReduceOp::Kind::kBand) return static_cast<T>(x & y);
    if (op == ReduceOp::Kind::kBor) return static_cast<T>(x | y);
    if (op == ReduceOp::Kind::kBxor) return static_cast<T>(x ^ y);
    return static_cast<T>(x + y);
  } else {
    if (op == ReduceOp::Kind::kMin) return b < a || std::isnan(b) ? b : a;
    if (op == ReduceOp::Kind::kMax) return b > a || std::isnan(b) ? b : a;
    return op == ReduceOp::Kind::kProduct ? a * b : a + b;
  }
}

template <class T>
T divided(T value, double divisor) {
  if constexpr (kIsComplex<T>) {
    return {divided(value.real(), divisor), divided(value.imag(), divisor)};
  } else if constexpr (std::is_floating_point_v<T>) {
    return value / static_cast<T>(divisor);
  } else {
    return static_cast<T>(static_cast<std::int64_t>(value) / static_cast<std::int64_t>(divisor));
  }
}

/// weight * value
template <class T>
T weighted(T value, double weight) {
  if constexpr (kIsComplex<T>) {
    return {weighted(value.real(), weight), weighted(value.imag(), weight)};
  } else if constexpr (std::is_floating_point_v<T>) {
    return value * static_cast<T>(weight);
  } else {
    return value;
  }
}

/// acc + weight * value, rounded once
template <class T>
T weighted_sum(T acc, T value, double weight) {
  if constexpr (kIsComplex<T>) {
    return {weighted_sum(acc.real(), value.real(), weight),
            weighted_sum(acc.imag(), value.imag(), weight)};
  } else if constexpr (std::is_floating_point_v<T>) {
    return std::fma(static_cast<T>(weight), value, acc);
  } else {
    return acc;
  }
}

/// Every NaN in a result is the positive quiet NaN.
template <class T>
T with_canonical_nan(T value) {
  if constexpr (kIsComplex<T>) {
    return {with_canonical_nan(value.real()), with_canonical_nan(value.imag())};
  } else if constexpr (std::is_floating_point_v<T>) {
    return std::isnan(value) ? std::numeric_limits<T>::quiet_NaN() : value;
  } else {
    return value;
  }
}

/// Element i. For truth values, any nonzero byte is true.
template <class T>
T element(const Memory& memory, std::size_t i) {
  if constexpr (std::is_same_v<T, bool>) {
    return memory[i] != std::byte{0};
  } else {
    T value;
    std::memcpy(&value, memory.data() + i * sizeof(T), sizeof(T));
    return value;
  }
}

/// finish(weights[0] * inputs[0] op weights[1] * inputs[1] op ...), left to right. Without weights,
/// all weights are 1.
template <class T>
Memory reference(const std::vector<Memory>& inputs,
                 ReduceOp::Kind op,
                 double divisor,
                 const std::vector<double>& weights = {}) {
  const auto operand = [&](std::size_t k, std::size_t i) {
    return static_cast<Wide<T>>(element<T>(inputs[k], i));
  };
  const std::size_t count = inputs[0].size() / sizeof(T);
  Memory output(inputs[0].size());
  for (std::size_t i = 0; i < count; ++i) {
    auto value = weights.empty() ? operand(0, i) : weighted(operand(0, i), weights[0]);
    for (std::size_t k = 1; k < inputs.size(); ++k) {
      value = weights.empty() ? combined<Wide<T>>(value, operand(k, i), op)
                              : weighted_sum(value, operand(k, i), weights[k]);
    }
    const auto rounded = static_cast<T>(with_canonical_nan(divided(value, divisor)));
    std::memcpy(output.data() + i * sizeof(T), &rounded, sizeof(T));
  }
  return output;
}

template <class T>
Memory scaled_reference(const Memory& from, double factor) {
  using Part = typename PartOf<Wide<T>>::Type;
  Memory to(from.size());
  for (std::size_t i = 0; i < from.size() / sizeof(T); ++i) {
    const auto wide = static_cast<Wide<T>>(element<T>(from, i)) * static_cast<Part>(factor);
    const auto value = static_cast<T>(with_canonical_nan(wide));
    std::memcpy(to.data() + i * sizeof(T), &value, sizeof(T));
  }
  return to;
}

/// A value at an edge of T's range.
template <class T>
T special(std::mt19937_64& random) {
  if constexpr (kIsComplex<T>) {
    using Real = typename T::value_type;
    return {special<Real>(random), special<Real>(random)};
  } else if constexpr (std::is_floating_point_v<Wide<T>>) {
    using Limits = std::numeric_limits<Wide<T>>;
    const std::array values = {Wide<T>(0),
                               -Wide<T>(0),
                               Wide<T>(1),
                               Wide<T>(-1.5),
                               Limits::infinity(),
                               -Limits::infinity(),
                               Limits::quiet_NaN(),
                               Limits::denorm_min(),
                               Limits::max()};
    return static_cast<T>(values[random() % values.size()]);
  } else {
    const std::array values = {
        T(0), T(1), std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
    return values[random() % values.size()];
  }
}

/// Random bits, which give every magnitude. Every fourth element is a special value.
template <class T>
Memory random_memory(std::size_t count, std::mt19937_64& random) {
  Memory memory(count * sizeof(T));
  for (std::byte& byte : memory) byte = static_cast<std::byte>(random());
  for (std::size_t i = 0; i < count; ++i) {
    if (random() % 4 != 0) continue;
    const T value = special<T>(random);
    std::memcpy(memory.data() + i * sizeof(T), &value, sizeof(T));
  }
  return memory;
}

/// Calls `use(T())` for each type that has a DType.
template <class Use>
void with_each_type(const Use& use) {
  use(bool{});
  use(std::uint8_t{});
  use(std::int8_t{});
  use(std::int16_t{});
  use(std::int32_t{});
  use(std::int64_t{});
  use(Float16{});
  use(BFloat16{});
  use(float{});
  use(double{});
  use(std::complex<float>{});
  use(std::complex<double>{});
}

}  // namespace peal::kernels
