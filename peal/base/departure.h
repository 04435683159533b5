// How a rank leaves a group, as its peers are told.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "peal/base/units.h"

namespace peal {

/// The numbers are part of the wire format: append, never reorder.
enum class Departure : std::uint8_t {
  kInOrder = 0,
  kByException,  // the group was destroyed while an exception unwound
};

/// What a rank did, for errors: "has left the group", ...
constexpr std::string_view describe(Departure departure) {
  switch (departure) {
    case Departure::kInOrder:
      return "has left the group";
    case Departure::kByException:
      return "has left the group because of an exception";
  }
  return "has left the group in a way that this version does not know";
}

/// What peers are told of an exception that takes a rank out of its group: "rank 1 threw: ".
inline std::string threw(Rank rank) { return "rank " + std::to_string(rank) + " threw: "; }
/// And what one that has aborted its group tells its peers: "the group world", this, and why.
inline std::string aborted_by(Rank rank) {
  return " was aborted by rank " + std::to_string(rank) + ": ";
}

}  // namespace peal
