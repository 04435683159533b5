// One direction of a connection with injected faults, as a state machine. Bytes arrive at one end;
// some of them become ready at the other end, later, fewer or changed. A direction owns no
// descriptor and reads no clock. wire.h puts the two directions into a connection.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/units.h"
#include "peal/config/fault_plan.h"
#include "peal/transport/channel_kind.h"

namespace peal::transport {

/// What happens to the bytes of one direction. Positions count from its first byte.
struct DirectionFaults {
  Duration delay = {};
  std::optional<Bytes> per_second = {};
  std::optional<Bytes> drop_after = {};
  std::optional<Bytes> cut_after = {};
  std::vector<Bytes> corrupt = {};  // the bytes at these positions

  friend bool operator==(const DirectionFaults&, const DirectionFaults&) = default;
};

/// Combines the faults of one group for the bytes that `from` sends to `to`. Delays add up; of
/// several other faults of one kind the worst counts.
DirectionFaults faults_of(std::span<const LinkFault> faults,
                          Rank from,
                          Rank to,
                          ChannelKind channel);

/// Threads: one at a time. Memory: up to 4 MiB. This bounds how many bytes are in flight in a
///   direction that delays.
class FaultyDirection {
 public:
  enum class State : unsigned char {
    kOpen,
    kEnded,  // the sender has ended the stream, and all bytes were taken
    kCut,    // all bytes before the cut were taken
  };

  explicit FaultyDirection(DirectionFaults faults = {}) : faults_(std::move(faults)) {}

  /// How many bytes may arrive now.
  Bytes room() const;
  void arrive(std::span<const std::byte> bytes, TimePoint now);
  /// No more bytes will arrive. A direction that drops does not pass the end on.
  void end() { ended_ = true; }

  /// The next bytes at the other end. More may be ready once these are taken. Valid until the next
  /// call that is not const.
  std::span<const std::byte> ready(TimePoint now) const;
  void take(Bytes bytes, TimePoint now);
  /// When the next bytes become ready if none are ready now and none arrive. Empty: never.
  std::optional<TimePoint> ready_at() const;

  /// Bytes that have arrived and were neither taken nor dropped.
  Bytes held() const { return held_; }
  State state() const;

 private:
  struct Part {
    std::vector<std::byte> bytes;
    TimePoint due;
  };

  /// How many of the arriving bytes pass at all.
  Bytes limit() const;

  DirectionFaults faults_;
  Bytes arrived_;
  bool ended_ = false;
  std::deque<Part> parts_;
  std::size_t taken_ = 0;  // of the first part
  Bytes held_;
  // of a slow direction: when it has carried the bytes that were taken
  TimePoint next_ = TimePoint::min();
};

}  // namespace peal::transport
