#include "peal/engine/mailbox.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "peal/base/cpus.h"
#include "peal/base/error.h"
#include "peal/engine/mail_errors.h"
#include "peal/kernels/kernels.h"
#include "peal/transport/window.h"

namespace peal::engine {
namespace {

/// So much is copied at a time: the news of a failure, and whoever else needs the mailbox, wait no
/// longer.
constexpr Bytes kCopyPiece = 1_MiB;

/// Of a small message.
MailFrame eager_frame(const Envelope& envelope) {
  return {.kind = MailFrame::Kind::kEager,
          .dtype = static_cast<std::uint8_t>(envelope.dtype),
          .tag = envelope.tag,
          .count = envelope.count,
          .payload = bytes_of(envelope.count, envelope.dtype)};
}

std::span<const std::byte> bytes_at(const std::byte* data, Bytes size) {
  return {data, static_cast<std::size_t>(size.value)};
}

}  // namespace

Mailbox::Mailbox(Rank self, int ranks, transport::Transport& transport, Events events)
    : self_(self),
      transport_(transport),
      events_(std::move(events)),
      streamed_(last_cache().value / 2) {
  for (Rank rank = 0; rank < ranks; ++rank) peers_.emplace_back(MailStream(rank, transport.mail()));
}

// ---- posting

bool Mailbox::send_at_once(const Envelope& envelope, const std::byte* data) {
  const MailFrame frame = eager_frame(envelope);
  if (failure_ || frame.payload > kEagerLimit || envelope.peer == self_) return false;
  Peer& peer = at(envelope.peer);
  if (peer.departure || peer.closed || peer.deaf) return false;
  if (!peer.stream.post_at_once(frame, bytes_at(data, frame.payload))) return false;
  move(envelope.peer);
  return true;
}

void Mailbox::send(const TicketPtr& ticket, const Envelope& envelope, const std::byte* data) {
  if (failure_) return ticket->fail(*failure_);
  open_.push_back(ticket);
  MailFrame frame = eager_frame(envelope);
  const std::span<const std::byte> bytes = bytes_at(data, frame.payload);
  if (envelope.peer == self_) {
    send_to_self(ticket, frame, bytes);
    return;
  }
  if (is_gone(envelope.peer)) {
    events_.failed(gone(envelope.peer));
    return;
  }
  Peer& peer = at(envelope.peer);
  if (frame.payload <= kEagerLimit) {
    peer.stream.post(frame, bytes, ticket);
  } else {
    frame.kind = MailFrame::Kind::kOffer;
    frame.id = next_id_++;
    if (transport::Window* const window = window_to(envelope.peer); window != nullptr) {
      if (const auto place = window->locate(data, frame.payload)) {
        frame.kind = MailFrame::Kind::kPlaced;
        frame.place = place->offset.value;
        transport::copy_edges(*place, frame.payload, data, window->address(self_, place->offset));
      }
    }
    frame.payload = 0_B;
    peer.offered.emplace(frame.id, LargeSend{ticket, frame.id, bytes});
    peer.stream.post(frame);
  }
  move(envelope.peer);
}

void Mailbox::receive(const TicketPtr& ticket, const Envelope& envelope, std::byte* data) {
  if (failure_) return ticket->fail(*failure_);
  open_.push_back(ticket);
  Receive receive{ticket, envelope, data, 0_B};
  if (const auto arrival = matching_.find(envelope); arrival != matching_.nowhere()) {
    meet(arrival, std::move(receive));
    return;
  }
  if (envelope.peer == kAnySource ? all_others_are_gone() : is_gone(envelope.peer)) {
    events_.failed(gone(envelope.peer));
    return;
  }
  matching_.post(std::move(receive));
}

/// Memory to memory: the message is kept until its receive comes, like any small one.
void Mailbox::send_to_self(const TicketPtr& ticket,
                           const MailFrame& frame,
                           std::span<const std::byte> data) {
  const auto arrival =
      matching_.keep({self_, frame, {data.begin(), data.end()}, true, std::nullopt});
  ticket->succeed(self_);
  if (auto receive = matching_.take(self_, frame.tag)) meet(arrival, std::move(*receive));
}

// ---- moving

bool Mailbox::advance() {
  bool moved = false;
  for (Rank rank = 0; rank < static_cast<Rank>(peers_.size()); ++rank) {
    if (rank != self_ && !at(rank).closed) moved |= move(rank);
  }
  return moved;
}

bool Mailbox::move(Rank rank) {
  Peer& peer = at(rank);
  try {
    const MailStream::State state = pump(peer);
    if (state == MailStream::State::kClosed) on_stream_end(rank);
    if (state == MailStream::State::kDamaged) close_damaged(rank, "what it sends is not peal's");
    const bool copied = !peer.copies.empty() && copy_next_piece(rank);
    return copied || state != MailStream::State::kBlocked;
  } catch (const std::exception&) {  // the stream is out of step
    peer.closed = true;
    events_.failed(current_error(fmt::format("the exchange of messages with rank {}", rank)));
    return true;
  }
}

/// What is to go out goes first: the peer reads it while this rank looks at what has come. A stream
/// that takes nothing more is not given up before that is read: the reason may be in it.
MailStream::State Mailbox::pump(Peer& peer) {
  using State = MailStream::State;
  bool sent = pump_out(peer);
  const State state = peer.stream.pump_in(*this);
  if (state == State::kClosed || state == State::kDamaged) return state;
  while (!peer.closed && !peer.deaf) {
    sent |= pump_out(peer);
    if (!post_next_piece(peer)) break;
  }
  return sent ? State::kMoved : state;
}

bool Mailbox::pump_out(Peer& peer) {
  if (!peer.has_unsent()) return false;
  const MailStream::State out = peer.stream.pump_out();
  peer.deaf = out == MailStream::State::kClosed;
  return out == MailStream::State::kMoved;
}

void Mailbox::add_interests(std::vector<transport::Interest>& interests) const {
  using transport::Readiness;
  for (Rank rank = 0; rank < static_cast<Rank>(peers_.size()); ++rank) {
    if (rank == self_ || at(rank).closed) continue;
    interests.push_back({rank, Readiness::kReadable});
    if (at(rank).has_unsent()) interests.push_back({rank, Readiness::kWritable});
  }
}

bool Mailbox::is_busy() const {
  return std::any_of(peers_.begin(), peers_.end(), [](const Peer& peer) {
    return peer.has_unsent() || !peer.copies.empty();
  });
}

bool Mailbox::is_flushed() const {
  return std::all_of(peers_.begin(), peers_.end(), [](const Peer& peer) {
    return peer.closed || peer.deaf ||
           (!peer.has_unsent() && peer.offered.empty() && peer.accepted.empty());
  });
}

void Mailbox::forget(const TicketPtr& ticket) {
  const auto found = std::find(open_.rbegin(), open_.rend(), ticket);  // mostly one of the last
  if (found != open_.rend()) open_.erase(std::next(found).base());
}

const std::vector<TicketPtr>& Mailbox::open_tickets() {
  std::erase_if(open_, [](const TicketPtr& ticket) { return ticket->ended(); });
  return open_;
}

// ---- frames that come in

std::span<std::byte> Mailbox::begin_frame(Rank from, const MailFrame& frame) {
  Peer& peer = at(from);
  peer.eager.reset();
  peer.arriving = matching_.nowhere();
  switch (frame.kind) {
    case MailFrame::Kind::kEager:
    case MailFrame::Kind::kOffer:
    case MailFrame::Kind::kPlaced:
      return has_failed() ? std::span<std::byte>() : begin_message(from, frame);
    case MailFrame::Kind::kData:
      return has_failed() || peer.closed ? std::span<std::byte>() : begin_piece(from, frame);
    case MailFrame::Kind::kAbort:
      peer.text.resize(static_cast<std::size_t>(frame.payload.value));
      return peer.text;
    case MailFrame::Kind::kAccept:
    case MailFrame::Kind::kTaken:
    case MailFrame::Kind::kFarewell:
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
      start_sending(from, frame.id);
      break;
    case MailFrame::Kind::kTaken:
      end_sending(from, frame.id);
      break;
    case MailFrame::Kind::kData:
      end_piece(from, frame);
      break;
    case MailFrame::Kind::kAbort: {
      const auto& text = at(from).text;
      const std::string message(reinterpret_cast<const char*>(text.data()), text.size());
      events_.failed(Error(error_kind_of(frame.dtype).value_or(ErrorKind::kBug), message));
      break;
    }
    case MailFrame::Kind::kFarewell:
      on_farewell(from, Departure{frame.dtype});
      break;
  }
}

/// A message, or the offer of one: goes to the first receive that it matches, or waits for one.
std::span<std::byte> Mailbox::begin_message(Rank from, const MailFrame& frame) {
  Peer& peer = at(from);
  if (auto receive = matching_.take(from, frame.tag)) {
    if (!fits(*receive, from, frame)) return {};
    if (frame.is_offer()) {
      accept(from, frame, std::move(*receive));
      return {};
    }
    peer.eager = std::move(receive);
    return {peer.eager->data, static_cast<std::size_t>(frame.payload.value)};
  }
  const auto arrival = matching_.keep({from, frame, {}, frame.is_offer(), std::nullopt});
  if (frame.is_offer()) return {};
  peer.arriving = arrival;
  peer.arriving->payload.resize(static_cast<std::size_t>(frame.payload.value));
  return peer.arriving->payload;
}

void Mailbox::end_message(Rank from) {
  Peer& peer = at(from);
  if (peer.eager) {
    peer.eager->ticket->succeed(from);
    peer.eager.reset();
  } else if (peer.arriving != matching_.nowhere()) {
    const auto arrival = std::exchange(peer.arriving, matching_.nowhere());
    arrival->complete = true;
    if (arrival->claimed_by) {
      Receive receive = std::move(*arrival->claimed_by);
      meet(arrival, std::move(receive));
    }
  }
}

std::span<std::byte> Mailbox::begin_piece(Rank from, const MailFrame& frame) {
  const auto found = at(from).large.find(frame.id);
  if (found == at(from).large.end()) {
    close_damaged(from, "it sends a piece of a message that nobody asked for");
    return {};
  }
  Receive& receive = found->second;
  if (receive.have + frame.payload > receive.size()) {
    close_damaged(from, "it sends more of a message than it offered");
    return {};
  }
  return {receive.data + receive.have.value, static_cast<std::size_t>(frame.payload.value)};
}

void Mailbox::end_piece(Rank from, const MailFrame& frame) {
  const auto found = at(from).large.find(frame.id);
  if (found == at(from).large.end() || at(from).closed) return;
  Receive& receive = found->second;
  receive.have += frame.payload;
  if (receive.have < receive.size()) return;
  receive.ticket->succeed(from);
  at(from).large.erase(found);
}

// ---- large messages that go out

void Mailbox::start_sending(Rank to, std::uint64_t id) {
  Peer& peer = at(to);
  const auto found = peer.offered.find(id);
  if (found == peer.offered.end()) return;
  peer.accepted.push_back(std::move(found->second));
  peer.offered.erase(found);
}

/// One piece at a time, so that the news of a failure never waits behind a whole message.
bool Mailbox::post_next_piece(Peer& peer) {
  if (peer.accepted.empty() || peer.stream.has_unsent()) return false;
  LargeSend& send = peer.accepted.front();
  const auto size = std::min(send.rest.size(), static_cast<std::size_t>(kDataPiece.value));
  const MailFrame frame{.kind = MailFrame::Kind::kData,
                        .id = send.id,
                        .payload = Bytes(static_cast<std::int64_t>(size))};
  const bool last = size == send.rest.size();
  peer.stream.post(frame, send.rest.first(size), last ? send.ticket : nullptr);
  send.rest = send.rest.subspan(size);
  if (last) peer.accepted.pop_front();
  return true;
}

/// The receiver has copied it.
void Mailbox::end_sending(Rank to, std::uint64_t id) {
  const auto found = at(to).offered.find(id);
  if (found == at(to).offered.end()) return;
  found->second.ticket->succeed(to);
  at(to).offered.erase(found);
}

// ---- large messages that are copied from where their sender has them

transport::Window* Mailbox::window_to(Rank peer) const {
  transport::Window* const window = transport_.window();
  return window != nullptr && window->reaches(peer) ? window : nullptr;
}

void Mailbox::start_copying(Rank from, const MailFrame& offer, Receive receive) {
  transport::Window* const window = window_to(from);
  const auto size = static_cast<std::uint64_t>(receive.size().value);
  if (window == nullptr || offer.place > UINT64_MAX - size) {
    close_damaged(from, "it offers a message in memory that is not shared");
    return;
  }
  const std::byte* const place = window->address(from, {offer.place});
  window->address(from, {offer.place + size});  // throws where that is beyond the arena
  at(from).copies.push_back({std::move(receive), offer.id, place});
}

/// Returns whether anything was copied. A sender whose group has failed withdraws what it has
/// offered before its call returns: what was read after that is no message, and what is left of the
/// receive waits for the news.
bool Mailbox::copy_next_piece(Rank from) {
  transport::Window& window = *transport_.window();
  Copy& copy = at(from).copies.front();
  Receive& receive = copy.receive;
  if (window.has_withdrawn(from)) return false;
  const Bytes size = std::min(receive.size() - receive.have, kCopyPiece);
  kernels::copy(
      copy.from + receive.have.value,
      receive.data + receive.have.value,
      size,
      receive.size() > streamed_ ? kernels::Stores::kStreaming : kernels::Stores::kCached);
  receive.have += size;
  if (receive.have < receive.size()) return true;
  if (window.has_withdrawn(from)) return false;
  at(from).stream.post({.kind = MailFrame::Kind::kTaken, .id = copy.id});
  at(from).stream.pump_out();  // the sender waits for it
  receive.ticket->succeed(from);
  at(from).copies.pop_front();
  return true;
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
    kernels::copy(arrival->payload.data(), receive.data, receive.size());
    receive.ticket->succeed(arrival->from);
  }
  matching_.drop(arrival);
}

