// How bytes get from one rank to another. The engine moves everything through these interfaces.
// Implementations: memory/ (ranks are threads of one process), shm/ (processes of one host), tcp/,
// and mixed/ (shm to the own host, tcp beyond it); faulty/ wraps another and injects faults.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "peal/base/clock.h"
#include "peal/base/units.h"
#include "peal/transport/presence.h"

namespace peal::transport {

class Window;
struct SharedMail;

/// What became of a try_send or a try_receive.
struct Transfer {
  Bytes bytes;          // how many moved; may be fewer than asked for, may be 0
  bool closed = false;  // nothing more can move. When a send says so, a receive does as soon as all
                        // that came before has been taken.
  bool held = false;    // of a send: some of what was taken has not left; see try_flush
};

enum class Readiness : std::uint8_t { kReadable, kWritable };

struct Interest {
  Rank peer = 0;
  Readiness readiness = Readiness::kReadable;
};

using ConstPiece = std::span<const std::byte>;

/// One ordered, reliable stream of bytes in each direction between this rank and every other.
/// Threads: try_send and try_receive from one at a time; `wait` from one at a time, which may be
/// another and at the same moment (a thread sleeps while its fellow moves bytes); `interrupt` from
/// any.
class Channel {
 public:
  virtual ~Channel() = default;

  /// Appends the leading bytes of the concatenated `pieces` to the stream towards `peer`: as many
  /// as fit, without blocking.
  virtual Transfer try_send(Rank peer, std::span<const ConstPiece> pieces) = 0;

  /// Goes on with what a try_send has taken and `held`. Returns true when all of it has left, or
  /// never will. Whoever was told that something is held calls it, or sends more, whenever the peer
  /// is writable, until that is so: nobody else does, and the peer may be waiting for just that.
  virtual bool try_flush(Rank peer) = 0;

  /// Takes bytes that have come from `peer`, in order: as many as there are and fit, without
  /// blocking. Bytes that came before the peer was lost are still delivered.
  virtual Transfer try_receive(Rank peer, std::span<std::byte> into) = 0;

  /// How much of what try_send took, held or not, the peer may never get if this rank closes the
  /// stream now; 0 where the peer is lost. May ask the system. Threads: as try_send.
  virtual Bytes unacknowledged(Rank peer) const = 0;

  /// Sleeps until one of `interests` may have come true (a lost peer counts as ready for both), or
  /// `interrupt` was called since the last return, or the deadline. May return early for no reason.
  virtual void wait(std::span<const Interest> interests, Deadline deadline) = 0;

  /// Makes the current or the next `wait` return.
  virtual void interrupt() noexcept = 0;
};

/// Two channels, so that neither ever waits behind the other: what a schedule puts on the wire goes
/// through `data`, whose bytes both ends can foretell; messages whose coming nobody can foretell
/// (point to point, aborts, farewells) go through `mail`.
class Transport {
 public:
  /// Destruction closes every stream: peers receive what was sent before, then see `closed`.
  virtual ~Transport() = default;

  virtual Channel& data() = 0;
  virtual Channel& mail() = 0;
  /// The mail, if one thread waits for the mail of several groups (rounds.h). Otherwise nothing:
  /// then a thread of the group calls `wait` of `mail`.
  virtual std::optional<SharedMail> shared_mail() = 0;

  /// Memory shared with the other ranks of the host, or nullptr. Where one rank of the group has
  /// one all have, each host as many ranks, which are neighbours. Lives as long as the transport.
  virtual Window* window() = 0;

  /// How many of the group's ranks are on this host, this one included: they share its cores. Those
  /// in other containers of the machine count, whether or not they are reached by shared memory.
  virtual int ranks_on_host() const = 0;
  /// How many of them can run at the same moment (base/cpus.h): fewer than they are means that who
  /// polls may keep from the core whom it waits for. Cost: asks the system; not for every
  /// operation.
  virtual int cpus_on_host() const = 0;

  /// Who rank `peer` is and how it is reached, for messages: "pid 4711 on node3, over shm".
  virtual std::string describe(Rank peer) const = 0;

  /// Whether the process of rank `peer` runs at this moment, as far as this rank can know. Cost: a
  /// look into /proc at most. Threads: any.
  virtual Presence presence(Rank peer) const = 0;
};

}  // namespace peal::transport
