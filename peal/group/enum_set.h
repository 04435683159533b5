// A set of the values of a small enum, in one word.
#pragma once

#include <cstdint>

namespace peal {

/// For enums whose values are 0 to 63.
template <class Enum>
class EnumSet {
 public:
  template <class Range>
  static constexpr EnumSet of(const Range& values) {
    EnumSet set;
    for (const Enum value : values) set.insert(value);
    return set;
  }

  constexpr void insert(Enum value) { bits_ |= bit(value); }
  constexpr bool contains(Enum value) const { return (bits_ & bit(value)) != 0; }
  friend bool operator==(const EnumSet&, const EnumSet&) = default;

 private:
  static constexpr std::uint64_t bit(Enum value) {
    return std::uint64_t{1} << static_cast<unsigned>(value);
  }
  std::uint64_t bits_ = 0;
};

}  // namespace peal
