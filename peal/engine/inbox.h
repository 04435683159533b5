// Receives the bytes of an execution: from each peer first a header, which must be that of the
// operation, and then the elements of its moves. Holds received bytes that are not used yet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "peal/base/units.h"
#include "peal/engine/fingerprint.h"
#include "peal/transport/transport.h"

namespace peal::engine {

/// Thrown when the stream of a peer is closed. The driver finds out why.
struct PeerClosed {
  Rank peer = 0;
};

/// Receives one move at a time. Every method that reads from a peer may throw PeerClosed.
/// Threads: one at a time.
class Inbox {
 public:
  Inbox(Rank self, int ranks, transport::Channel& channel);

  /// Call at the beginning of an operation.
  void begin() { received_ = held_ = came_ = Bytes(0); }
  /// Whether the peer's header for the operation with this number has been received.
  bool has_header(Rank peer, std::uint64_t sequence) const {
    return headers_[static_cast<std::size_t>(peer)] == sequence;
  }
  /// Receives the header, and with it the first of the `due` bytes of a move. Returns false until
  /// the header is complete.
  /// Errors: mismatch if the header differs from `expected`.
  bool receive_header(Rank peer, const Header& expected, Bytes due);

  /// How much of the current move has been used.
  Bytes received() const { return received_; }
  bool has_begun() const { return received_ > Bytes(0) || held_ > Bytes(0); }
  void end_move() { received_ = Bytes(0); }

  /// Receives the next bytes into `place`, as many as are there, and counts them as used. Returns
  /// false if there are no bytes.
  bool receive(Rank peer, std::span<std::byte> place);

  /// The held bytes of the current move; the last element may be incomplete.
  std::span<const std::byte> held() const { return std::span(bounce_).first(size_of_held()); }
  /// Receives and holds more bytes, up to `most` in all. Returns false if there are no bytes.
  bool hold_more(Rank peer, Bytes most);
  /// Marks the first held bytes as used.
  void use(Bytes size);

  /// How much has been received since the last call.
  Bytes take_received_size();

 private:
  std::size_t size_of_held() const { return static_cast<std::size_t>(held_.value); }
  void check(Rank peer, const Header& expected) const;
  Bytes take(Rank peer, std::span<std::byte> into);
  void drop(Bytes size);

  Rank self_;
  transport::Channel& channel_;
  std::vector<std::uint64_t> headers_;  // by peer: the last operation whose header was received
  std::vector<std::byte> bounce_;
  Bytes held_;      // how many bytes of the bounce buffer are in use, from its beginning
  Bytes received_;  // used bytes of the current move
  Bytes came_;      // received since the last call of take_received_size()
};

}  // namespace peal::engine