void Mailbox::accept(Rank from, const MailFrame& offer, Receive receive) {
  if (at(from).closed) {
    events_.failed(gone(from));
    return;
  }
  if (offer.kind == MailFrame::Kind::kPlaced) {
    start_copying(from, offer, std::move(receive));
    return;
  }
  at(from).large.emplace(offer.id, std::move(receive));
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
  for (Peer& peer : peers_) {
    peer.stream.let_go();
    peer.offered.clear();
    peer.accepted.clear();
    peer.large.clear();
    peer.copies.clear();
    peer.eager.reset();
    peer.arriving = matching_.nowhere();
  }
  matching_.clear();
  for (const TicketPtr& ticket : open_) ticket->fail(cause);
  open_.clear();
}

void Mailbox::tell_abort(const Error& cause) {
  const std::string_view text =
      cause.message().substr(0, static_cast<std::size_t>(kAbortLimit.value));
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  for (Rank rank = 0; rank < static_cast<Rank>(peers_.size()); ++rank) {
    if (rank == self_ || at(rank).closed) continue;
    at(rank).stream.post_owned({.kind = MailFrame::Kind::kAbort,
                                .dtype = static_cast<std::uint8_t>(cause.kind()),
                                .payload = Bytes(static_cast<std::int64_t>(bytes.size()))},
                               {bytes.begin(), bytes.end()});
  }
}

