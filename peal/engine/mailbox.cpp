#include "peal/engine/mailbox.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "peal/base/cpus.h"
#include "peal/base/error.h"
#include "peal/engine/mail_errors.h"
#include "peal/engine/mail_news.h"
#include "peal/kernels/kernels.h"
#include "peal/transport/window.h"

namespace peal::engine {
namespace {

/// Of a small message.
MailFrame eager_frame(const Envelope& envelope) {
  return {.kind = MailFrame::Kind::kEager,
          .dtype = static_cast<std::uint8_t>(envelope.dtype),
          .tag = envelope.tag,
          .count = envelope.count,
          .payload = bytes_of(envelope.count, envelope.dtype)};
}

/// The messages that the frame gives back.
MailCount count_of(const MailFrame& credit) {
  return {credit.count.value, Bytes(static_cast<std::int64_t>(credit.id))};
}

bool is_large(const MailFrame& offer) {
  return bytes_of(offer.count, DType{offer.dtype}) > kEagerLimit;
}

bool is_offer_of(const MailFrame& offer, const MailFrame& message) {
  return offer.tag == message.tag && offer.dtype == message.dtype && offer.count == message.count;
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
  for (Rank rank = 0; rank < ranks; ++rank) {
    peers_.emplace_back(MailStream(rank, transport.mail()),
                        PlacedMail(self, rank, transport.window(), streamed),
                        kept,
                        &memory_);
  }
}

// ---- posting

bool Mailbox::send_at_once(const Envelope& envelope, const std::byte* data) {
  const MailFrame frame = eager_frame(envelope);
  if (failure_ || frame.payload > kEagerLimit || envelope.peer == self_) return false;
  MailPeer& peer = at(envelope.peer);
  if (peer.departure || !peer.hears() || !peer.eager_sends.admits(frame.payload)) return false;
  if (!peer.stream.post_at_once(frame, bytes_at(data, frame.payload))) return false;
  peer.eager_sends.sent(frame.payload);
  move(envelope.peer);
  return true;
}

void Mailbox::send(const TicketPtr& ticket, const Envelope& envelope, const std::byte* data) {
  if (failure_) return ticket->fail(*failure_);
  open_.add(ticket);
  const MailFrame frame = eager_frame(envelope);
  const std::span<const std::byte> bytes = bytes_at(data, frame.payload);
  if (envelope.peer == self_) {
    send_to_self(ticket, frame, bytes);
    return;
  }
  if (at(envelope.peer).is_gone()) {
    miss(envelope.peer);
    return;
  }
  MailPeer& peer = at(envelope.peer);
  if (frame.payload <= kEagerLimit && peer.eager_sends.admits(frame.payload)) {
    peer.stream.post(frame, bytes, ticket);
    peer.eager_sends.sent(frame.payload);
  } else {
    offer(ticket, frame, envelope.peer, bytes);
  }
  move(envelope.peer);
}

void Mailbox::offer(const TicketPtr& ticket,
                    MailFrame frame,
                    Rank to,
                    std::span<const std::byte> data) {
  MailPeer& peer = at(to);
  frame.id = next_id_++;
  if (frame.payload <= kEagerLimit) {
    peer.eager_sends.hold({ticket, frame, data});
    frame.kind = MailFrame::Kind::kOffer;
  } else {
    const auto place = peer.placed.place(data.data(), frame.payload);
    frame.kind = place ? MailFrame::Kind::kPlaced : MailFrame::Kind::kOffer;
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
}

void Mailbox::send_to_self(const TicketPtr& ticket,
                           const MailFrame& frame,
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

bool Mailbox::move(Rank rank) {
  MailPeer& peer = at(rank);
  try {
    const MailStream::State state = peer.pump(*this);
    if (state == MailStream::State::kClosed) on_stream_end(rank);
    if (state == MailStream::State::kDamaged) close_damaged(rank, "what it sends is not peal's");
    const bool copied = peer.copy_next_piece();
    return copied || state != MailStream::State::kBlocked;
  } catch (const std::exception&) {  // the stream is out of step
    peer.closed = true;
    events_.failed(current_error(fmt::format("the exchange of messages with rank {}", rank)));
    return true;
  }
}

void Mailbox::add_interests(std::vector<transport::Interest>& interests) const {
  using transport::Readiness;
  for (Rank rank = 0; rank < static_cast<Rank>(peers_.size()); ++rank) {
    if (rank == self_ || at(rank).closed) continue;
    interests.push_back({rank, Readiness::kReadable});
    if (at(rank).has_unsent()) interests.push_back({rank, Readiness::kWritable});
  }
}

bool Mailbox::has_work() const {
  return std::any_of(
      peers_.begin(), peers_.end(), [](const MailPeer& peer) { return peer.has_work(); });
}

bool Mailbox::is_busy() const {
  return std::any_of(
      peers_.begin(), peers_.end(), [](const MailPeer& peer) { return peer.is_busy(); });
}

bool Mailbox::is_sent() const {
  for (Rank rank = 0; rank < static_cast<Rank>(peers_.size()); ++rank) {
    if (hears(rank) && (at(rank).has_unsent() || at(rank).has_offers())) return false;
  }
  return true;
}

Bytes Mailbox::unacknowledged() const {
  Bytes sum = 0_B;
  for (Rank rank = 0; rank < static_cast<Rank>(peers_.size()); ++rank) {
    if (hears(rank)) sum += transport_.mail().unacknowledged(rank);
  }
  return sum;
}

std::optional<MailCount> Mailbox::held_behind(const Ticket& ticket) const {
  if (ticket.peer() == kAnySource) return std::nullopt;
  const EagerSends& sends =
      ticket.peer() == self_ ? self_mail_.sends() : at(ticket.peer()).eager_sends;
  if (!sends.holds(ticket)) return std::nullopt;
  return sends.unreceived();
}

// ---- frames that come in

std::span<std::byte> Mailbox::begin_frame(Rank from, const MailFrame& frame) {
  MailPeer& peer = at(from);
  peer.eager.reset();
  peer.arriving.reset();
  switch (frame.kind) {
    case MailFrame::Kind::kEager:
    case MailFrame::Kind::kOffer:
    case MailFrame::Kind::kPlaced:
      return has_failed() || peer.closed ? std::span<std::byte>() : begin_message(from, frame);
    case MailFrame::Kind::kData:
      return has_failed() || peer.closed ? std::span<std::byte>() : begin_piece(from, frame);
    case MailFrame::Kind::kAbort:
    case MailFrame::Kind::kStanding:
      peer.text.resize(static_cast<std::size_t>(frame.payload.value));
      return peer.text;
    case MailFrame::Kind::kAccept:
    case MailFrame::Kind::kTaken:
    case MailFrame::Kind::kFarewell:
    case MailFrame::Kind::kCredit:
      break;
  }
  return {};
}

void Mailbox::end_frame(Rank from, const MailFrame& frame) {
  switch (frame.kind) {
    case MailFrame::Kind::kEager:
      end_message(from);
      break;
    case MailFrame::Kind::kOffer:
    case MailFrame::Kind::kPlaced:
      break;
    case MailFrame::Kind::kAccept:
      at(from).accepted(frame.id);
      break;
    case MailFrame::Kind::kTaken:
      at(from).sends.taken(frame.id, from);
      break;
    case MailFrame::Kind::kData:
      if (!at(from).closed) at(from).receives.end_piece(frame, from);
      break;
    case MailFrame::Kind::kAbort:
      events_.failed(failure_in(frame, at(from).text));
      break;
    case MailFrame::Kind::kStanding:
      if (const auto standing = Standing::decode(at(from).text)) {
        events_.standing(from, *standing);
      } else {
        close_damaged(from, "it says that it is in an operation that is none");
      }
      break;
    case MailFrame::Kind::kFarewell:
      on_farewell(from, Departure{frame.dtype});
      break;
    case MailFrame::Kind::kCredit:
      if (!at(from).eager_sends.give_back(count_of(frame)) && !at(from).closed) {
        close_damaged(from, "it says that it received more messages than it was sent");
      }
      break;
  }
}

/// A message, or the offer of one: goes to the first receive that it matches, or waits for one.
std::span<std::byte> Mailbox::begin_message(Rank from, const MailFrame& frame) {
  MailPeer& peer = at(from);
  if (frame.kind == MailFrame::Kind::kEager) {
    if (!peer.eager_receives.came(frame.payload)) {
      close_damaged(from, "it sends more small messages than this rank has room for");
      return {};
    }
    if (frame.id != 0) return begin_offered(from, frame);
  }
  if (auto receive = matching_.take(from, frame.tag)) {
    if (!fits(*receive, from, frame)) return {};
    if (frame.is_offer()) {
      accept(from, frame, std::move(*receive));
      return {};
    }
    peer.eager = std::move(receive);
    return {peer.eager->data, static_cast<std::size_t>(frame.payload.value)};
  }
  if (frame.is_offer()) {
    keep_offer(from, frame);
    return {};
  }
  return begin_arrival(from, matching_.keep(from, frame));
}

std::span<std::byte> Mailbox::begin_arrival(Rank from, Matching::Place arrival) {
  at(from).arriving = arrival;
  return arrival->payload.make_room(static_cast<std::size_t>(arrival->frame.payload.value));
}

void Mailbox::keep_offer(Rank from, const MailFrame& frame) {
  const auto offer = matching_.keep(from, frame);
  const bool is_held = frame.kind == MailFrame::Kind::kOffer && !is_large(frame);
  if (!is_held) return;
  if (!at(from).eager_receives.offered(frame.id, offer)) {
    close_damaged(from, "it offers two messages by one number");
  }
}

/// A small message arrives that the peer had held back. Its receive may have been called while the
/// message was on its way.
std::span<std::byte> Mailbox::begin_offered(Rank from, const MailFrame& frame) {
  MailPeer& peer = at(from);
  if (const auto arrival = peer.eager_receives.take_offer(frame.id)) {
    MailFrame& offer = (*arrival)->frame;
    if (is_offer_of(offer, frame)) {
      offer = frame;
      return begin_arrival(from, *arrival);
    }
  } else if (auto receive = peer.receives.take(frame.id, frame.payload)) {
    peer.eager = std::move(receive);
    return {peer.eager->data, static_cast<std::size_t>(frame.payload.value)};
  }
  close_damaged(from, "it sends another message than it offered");
  return {};
}

void Mailbox::end_message(Rank from) {
  MailPeer& peer = at(from);
  if (peer.eager) {
    received(from, peer.eager->size());
    peer.eager->ticket->succeed(from);
    peer.eager.reset();
  } else if (peer.arriving) {
    const Matching::Place arrival = *std::exchange(peer.arriving, std::nullopt);
    arrival->complete = true;
    if (arrival->claimed_by) {
      Receive receive = std::move(*arrival->claimed_by);
      meet(arrival, std::move(receive));
    }
  }
}

std::span<std::byte> Mailbox::begin_piece(Rank from, const MailFrame& frame) {
  LargeReceives& receives = at(from).receives;
  if (const auto objection = receives.objection(frame)) {
    close_damaged(from, *objection);
    return {};
  }
  return receives.place_of(frame);
}

// ---- a receive meets its message

/// A receive and the message that waited for it.
void Mailbox::meet(Matching::Place arrival, Receive receive) {
  if (!fits(receive, arrival->from, arrival->frame)) return;
  if (arrival->frame.is_offer()) {
    accept(arrival->from, arrival->frame, std::move(receive));
  } else if (!arrival->complete) {
    arrival->claimed_by = std::move(receive);
    return;
  } else {
    kernels::copy(arrival->payload.bytes().data(), receive.data, receive.size());
    received(arrival->from, receive.size());
    receive.ticket->succeed(arrival->from);
  }
  matching_.drop(arrival);
}

/// A receive has taken a message that counts against the bound.
void Mailbox::received(Rank from, Bytes payload) {
  if (from == self_) return self_mail_.received(payload);
  at(from).eager_receives.taken(payload);
}

void Mailbox::accept(Rank from, const MailFrame& offer, Receive receive) {
  if (from == self_) return self_mail_.receive_held(offer, receive);
  at(from).eager_receives.take_offer(offer.id);  // if it is the offer of a small message
  if (at(from).closed) {
    miss(from);
    return;
  }
  if (offer.kind == MailFrame::Kind::kPlaced) {
    if (!at(from).placed.start(offer, std::move(receive))) {
      close_damaged(from, "it offers a message in memory that is not shared");
    }
    return;
  }
  if (!at(from).receives.expect(offer.id, std::move(receive))) {
    close_damaged(from, "it offers two messages by one number");
    return;
  }
  at(from).stream.post({.kind = MailFrame::Kind::kAccept, .id = offer.id});
}

bool Mailbox::fits(const Receive& receive, Rank from, const MailFrame& frame) {
  const Envelope& wanted = receive.envelope;
  if (DType{frame.dtype} == wanted.dtype && frame.count == wanted.count) return true;
  events_.failed(no_fit(self_, wanted, from, frame));
  return false;
}

// ---- ends

void Mailbox::fail(const Error& cause) {
  if (!failure_) failure_ = cause;
  // Before the tickets end, and with them the loan of what they offered.
  if (transport_.window() != nullptr) transport_.window()->withdraw();
  for (MailPeer& peer : peers_) peer.let_go();
  self_mail_.let_go();
  matching_.clear();
  open_.fail(cause);
}

void Mailbox::tell_abort(const Error& cause) {
  const MailNews news = news_of_failure(cause);
  for (Rank rank = 0; rank < static_cast<Rank>(peers_.size()); ++rank) {
    MailPeer& peer = at(rank);
    if (rank == self_ || peer.deaf) continue;
    peer.stream.post_owned(news.frame, news.payload);
    // What it sends made no sense, but it may read: this once, as nobody moves its stream any more.
    if (peer.closed) peer.stream.pump_out();
  }
}

void Mailbox::tell_standing(Rank peer, const Standing& standing) {
  if (peer == self_ || !hears(peer) || at(peer).has_unsent() || has_failed()) return;
  MailNews news = news_of_standing(standing);
  at(peer).stream.post_owned(news.frame, std::move(news.payload));
  move(peer);
}

void Mailbox::say_farewell(Departure departure) {
  const MailFrame frame = news_of_departure(departure).frame;
  for (Rank rank = 0; rank < static_cast<Rank>(peers_.size()); ++rank) {
    if (rank != self_ && !at(rank).closed) at(rank).stream.post(frame);
  }
}

void Mailbox::on_stream_end(Rank peer) {
  at(peer).closed = true;
  if (!at(peer).departure) {
    events_.lost(peer);
  } else if (at(peer).has_sends() || at(peer).has_receives() || matching_.has_claim_on(peer)) {
    miss(peer);
  }
}

void Mailbox::close_damaged(Rank peer, const std::string& how) {
  at(peer).closed = true;
  events_.failed(damaged(peer, how, transport_));
}

/// It takes nothing more, and what is expected of it must be on its way already.
void Mailbox::on_farewell(Rank peer, Departure departure) {
  at(peer).departure = departure;
  if (matching_.expects(peer) || at(peer).has_sends()) {
    miss(peer);
  } else if (all_others_are_gone() && matching_.expects(kAnySource)) {
    miss(kAnySource);  // who happens to be the last need not be the one to look at
  }
}

/// Where all ranks are gone, one that an exception has ended is the one to look at.
void Mailbox::miss(Rank peer) {
  if (peer == kAnySource) {
    const auto thrower = std::find_if(peers_.begin(), peers_.end(), [](const MailPeer& p) {
      return p.departure == Departure::kByException;
    });
    if (thrower == peers_.end()) return events_.failed(messages_from_all_gone(self_));
    peer = static_cast<Rank>(thrower - peers_.begin());
  }
  const Departure departure = at(peer).departure.value_or(Departure::kInOrder);
  events_.left(peer, departure, messages_from_gone(self_, peer, departure, transport_));
}

bool Mailbox::all_others_are_gone() const {
  for (Rank rank = 0; rank < static_cast<Rank>(peers_.size()); ++rank) {
    if (rank != self_ && !at(rank).is_gone()) return false;
  }
  return peers_.size() > 1;
}

}  // namespace peal::engine
