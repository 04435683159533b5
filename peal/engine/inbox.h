// What a walk receives: from each peer first a header, which has to be that of the operation, and
// then the elements of its moves. What has come and is not used yet is held here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "peal/base/units.h"
#include "peal/engine/fingerprint.h"
#include "peal/transport/transport.h"

namespace peal::engine {

/// The stream of a peer is closed, in order or not: the driver finds out which.
struct PeerClosed {
  Rank peer = 0;
};

/// One move at a time. Throws PeerClosed wherever it asks a peer for bytes.
/// Threads: one at a time.
class Inbox {
 public:
  Inbox(Rank self, int ranks, transport::Channel& channel);

  /// At the beginning of an operation.
  void begin() { received_ = held_ = came_ = Bytes(0); }
  /// Whether the peer's header of the operation with this number has come.
  bool has_header(Rank peer, std::uint64_t sequence) const {
    return headers_[static_cast<std::size_t>(peer)] == sequence;
  }
  /// Takes the header, and what comes with it of the `due` bytes of a move. Returns false while it
  /// is not all there.
  /// Throws Error(mismatch) if it is another than `expected`.
  bool receive_header(Rank peer, const Header& expected, Bytes due);

  /// Of the current move: what has been used.
  Bytes received() const { return received_; }
  bool has_begun() const { return received_ > Bytes(0) || held_ > Bytes(0); }
  void end_move() { received_ = Bytes(0); }

  /// Puts what comes next at `place`, where it is used; as much as there is. Returns false if that
  /// is nothing.
  bool receive(Rank peer, std::span<std::byte> place);

  /// What is held of the current move, whole elements or not.
  std::span<const std::byte> held() const { return std::span(bounce_).first(size_of_held()); }
  /// Holds more, up to `most` in all. Returns false if nothing has come.
  bool hold_more(Rank peer, Bytes most);
  /// The first bytes that are held have been used.
  void use(Bytes size);

  /// What has come since this was last asked.
  Bytes news();

 private:
  std::size_t size_of_held() const { return static_cast<std::size_t>(held_.value); }
  void check(Rank peer, const Header& expected) const;
  Bytes take(Rank peer, std::span<std::byte> into);
  void drop(Bytes size);

  Rank self_;
  transport::Channel& channel_;
  std::vector<std::uint64_t> headers_;  // by peer: the last operation whose header came
  std::vector<std::byte> bounce_;
  Bytes held_;  // of the bounce buffer, its first bytes
  Bytes received_;
  Bytes came_;
};

}  // namespace peal::engine
