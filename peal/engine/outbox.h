// Bytes that a walk has sent and that have not left yet, by peer: the transport has not taken them,
// or holds what it took. Borrowed memory: the schedule is proved not to change it before it is
// received.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "peal/base/units.h"
#include "peal/engine/fingerprint.h"
#include "peal/transport/transport.h"

namespace peal::engine {

class Outbox {
 public:
  explicit Outbox(int ranks) : queues_(static_cast<std::size_t>(ranks)) {}

  /// Puts a copy of the header in front of what will be added next for the peer.
  void add_header(Rank peer, const Header& header);
  void add(Rank peer, std::span<const std::byte> bytes);
  /// Forgets everything: a failed operation's memory is not to be touched any more.
  void clear();

  bool empty() const { return waiting_.empty(); }
  /// Whether there is anything that the channel has not taken.
  bool has_queued() const;
  /// The peers for which something waits, each once.
  std::span<const Rank> waiting() const { return waiting_; }

  struct Pumped {
    Bytes bytes;
    Rank lost = kAnySource;  // a peer whose stream is closed
  };
  /// Hands over what the channel takes, up to `most` in all, and sees to it that what it holds
  /// leaves.
  Pumped pump(transport::Channel& channel, Bytes most);

 private:
  struct Queue {
    std::array<std::byte, Header::kSize> header;
    std::vector<transport::ConstPiece> pieces;
    std::size_t first = 0;  // pieces before it have been taken
    bool waits = false;     // is among `waiting_`
  };
  /// What is left of the queue, as far as `most`.
  std::span<const transport::ConstPiece> front(const Queue& queue, Bytes most);
  /// Drops `bytes` from the front.
  static void drop(Queue& queue, Bytes bytes);

  std::vector<Queue> queues_;
  std::vector<Rank> waiting_;
  std::vector<transport::ConstPiece> front_;
};

}  // namespace peal::engine
