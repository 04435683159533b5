// Frames on one link of the mail channel, in both directions: what goes out waits in a queue, what
// comes in is cut into frames whose payloads land where the mailbox says.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <span>
#include <vector>

#include "peal/engine/mail_frame.h"
#include "peal/engine/ticket.h"
#include "peal/transport/transport.h"

namespace peal::engine {

/// Told of each frame that comes in.
class MailReader {
 public:
  virtual ~MailReader() = default;
  /// Where the payload goes: as many bytes as the frame says, or none to throw it away.
  virtual std::span<std::byte> begin_frame(Rank from, const MailFrame& frame) = 0;
  virtual void end_frame(Rank from, const MailFrame& frame) = 0;
};

/// Threads: one at a time.
class MailStream {
 public:
  enum class State : std::uint8_t { kBlocked, kMoved, kClosed, kDamaged };

  MailStream(Rank peer, transport::Channel& channel) : peer_(peer), channel_(channel) {}

  Rank peer() const { return peer_; }

  /// Queues a frame. The payload is borrowed until it has left; then `ends`, if any, succeeds.
  void post(const MailFrame& frame,
            std::span<const std::byte> payload = {},
            TicketPtr ends = nullptr);
  /// Hands over a frame if nothing is before it and the channel takes it; what it does not take of
  /// the payload is kept in a copy, so that nothing is borrowed. Returns whether it did.
  bool post_at_once(const MailFrame& frame, std::span<const std::byte> payload);
  /// Queues a frame with a payload of its own.
  void post_owned(const MailFrame& frame, std::vector<std::byte> payload);
  bool has_unsent() const { return !queue_.empty() || held_; }
  /// Whether a frame of somebody's ticket has not left.
  bool has_borrowed() const;
  /// kClosed: nothing can be sent; what has come can still be read.
  State pump_out();

  /// Takes what has come, but perhaps not all of it: after a frame that came alone it returns,
  /// since to ask for more costs as much as the frame. kBlocked: nothing has come.
  State pump_in(MailReader& reader);

  /// Lets go of all borrowed memory: forgets unsent frames but for the rest of the one under way,
  /// which is copied so that the stream stays in step, and throws away what is coming in.
  void let_go();

 private:
  struct Outgoing {
    std::array<std::byte, MailFrame::kSize> header;
    std::span<const std::byte> payload;
    std::vector<std::byte> owned;
    TicketPtr ends;
    std::size_t sent = 0;
  };
  /// MailFrame::kSize bytes, valid until the next call of any method; null while some are missing.
  const std::byte* take_header(transport::Transfer& transfer);
  bool take_payload(transport::Transfer& transfer);
  transport::Transfer take(std::span<std::byte> into);
  /// When nothing is left of what was fetched.
  transport::Transfer fetch();

  Rank peer_;
  transport::Channel& channel_;
  std::deque<Outgoing> queue_;
  bool held_ = false;    // the channel holds some of what it took
  bool is_cut_ = false;  // in the middle of a frame: whatever followed would be taken for its rest

  /// A header and what follows it are fetched at once: a small message comes whole.
  std::array<std::byte, 512> ahead_;
  std::span<const std::byte> fetched_;  // what is left of that

  std::array<std::byte, MailFrame::kSize> header_;
  std::size_t header_have_ = 0;
  MailFrame frame_;            // the one whose payload is coming
  std::span<std::byte> into_;  // what is left of the place for it
  Bytes due_;                  // payload bytes that are still to come
  bool inside_ = false;
};

}  // namespace peal::engine
