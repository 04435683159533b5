// How bytes get from one rank to another. The engine moves everything through these interfaces.
// Implementations: memory/ (ranks are threads of one process), shm/ (processes of one host), tcp/,
// and mixed/ (shm inside the host, tcp beyond it). faulty/ puts faults into connections.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "peal/base/clock.h"
#include "peal/base/units.h"
#include "peal/transport/liveness/presence.h"

namespace peal::transport {

class Window;
struct SharedMail;

/// The result of a try_send or a try_receive.
struct Transfer {
  Bytes bytes;  // how many moved; may be fewer than requested, may be 0
  /// No more bytes can move. After a send has returned this, a receive does too once it has taken
  /// all earlier bytes.
  bool closed = false;
  bool held = false;  // of a send: some accepted bytes have not left; see try_flush
};

enum class Readiness : std::uint8_t { kReadable, kWritable };

struct Interest {
  Rank peer = 0;
  Readiness readiness = Readiness::kReadable;
};

using ConstPiece = std::span<const std::byte>;

/// The connection under a stream.
enum class LinkState : std::uint8_t {
  kNone,     // it is made as soon as one of the ranks uses the stream
  kMade,     // it was made; it may have ended since
  kRefused,  // it can never be made: the peer has left, and does not listen any more
};

/// One ordered, reliable stream of bytes in each direction between this rank and every other. The
/// first try_send or try_receive of a stream begins to connect, unless the connection exists. No
/// bytes move before that. If the peer refuses the connection, the stream is closed.
/// Threads: try_send and try_receive from one at a time; `wait` from one at a time, which may be
///   another thread (one thread sleeps while the other moves bytes); `interrupt` from any.
class Channel {
 public:
  virtual ~Channel() = default;

  /// Appends the leading bytes of the concatenated `pieces` to the stream towards `peer`: as many
  /// as fit, without blocking.
  virtual Transfer try_send(Rank peer, std::span<const ConstPiece> pieces) = 0;

  /// Sends more of the bytes that a try_send has accepted and `held`. Returns true once all of them
  /// have left, or never will. A caller that got `held` must call try_flush, or send more, whenever
  /// the peer is writable, until this returns true. Nothing else sends these bytes, and the peer
  /// may wait for them.
  virtual bool try_flush(Rank peer) = 0;

  /// Takes bytes that have come from `peer`, in order: as many as are there and fit, without
  /// blocking. Bytes that came before the peer was lost are still delivered.
  virtual Transfer try_receive(Rank peer, std::span<std::byte> into) = 0;

  /// Threads: any.
  virtual LinkState link_state(Rank peer) const = 0;

  /// How many of the accepted bytes, held or not, the peer may never get if this rank closes the
  /// stream now. 0 if the peer is lost. May call the system.
  /// Threads: as try_send.
  virtual Bytes unacknowledged(Rank peer) const = 0;

  /// Sleeps until one of `interests` may be ready (a lost peer counts as ready for both),
  /// `interrupt` was called since the last return, or the deadline has passed. A new or refused
  /// link to any peer ends the sleep, too. May return early for no reason.
  virtual void wait(std::span<const Interest> interests, Deadline deadline) = 0;

  /// Makes the current or the next `wait` return.
  virtual void interrupt() noexcept = 0;
};

/// Two channels, so that neither ever waits behind the other. `data` carries the bytes of
/// schedules, which both ends can predict. `mail` carries messages that come unpredictably: point
/// to point messages, aborts, and the notice that a rank leaves.
class Transport {
 public:
  /// Destruction closes every stream: peers receive the bytes that were sent before, then see
  /// `closed`.
  virtual ~Transport() = default;

  virtual Channel& data() = 0;
  virtual Channel& mail() = 0;
  /// The mail, if one thread waits for the mail of several groups (shm/mail_thread.h). Otherwise
  /// nothing; then a thread of the group calls `wait` of `mail`.
  virtual std::optional<SharedMail> shared_mail() = 0;

  /// Memory shared with the other ranks of the host, or nullptr. If one rank of the group has a
  /// window, all have. Each host then has equally many ranks, which are neighbours. Lives as long
  /// as the transport.
  virtual Window* window() = 0;

  /// Makes no more links, and accepts none: from now on, a peer without a link to this rank gets
  /// kRefused. The links that are made stay. For a rank that leaves. Threads: one at a time.
  virtual void stop_linking() = 0;

  /// How many of the group's ranks are on this host, this rank included: they share its cores.
  /// Ranks in other containers of the machine count, whether or not they are reached by shared
  /// memory.
  virtual int ranks_on_host() const = 0;
  /// How many of these ranks can run at once (system/cpus.h). If this is fewer than ranks_on_host,
  /// a rank that polls may take the core from the rank that it waits for.
  /// Cost: a system call; not for every operation.
  virtual int cpus_on_host() const = 0;

  /// Describes rank `peer` and how it is reached, for messages: "pid 4711 on node3, over shm".
  virtual std::string describe(Rank peer) const = 0;
  /// The name of the peer's host; empty if the transport does not know it.
  virtual std::string host(Rank peer) const = 0;

  /// Whether the process of rank `peer` runs at this moment, as far as this rank can know.
  /// Cost: at most a look into /proc.
  /// Threads: any.
  virtual Presence presence(Rank peer) const = 0;
};

}  // namespace peal::transport
