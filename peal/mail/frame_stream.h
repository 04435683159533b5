// The frames on one link of the mail channel, in both directions. Outgoing frames wait in a queue.
// Incoming bytes are split into frames, and the mailbox decides where each payload goes.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <span>
#include <vector>

#include "peal/mail/frame.h"
#include "peal/mail/ticket.h"
#include "peal/transport/transport.h"

namespace peal::mail {

/// Called for each incoming frame.
class FrameReader {
 public:
  virtual ~FrameReader() = default;
  /// Returns where the payload goes: as many bytes as the frame announces, or none to discard it.
  virtual std::span<std::byte> begin_frame(Rank from, const Frame& frame) = 0;
  virtual void end_frame(Rank from, const Frame& frame) = 0;
};

/// Threads: one at a time.
class FrameStream {
 public:
  enum class State : std::uint8_t { kBlocked, kMoved, kClosed, kDamaged };

  FrameStream(Rank peer, transport::Channel& channel) : peer_(peer), channel_(channel) {}

  Rank peer() const { return peer_; }

  /// Queues a frame. The payload is borrowed until it has left; then `ends`, if any, succeeds.
  void post(const Frame& frame, std::span<const std::byte> payload = {}, TicketPtr ends = nullptr);
  /// Sends a frame now, if the queue is empty and the channel accepts it. The stream keeps a copy
  /// of what the channel does not accept, so nothing is borrowed. Returns whether the frame was
  /// sent.
  bool post_at_once(const Frame& frame, std::span<const std::byte> payload);
  /// Queues a frame, and owns its payload.
  void post_owned(const Frame& frame, std::vector<std::byte> payload);
  bool has_unsent() const { return !queue_.empty() || held_; }
  /// Whether a frame with a ticket has not left.
  bool has_borrowed() const;
  /// kClosed: nothing can be sent. Bytes that have arrived can still be read.
  State pump_out();

  /// Reads what has arrived, but perhaps not all: it returns after a frame that came alone, because
  /// another read would cost as much as the frame. kBlocked: nothing has arrived.
  State pump_in(FrameReader& reader);

  /// Releases all borrowed memory. Forgets unsent frames, except the rest of a frame that has left
  /// in part: that rest is copied, so that the stream stays in step. Discards the payload that is
  /// arriving.
  void release_borrowed();

 private:
  struct Outgoing {
    std::array<std::byte, Frame::kSize> header;
    std::span<const std::byte> payload;
    std::vector<std::byte> owned;
    TicketPtr ends;
    std::size_t sent = 0;
  };
  /// Frame::kSize bytes, valid until the next call of any method; null if some are missing.
  const std::byte* take_header(transport::Transfer& transfer);
  void take_payload(transport::Transfer& transfer);
  transport::Transfer take(std::span<std::byte> into);
  /// Reads from the channel. Call when all fetched bytes are used.
  transport::Transfer fetch();

  Rank peer_;
  transport::Channel& channel_;
  std::deque<Outgoing> queue_;
  bool held_ = false;    // the channel holds accepted bytes that have not left
  bool is_cut_ = false;  // a frame is incomplete: later bytes would be read as its rest

  /// A header and the following bytes are read at once, so a small message arrives whole.
  std::array<std::byte, 512> ahead_;
  std::span<const std::byte> fetched_;  // the unused rest of `ahead_`

  std::array<std::byte, Frame::kSize> header_;
  std::size_t header_have_ = 0;
  Frame frame_;                // the frame whose payload is arriving
  std::span<std::byte> into_;  // where the rest of its payload goes
  Bytes due_;                  // payload bytes that have not arrived
  bool inside_ = false;
};

}  // namespace peal::mail
