// A transport with faults that transports may have, and some that they must not have: for tests of
// the layers above. The same seed gives the same faults in every run. (The faults of a user's plan
// lie beneath a transport: wire.h.)
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "peal/base/units.h"
#include "peal/transport/channel_kind.h"
#include "peal/transport/transport.h"

namespace peal::transport {

/// What happens to one stream, as this rank sees it, once `after` of its bytes have moved.
struct StreamFault {
  enum class Kind : std::uint8_t {
    kCut,             // the peer is lost: both directions are closed
    kCorrupt,         // the next byte is another than was sent
    kUnacknowledged,  // the peer's system acknowledges nothing more; kSending only
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
  /// After each transfer, this many calls for the same stream and direction move nothing.
  int idle_calls = 0;
  /// Spurious: every other wait, at random, returns at once.
  Wakeups wakeups = Wakeups::kFaithful;
  std::vector<StreamFault> streams = {};
};

/// The window is the one of the inner transport.
std::unique_ptr<Transport> make_faulty(std::unique_ptr<Transport> inner, const Faults& faults);

}  // namespace peal::transport
