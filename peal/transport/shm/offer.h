// The message that a rank sends to each other rank of its host, before it sends the descriptors of
// its memory. Used by host.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "peal/base/units.h"
#include "peal/transport/shm/segment_layout.h"

namespace peal::transport {

struct Offer {
  SegmentLayout layout;
  Bytes arena;
  std::uint64_t process = 0;  // HostPeers::number
  /// The sender detects the end of the receiver's process only by the connection.
  bool needs_connection = false;

  friend bool operator==(const Offer&, const Offer&) = default;
};

inline constexpr std::size_t kOfferSize = 2 + 6 * sizeof(std::int64_t);

std::string encode(const Offer& offer);

/// Errors: mismatch (bytes that `encode` did not make).
Offer decode_offer(std::string_view bytes);

}  // namespace peal::transport
