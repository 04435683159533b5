// Units that must not be mixed up: bytes with elements, ranks with counts, tags with either.
// Used by the whole library.
#pragma once

#include <compare>
#include <cstdint>

namespace peal {

/// Index of a process within a group, 0 .. size-1. Planners do arithmetic on ranks, so Rank is an
/// int and not a class (decisions/0002).
using Rank = int;

/// A receive takes this in place of a rank, to accept the first message of any sender.
inline constexpr Rank kAnySource = -1;

/// A number with a unit. Sums, differences and scalings keep the unit; a ratio loses it.
template <class Unit>
struct Quantity {
  std::int64_t value = 0;

  constexpr Quantity() = default;
  constexpr explicit Quantity(std::int64_t v) : value(v) {}

  friend constexpr auto operator<=>(Quantity, Quantity) = default;
  friend constexpr Quantity operator+(Quantity a, Quantity b) {
    return Quantity(a.value + b.value);
  }
  friend constexpr Quantity operator-(Quantity a, Quantity b) {
    return Quantity(a.value - b.value);
  }
  friend constexpr Quantity operator*(Quantity a, std::int64_t k) { return Quantity(a.value * k); }
  friend constexpr Quantity operator*(std::int64_t k, Quantity a) { return a * k; }
  friend constexpr Quantity operator/(Quantity a, std::int64_t k) { return Quantity(a.value / k); }
  friend constexpr std::int64_t operator/(Quantity a, Quantity b) { return a.value / b.value; }
  constexpr Quantity& operator+=(Quantity b) {
    value += b.value;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity b) {
    value -= b.value;
    return *this;
  }
};

using Bytes = Quantity<struct BytesUnit>;
using Elements = Quantity<struct ElementsUnit>;

constexpr Bytes operator""_B(unsigned long long n) { return Bytes(static_cast<std::int64_t>(n)); }
constexpr Bytes operator""_KiB(unsigned long long n) {
  return Bytes(static_cast<std::int64_t>(n << 10));
}
constexpr Bytes operator""_MiB(unsigned long long n) {
  return Bytes(static_cast<std::int64_t>(n << 20));
}

/// A user's label on a point-to-point message. A receive takes only messages with the same tag.
struct Tag {
  std::int32_t value = 0;

  constexpr Tag() = default;
  constexpr explicit Tag(std::int32_t v) : value(v) {}

  friend constexpr auto operator<=>(Tag, Tag) = default;
};

}  // namespace peal
