// How a rank leaves a group, as sent to its peers.
#pragma once

#include <cstdint>
#include <string_view>

namespace peal {

/// The numbers are part of the wire format: append, never reorder.
enum class Departure : std::uint8_t {
  kNormal = 0,   // without an exception
  kByException,  // the group was destroyed while an exception unwound
};

/// The departure as a phrase for errors: "has left the group", ...
constexpr std::string_view describe(Departure departure) {
  switch (departure) {
    case Departure::kNormal:
      return "has left the group";
    case Departure::kByException:
      return "has left the group because of an exception";
  }
  return "has left the group in a way that this version does not know";
}

}  // namespace peal
