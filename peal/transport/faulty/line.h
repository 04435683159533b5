// One direction of a line that misbehaves, as a state machine: bytes arrive at its one end, and
// some of them are ready at the other, later, fewer or changed. It owns no descriptor and reads no
// clock; wire.h puts one into a connection.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/fault_plan.h"
#include "peal/base/units.h"
#include "peal/transport/segment_layout.h"

namespace peal::transport {

/// What befalls the bytes of one direction; positions count from its first byte.
struct LineFaults {
  Duration delay = {};
  std::optional<Bytes> per_second = {};
  std::optional<Bytes> drop_after = {};
  std::optional<Bytes> cut_after = {};
  std::vector<Bytes> corrupt = {};  // the bytes at these positions

  friend bool operator==(const LineFaults&, const LineFaults&) = default;
};

/// What the faults, by the ranks of one group, come to for what `from` sends to `to`: delays add
/// up, and of several others of a kind the worst counts.
LineFaults faults_of(std::span<const LinkFault> faults, Rank from, Rank to, ChannelKind channel);

/// Threads: one at a time. Memory: up to 4 MiB, which bounds how much is under way on a line that
/// delays.
class FaultyLine {
 public:
  enum class State : unsigned char {
    kOpen,
    kEnded,  // the sender has ended the stream, and all that it sent was taken
    kCut,    // all that came before the cut was taken
  };

  explicit FaultyLine(LineFaults faults = {}) : faults_(std::move(faults)) {}

  /// How much may arrive now.
  Bytes room() const;
  void arrive(std::span<const std::byte> bytes, TimePoint now);
  /// Nothing more will arrive. A line that drops does not pass that on.
  void end() { ended_ = true; }

  /// The next bytes at the other end; there may be more when they have been taken. Valid until
  /// another call that is not const.
  std::span<const std::byte> ready(TimePoint now) const;
  void take(Bytes bytes, TimePoint now);
  /// When there will be some, if none are ready now and nothing arrives; nothing: never.
  std::optional<TimePoint> ready_at() const;

  /// What has arrived and was neither taken nor dropped.
  Bytes held() const { return held_; }
  State state() const;

 private:
  struct Part {
    std::vector<std::byte> bytes;
    TimePoint due;
  };

  /// How much of what arrives comes through at all.
  Bytes limit() const;

  LineFaults faults_;
  Bytes arrived_;
  bool ended_ = false;
  std::deque<Part> parts_;
  std::size_t taken_ = 0;  // of the first part
  Bytes held_;
  TimePoint next_ = TimePoint::min();  // of a slow line: when it has carried what was taken
};

}  // namespace peal::transport
