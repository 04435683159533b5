// The content of a heartbeat. Used by heartbeats.cpp.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "peal/base/units.h"

namespace peal::transport {

/// The most stopped ranks that a beat names.
inline constexpr std::size_t kMostStopped = 256;

/// The body of a beat: the ranks of the sender's host whose processes are stopped, at most the
/// first kMostStopped.
std::string encode_beat(std::span<const Rank> stopped);

/// Errors: mismatch (a body that `encode_beat` did not make).
std::vector<Rank> decode_beat(std::string_view body);

}  // namespace peal::transport