void Mailbox::say_farewell(Departure departure) {
  const MailFrame frame{.kind = MailFrame::Kind::kFarewell,
                        .dtype = static_cast<std::uint8_t>(departure)};
  for (Rank rank = 0; rank < static_cast<Rank>(peers_.size()); ++rank) {
    if (rank != self_ && !at(rank).closed) at(rank).stream.post(frame);
  }
}

void Mailbox::on_stream_end(Rank peer) {
  at(peer).closed = true;
  if (!at(peer).departure) {
    events_.lost(peer);
  } else if (has_messages_for(peer) || awaits(peer)) {
    events_.failed(gone(peer));
  }
}

void Mailbox::close_damaged(Rank peer, const std::string& how) {
  at(peer).closed = true;
  events_.failed(damaged(peer, how, transport_));
}

/// It takes nothing more, and what is expected of it must be on its way already.
void Mailbox::on_farewell(Rank peer, Departure departure) {
  at(peer).departure = departure;
  if (matching_.expects(peer) || has_messages_for(peer)) {
    events_.failed(gone(peer));
  } else if (all_others_are_gone() && matching_.expects(kAnySource)) {
    events_.failed(gone(kAnySource));  // who happens to be the last need not be the one to look at
  }
}

/// Where all ranks are gone, one that an exception has ended is the one to look at.
Error Mailbox::gone(Rank peer) const {
  if (peer == kAnySource) {
    const auto thrower = std::find_if(peers_.begin(), peers_.end(), [](const Peer& p) {
      return p.departure == Departure::kByException;
    });
    if (thrower == peers_.end()) return messages_from_all_gone(self_);
    peer = static_cast<Rank>(thrower - peers_.begin());
  }
  const Departure departure = at(peer).departure.value_or(Departure::kInOrder);
  return messages_from_gone(self_, peer, departure, transport_);
}

bool Mailbox::all_others_are_gone() const {
  for (Rank rank = 0; rank < static_cast<Rank>(peers_.size()); ++rank) {
    if (rank != self_ && !is_gone(rank)) return false;
  }
  return peers_.size() > 1;
}

bool Mailbox::has_messages_for(Rank peer) const {
  return !at(peer).offered.empty() || !at(peer).accepted.empty() || at(peer).stream.has_borrowed();
}

bool Mailbox::awaits(Rank peer) const {
  return !at(peer).large.empty() || !at(peer).copies.empty() || matching_.has_claim_on(peer);
}

}  // namespace peal::engine
