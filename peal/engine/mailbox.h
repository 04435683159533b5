// Point-to-point messages of one rank: receives meet sends (matching.h). Small messages come
// uninvited and wait in the mailbox; large ones are offered and come when their receive is there.
// So every frame can be taken at once, and no message stands in another's way. A large one that
// lies in memory which the receiver maps (transport::Window) does not pass the channel: the offer
// says where it lies, and the receiver copies it from there and says when it has. Also carries the
// news that the group has failed, and farewells. A state machine that owns no thread and reads no
// clock; the native backend drives it.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "peal/base/departure.h"
#include "peal/engine/mail_frame.h"
#include "peal/engine/mail_stream.h"
#include "peal/engine/matching.h"
#include "peal/engine/ticket.h"
#include "peal/transport/transport.h"

namespace peal::engine {

/// Threads: one at a time.
class Mailbox final : private MailReader {
 public:
  /// Called from within the other methods: what has happened to the group. The answer is `fail`,
  /// which ends the tickets that it concerns too.
  struct Events {
    std::function<void(const Error&)> failed;  // a peer says so, or two messages do not fit
    std::function<void(Rank)> lost;            // a peer's stream ended without a farewell
  };

  Mailbox(Rank self, int ranks, transport::Transport& transport, Events events);

  /// Sends a small message to another rank if nothing stands before it. Otherwise, and where there
  /// is anything to complain of, it returns false and has done nothing: `send` then says what.
  bool send_at_once(const Envelope& envelope, const std::byte* data);
  /// The memory is borrowed until the ticket has ended. A small message leaves at once if it can.
  void send(const TicketPtr& ticket, const Envelope& envelope, const std::byte* data);
  void receive(const TicketPtr& ticket, const Envelope& envelope, std::byte* data);

  /// Moves what can be moved without waiting; returns whether anything did.
  bool advance();

  /// What to sleep on.
  void add_interests(std::vector<transport::Interest>& interests) const;

  /// Fails every ticket, also those to come, and lets go of all borrowed memory; what arrives from
  /// now on is thrown away.
  void fail(const Error& cause);
  bool has_failed() const { return failure_.has_value(); }
  /// Tells every peer that the group has failed. After `fail`.
  void tell_abort(const Error& cause);
  /// Tells every peer that this rank will start no more messages and receive none. What it has
  /// offered still stands.
  void say_farewell(Departure departure);
  /// Whether `advance` has something to do without anybody's asking: something waits until a stream
  /// can take it, or a message is being copied.
  bool is_busy() const;
  /// Whether everything has been handed over to the transport.
  bool is_flushed() const;

  /// How the peer has left; nothing while it has not said farewell.
  std::optional<Departure> departure(Rank peer) const { return at(peer).departure; }

  /// The tickets that have not ended, for their deadlines.
  const std::vector<TicketPtr>& open_tickets();
  /// Lets go of a ticket that has ended.
  void forget(const TicketPtr& ticket);

 private:
  struct LargeSend {
    TicketPtr ticket;
    std::uint64_t id = 0;
    std::span<const std::byte> rest;
  };
  /// A message that is being copied from where its sender has it.
  struct Copy {
    Receive receive;
    std::uint64_t id = 0;
    const std::byte* from = nullptr;
  };
  struct Peer {
    explicit Peer(MailStream s) : stream(std::move(s)) {}
    MailStream stream;
    std::optional<Departure> departure;  // it has said farewell
    bool deaf = false;                   // it takes nothing more
    bool closed = false;                 // nothing more comes either, or what comes makes no sense
    std::map<std::uint64_t, LargeSend> offered;
    std::deque<LargeSend> accepted;
    std::map<std::uint64_t, Receive> large;  // receives of large messages that were accepted
    std::deque<Copy> copies;
    // what the frame that is coming fills
    std::optional<Receive> eager;
    Matching::Place arriving;
    std::vector<std::byte> text;

    bool has_unsent() const { return !closed && !deaf && stream.has_unsent(); }
  };

  bool move(Rank rank);
  MailStream::State pump(Peer& peer);
  /// Returns whether anything left.
  bool pump_out(Peer& peer);
  std::span<std::byte> begin_frame(Rank from, const MailFrame& frame) override;
  void end_frame(Rank from, const MailFrame& frame) override;
  std::span<std::byte> begin_message(Rank from, const MailFrame& frame);
  void end_message(Rank from);
  std::span<std::byte> begin_piece(Rank from, const MailFrame& frame);
  void end_piece(Rank from, const MailFrame& frame);
  void start_sending(Rank to, std::uint64_t id);
  bool post_next_piece(Peer& peer);
  void end_sending(Rank to, std::uint64_t id);

  void start_copying(Rank from, const MailFrame& offer, Receive receive);
  bool copy_next_piece(Rank from);

  void meet(Matching::Place arrival, Receive receive);
  void accept(Rank from, const MailFrame& offer, Receive receive);
  bool fits(const Receive& receive, Rank from, const MailFrame& frame);
  void send_to_self(const TicketPtr& ticket,
                    const MailFrame& frame,
                    std::span<const std::byte> data);

  void on_stream_end(Rank peer);
  void on_farewell(Rank peer, Departure departure);
  Error gone(Rank peer) const;
  void close_damaged(Rank peer, const std::string& how);
  bool is_gone(Rank peer) const { return at(peer).departure || at(peer).closed; }
  bool all_others_are_gone() const;
  bool has_messages_for(Rank peer) const;
  bool awaits(Rank peer) const;

  /// The window, if it reaches this rank.
  transport::Window* window_to(Rank peer) const;
  Peer& at(Rank peer) { return peers_[static_cast<std::size_t>(peer)]; }
  const Peer& at(Rank peer) const { return peers_[static_cast<std::size_t>(peer)]; }

  Rank self_;
  transport::Transport& transport_;
  Events events_;
  std::vector<Peer> peers_;
  Matching matching_;
  std::vector<TicketPtr> open_;
  std::uint64_t next_id_ = 1;
  std::optional<Error> failure_;
  /// Messages from here on are stored past the cache, which they would only empty.
  const Bytes streamed_;
};

}  // namespace peal::engine
