// The bytes that an execution has sent and that have not left yet, for each peer: the transport has
// not accepted them, or still holds them. The memory is borrowed. The proof of the schedule
// guarantees that it does not change before it is received.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "peal/base/units.h"
#include "peal/engine/fingerprint.h"
#include "peal/transport/transport.h"

namespace peal::engine {

/// Threads: one at a time.
class Outbox {
 public:
  explicit Outbox(int ranks) : queues_(static_cast<std::size_t>(ranks)) {}

  /// Adds a copy of the header before the next bytes for the peer.
  void add_header(Rank peer, const Header& header);
  void add(Rank peer, std::span<const std::byte> bytes);
  /// Forgets everything: the memory of a failed operation must not be touched any more.
  void clear();

  bool empty() const { return waiting_.empty(); }
  /// Whether there are bytes that the channel has not accepted.
  bool has_queued() const;
  /// The peers with bytes that have not left, each listed once.
  std::span<const Rank> waiting() const { return waiting_; }

  struct Pumped {
    Bytes bytes;
    std::optional<Rank> lost = {};  // a peer whose stream is closed
  };
  /// Gives bytes to the channel, up to `most` in all, and flushes the bytes that the channel holds.
  Pumped pump(transport::Channel& channel, Bytes most);

 private:
  struct Queue {
    std::array<std::byte, Header::kSize> header;
    std::vector<transport::ConstPiece> pieces;
    std::size_t first = 0;  // pieces before it have been taken
    bool waits = false;     // whether the peer is in `waiting_`
  };
  /// The rest of the queue, up to `most` bytes.
  std::span<const transport::ConstPiece> front(const Queue& queue, Bytes most);
  /// Drops `bytes` from the front.
  static void drop(Queue& queue, Bytes bytes);

  std::vector<Queue> queues_;
  std::vector<Rank> waiting_;
  std::vector<transport::ConstPiece> front_;
};

}  // namespace peal::engine
