// A transport that misbehaves in the ways that transports may, and in some that they must not: for
// tests of whatever stands above. The same faults in every run with the same seed. (What a user's
// plan breaks is beneath a transport: wire.h.)
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "peal/base/units.h"
#include "peal/transport/segment_layout.h"
#include "peal/transport/transport.h"

namespace peal::transport {

/// What befalls one stream, as this rank sees it, when so many bytes of it have moved.
struct StreamFault {
  enum class Kind : std::uint8_t {
    kCut,             // the peer is lost: both directions are closed
    kCorrupt,         // the next byte is another than was sent
    kUnacknowledged,  // the peer's system acknowledges nothing more; of what is sent only
  };
  enum class Direction : std::uint8_t { kSending, kReceiving };

  Kind kind = Kind::kCut;
  Rank peer = 0;
  ChannelKind channel = ChannelKind::kData;
  Direction direction = Direction::kSending;
  Bytes after = {};
};

struct Faults {
  enum class Wakeups : std::uint8_t { kFaithful, kSpurious };

  unsigned seed = 1;
  /// No call moves more than a random number of bytes up to this; 0: any number.
  Bytes most_per_call = {};
  /// After each transfer so many calls for the same stream and direction move nothing.
  int idle_calls = 0;
  /// Spurious: every other wait, at random, returns at once.
  Wakeups wakeups = Wakeups::kFaithful;
  std::vector<StreamFault> streams = {};
};

/// The window is the inner transport's own.
std::unique_ptr<Transport> make_faulty(std::unique_ptr<Transport> inner, const Faults& faults);

}  // namespace peal::transport
