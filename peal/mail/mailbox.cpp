#include "peal/mail/mailbox.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/mail/errors.h"
#include "peal/system/cpus.h"
#include "peal/transport/window/window.h"

namespace peal::mail {
namespace {

/// The frame of a small message.
Frame eager_frame(const Envelope& envelope) {
  return {.kind = Frame::Kind::kEager,
          .dtype = envelope.dtype,
          .tag = envelope.tag,
          .count = envelope.count,
          .payload = bytes_of(envelope.count, envelope.dtype)};
}

std::span<const std::byte> bytes_at(const std::byte* data, Bytes size) {
  return {data, static_cast<std::size_t>(size.value)};
}

}  // namespace

Mailbox::Mailbox(Rank self,
                 int ranks,
                 transport::Transport& transport,
                 Events events,
                 std::optional<Bytes> bound)
    : self_(self),
      transport_(transport),
      events_(std::move(events)),
      self_mail_(self, bound.value_or(eager_bound(ranks)), matching_, &memory_) {
  const Bytes streamed(last_cache().value / 2);
  const Bytes kept = bound.value_or(eager_bound(ranks));
  peers_.reserve(static_cast<std::size_t>(ranks));
  for (Rank rank = 0; rank < ranks; ++rank) {
    peers_.emplace_back(FrameStream(rank, transport.mail()),
                        PlacedMail(self, rank, transport.window(), streamed),
                        kept,
                        &memory_);
    if (rank != self_) begin_link(rank);
  }
}

// ---- posting

bool Mailbox::send_at_once(const Envelope& envelope, const std::byte* data) {
  const Frame frame = eager_frame(envelope);
  if (failure_ || frame.payload > kEagerLimit || envelope.peer == self_) return false;
  Peer& peer = at(envelope.peer);
  if (peer.departure || !peer.can_receive() || !peer.eager_sends.admits(frame.payload))
    return false;
  if (!peer.stream.post_at_once(frame, bytes_at(data, frame.payload))) return false;
  peer.eager_sends.sent(frame.payload);
  move(envelope.peer);
  return true;
}

void Mailbox::send(const TicketPtr& ticket, const Envelope& envelope, const std::byte* data) {
  if (failure_) return ticket->fail(*failure_);
  open_.add(ticket);
  const Frame frame = eager_frame(envelope);
  const std::span<const std::byte> bytes = bytes_at(data, frame.payload);
  if (envelope.peer == self_) {
    send_to_self(ticket, frame, bytes);
    return;
  }
  if (at(envelope.peer).is_gone()) {
    miss(envelope.peer);
    return;
  }
  Peer& peer = at(envelope.peer);
  peer.needs_link = true;
  if (frame.payload <= kEagerLimit && peer.eager_sends.admits(frame.payload)) {
    peer.stream.post(frame, bytes, ticket);
    peer.eager_sends.sent(frame.payload);
  } else {
    offer(ticket, frame, envelope.peer, bytes);
  }
  move(envelope.peer);
}

void Mailbox::offer(const TicketPtr& ticket,
                    Frame frame,
                    Rank to,
                    std::span<const std::byte> data) {
  Peer& peer = at(to);
  frame.id = next_id_++;
  if (frame.payload <= kEagerLimit) {
    peer.eager_sends.hold({ticket, frame, data});
    frame.kind = Frame::Kind::kOffer;
  } else {
    const auto place = peer.placed.place(data.data(), frame.payload);
    frame.kind = place ? Frame::Kind::kPlaced : Frame::Kind::kOffer;
    if (place) frame.place = place->value;
    peer.sends.offer(frame.id, ticket, data);
  }
  frame.payload = 0_B;
  peer.stream.post(frame);
}

void Mailbox::receive(const TicketPtr& ticket, const Envelope& envelope, std::byte* data) {
  if (failure_) return ticket->fail(*failure_);
  open_.add(ticket);
  Receive receive{ticket, envelope, data, 0_B};
  if (const auto arrival = matching_.find(envelope); arrival != matching_.nowhere()) {
    meet(arrival, std::move(receive));
    return;
  }
  if (envelope.peer == kAnySource ? all_others_are_gone() : at(envelope.peer).is_gone()) {
    miss(envelope.peer);
    return;
  }
  matching_.post(std::move(receive));
  if (envelope.peer != kAnySource) {
    at(envelope.peer).needs_link = true;
  } else {  // it must notice if all peers leave
    for (Peer& peer : peers_) peer.needs_link = true;
  }
}

void Mailbox::send_to_self(const TicketPtr& ticket,
                           const Frame& frame,
                           std::span<const std::byte> data) {
  const auto receive = matching_.take(self_, frame.tag);
  if (!receive) return self_mail_.send(ticket, frame, data);
  if (!fits(*receive, self_, frame)) return ticket->succeed(self_);
  self_mail_.deliver(ticket, data, *receive);
}

// ---- moving

bool Mailbox::advance() {
  bool moved = false;
  for (Rank rank = 0; rank < static_cast<Rank>(peers_.size()); ++rank) {
    moved |= advance(rank);
  }
  return moved;
}

/// A stream without a link gets one as soon as `move` uses it.
bool Mailbox::begin_link(Rank rank) {
  Peer& peer = at(rank);
  if (transport_.mail().link_state(rank) == transport::LinkState::kNone) return peer.needs_link;
  peer.is_linked = true;
  for (const GroupNotice& notice : notices_) {
    peer.stream.post_owned(notice.frame, notice.payload);
  }
  return true;
}

bool Mailbox::move(Rank rank) {
  Peer& peer = at(rank);
  try {
    const FrameStream::State state = peer.pump(*this);
    if (state == FrameStream::State::kClosed) on_stream_end(rank);
    if (state == FrameStream::State::kDamaged)
      close_damaged(rank, "it sends bytes that are not a frame of peal");
    const bool copied = peer.copy_next_piece();
    return copied || state != FrameStream::State::kBlocked;
  } catch (const std::exception&) {  // the stream is out of step now
    peer.closed = true;
    events_.failed(current_error(fmt::format("the exchange of messages with rank {}", rank)));
    return true;
  }
}

void Mailbox::add_interests(std::vector<transport::Interest>& interests) const {
  using transport::Readiness;
  for (Rank rank = 0; rank < static_cast<Rank>(peers_.size()); ++rank) {
    // A wait also ends when a link is made.
    if (rank == self_ || at(rank).closed || !at(rank).is_linked) continue;
    interests.push_back({rank, Readiness::kReadable});
    if (at(rank).has_unsent()) interests.push_back({rank, Readiness::kWritable});
  }
}

bool Mailbox::has_work() const {
  return std::any_of(
      peers_.begin(), peers_.end(), [](const Peer& peer) { return peer.has_work(); });
}

bool Mailbox::is_busy() const {
  return std::any_of(peers_.begin(), peers_.end(), [](const Peer& peer) { return peer.is_busy(); });
}

bool Mailbox::is_sent() const {
  for (Rank rank = 0; rank < static_cast<Rank>(peers_.size()); ++rank) {
    if (can_receive(rank) && (at(rank).has_unsent() || at(rank).has_offers())) return false;
  }
  return true;
}

Bytes Mailbox::unacknowledged() const {
  Bytes sum = 0_B;
  for (Rank rank = 0; rank < static_cast<Rank>(peers_.size()); ++rank) {
    if (can_receive(rank)) sum += transport_.mail().unacknowledged(rank);
  }
  return sum;
}

std::optional<MessageCount> Mailbox::held_behind(const Ticket& ticket) const {
  if (ticket.peer() == kAnySource) return std::nullopt;
  const EagerSends& sends =
      ticket.peer() == self_ ? self_mail_.sends() : at(ticket.peer()).eager_sends;
  if (!sends.holds(ticket)) return std::nullopt;
  return sends.unreceived();
}

// ---- failures and departures

void Mailbox::fail(const Error& cause) {
  if (!failure_) failure_ = cause;
  // First withdraw the window: the memory of offers is borrowed only until the tickets end.
  if (transport_.window() != nullptr) transport_.window()->withdraw();
  for (Peer& peer : peers_) {
    peer.forget_messages();
    peer.needs_link = false;
  }
  self_mail_.forget_held();
  matching_.clear();
  open_.fail(cause);
}

void Mailbox::tell_abort(const Error& cause) { notify_all(failure_notice(cause)); }

void Mailbox::notify_all(GroupNotice notice) {
  for (Rank rank = 0; rank < static_cast<Rank>(peers_.size()); ++rank) {
    Peer& peer = at(rank);
    if (rank == self_ || peer.sending_closed || !peer.is_linked) continue;
    peer.stream.post_owned(notice.frame, notice.payload);
    // The peer's bytes were invalid, but the peer may still read. Pump once here, because nothing
    // else pumps this stream any more.
    if (peer.closed) peer.stream.pump_out();
  }
  notices_.push_back(std::move(notice));
}

void Mailbox::send_progress_report(Rank peer, const engine::ProgressReport& report) {
  if (peer == self_ || !can_receive(peer) || at(peer).has_unsent() || has_failed()) return;
  GroupNotice news = progress_notice(report);
  at(peer).needs_link = true;
  at(peer).stream.post_owned(news.frame, std::move(news.payload));
  move(peer);
}

void Mailbox::send_leave(Departure departure) { notify_all(departure_notice(departure)); }

void Mailbox::on_stream_end(Rank peer) {
  at(peer).closed = true;
  const bool is_refused = transport_.mail().link_state(peer) == transport::LinkState::kRefused;
  if (is_refused) {  // it left before the two ranks had anything to do with each other
    on_leave(peer, Departure::kNormal);
  } else if (!at(peer).departure) {
    events_.lost(peer);
  } else if (at(peer).has_sends() || at(peer).has_receives() || matching_.has_claim_on(peer)) {
    miss(peer);
  }
}

void Mailbox::close_damaged(Rank peer, const std::string& how) {
  at(peer).closed = true;
  events_.damaged(peer, how);
}

/// A peer that has left receives nothing more. What this rank expects from it must be in flight.
void Mailbox::on_leave(Rank peer, Departure departure) {
  at(peer).departure = departure;
  if (matching_.expects(peer) || at(peer).has_sends()) {
    miss(peer);
  } else if (all_others_are_gone() && matching_.expects(kAnySource)) {
    miss(kAnySource);  // the last rank to leave need not be the cause
  }
}

/// If all ranks have left, a rank that left because of an exception is the likely cause.
void Mailbox::miss(Rank peer) {
  if (peer == kAnySource) {
    const auto thrower = std::find_if(peers_.begin(), peers_.end(), [](const Peer& p) {
      return p.departure == Departure::kByException;
    });
    if (thrower == peers_.end()) return events_.failed(messages_from_all_gone(self_));
    peer = static_cast<Rank>(thrower - peers_.begin());
  }
  const Departure departure = at(peer).departure.value_or(Departure::kNormal);
  events_.left(peer, departure, messages_from_gone(self_, peer, departure, transport_));
}

bool Mailbox::all_others_are_gone() const {
  for (Rank rank = 0; rank < static_cast<Rank>(peers_.size()); ++rank) {
    if (rank != self_ && !at(rank).is_gone()) return false;
  }
  return peers_.size() > 1;
}

}  // namespace peal::mail
