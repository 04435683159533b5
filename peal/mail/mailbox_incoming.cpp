// The frames that arrive in a mailbox, and how a receive gets its message.
#include <optional>
#include <utility>

#include "peal/kernels/kernels.h"
#include "peal/mail/errors.h"
#include "peal/mail/group_notice.h"
#include "peal/mail/mailbox.h"

namespace peal::mail {
namespace {

/// The messages for which the frame gives back credit.
MessageCount count_of(const Frame& credit) {
  return {credit.count.value, Bytes(static_cast<std::int64_t>(credit.id))};
}

bool is_large(const Frame& offer) { return bytes_of(offer.count, offer.dtype) > kEagerLimit; }

bool is_offer_of(const Frame& offer, const Frame& message) {
  return offer.tag == message.tag && offer.dtype == message.dtype && offer.count == message.count;
}

}  // namespace

// ---- incoming frames

std::span<std::byte> Mailbox::begin_frame(Rank from, const Frame& frame) {
  Peer& peer = at(from);
  peer.eager.reset();
  peer.arriving.reset();
  switch (frame.kind) {
    case Frame::Kind::kEager:
    case Frame::Kind::kOffer:
    case Frame::Kind::kPlaced:
      return has_failed() || peer.closed ? std::span<std::byte>() : begin_message(from, frame);
    case Frame::Kind::kData:
      return has_failed() || peer.closed ? std::span<std::byte>() : begin_piece(from, frame);
    case Frame::Kind::kAbort:
    case Frame::Kind::kProgressReport:
    case Frame::Kind::kLeave:
      peer.text.resize(static_cast<std::size_t>(frame.payload.value));
      return peer.text;
    case Frame::Kind::kAccept:
    case Frame::Kind::kTaken:
    case Frame::Kind::kCredit:
      break;
  }
  return {};
}

void Mailbox::end_frame(Rank from, const Frame& frame) {
  switch (frame.kind) {
    case Frame::Kind::kEager:
      end_message(from);
      break;
    case Frame::Kind::kOffer:
    case Frame::Kind::kPlaced:
      break;
    case Frame::Kind::kAccept:
      at(from).accepted(frame.id);
      break;
    case Frame::Kind::kTaken:
      at(from).sends.taken(frame.id, from);
      break;
    case Frame::Kind::kData:
      if (!at(from).closed) at(from).receives.end_piece(frame, from);
      break;
    case Frame::Kind::kAbort:
      if (const auto failure = failure_in(at(from).text)) {
        events_.failed(*failure);
      } else {
        close_damaged(from, "it reports that the group has failed, but not the cause");
      }
      break;
    case Frame::Kind::kProgressReport:
      if (const auto report = engine::ProgressReport::decode(at(from).text)) {
        events_.report(from, *report);
      } else {
        close_damaged(from, "it reports an operation that does not exist");
      }
      break;
    case Frame::Kind::kLeave:
      if (const auto departure = departure_in(at(from).text)) {
        on_leave(from, *departure);
      } else {
        close_damaged(from, "it reports that it leaves, but not how");
      }
      break;
    case Frame::Kind::kCredit:
      if (!at(from).eager_sends.give_back(count_of(frame)) && !at(from).closed) {
        close_damaged(from, "it confirms more messages than this rank has sent");
      }
      break;
  }
}

/// A message or an offer arrives. It goes to the first receive that matches, or waits for a
/// receive.
std::span<std::byte> Mailbox::begin_message(Rank from, const Frame& frame) {
  Peer& peer = at(from);
  if (frame.kind == Frame::Kind::kEager) {
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

std::span<std::byte> Mailbox::begin_arrival(Rank from, Matching::Position arrival) {
  at(from).arriving = arrival;
  return arrival->payload.make_room(static_cast<std::size_t>(arrival->frame.payload.value));
}

void Mailbox::keep_offer(Rank from, const Frame& frame) {
  const auto offer = matching_.keep(from, frame);
  const bool is_held = frame.kind == Frame::Kind::kOffer && !is_large(frame);
  if (!is_held) return;
  if (!at(from).eager_receives.offered(frame.id, offer)) {
    close_damaged(from, "it offers two messages with one number");
  }
}

/// A small message arrives that the peer had held back. Its receive may have been called while the
/// message was in flight.
std::span<std::byte> Mailbox::begin_offered(Rank from, const Frame& frame) {
  Peer& peer = at(from);
  if (const auto arrival = peer.eager_receives.take_offer(frame.id)) {
    Frame& offer = (*arrival)->frame;
    if (is_offer_of(offer, frame)) {
      offer = frame;
      return begin_arrival(from, *arrival);
    }
  } else if (auto receive = peer.receives.take(frame.id, frame.payload)) {
    peer.eager = std::move(receive);
    return {peer.eager->data, static_cast<std::size_t>(frame.payload.value)};
  }
  close_damaged(from, "it sends a message that differs from its offer");
  return {};
}

void Mailbox::end_message(Rank from) {
  Peer& peer = at(from);
  if (peer.eager) {
    received(from, peer.eager->size());
    peer.eager->ticket->succeed(from);
    peer.eager.reset();
  } else if (peer.arriving) {
    const Matching::Position arrival = *std::exchange(peer.arriving, std::nullopt);
    arrival->complete = true;
    if (arrival->claimed_by) {
      Receive receive = std::move(*arrival->claimed_by);
      meet(arrival, std::move(receive));
    }
  }
}

std::span<std::byte> Mailbox::begin_piece(Rank from, const Frame& frame) {
  LargeReceives& receives = at(from).receives;
  if (const auto objection = receives.objection(frame)) {
    close_damaged(from, *objection);
    return {};
  }
  return receives.place_of(frame);
}

// ---- matching a receive with its message

/// Matches a receive with a message that was waiting for it.
void Mailbox::meet(Matching::Position arrival, Receive receive) {
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

void Mailbox::accept(Rank from, const Frame& offer, Receive receive) {
  if (from == self_) return self_mail_.receive_held(offer, receive);
  at(from).eager_receives.take_offer(offer.id);  // if it is the offer of a small message
  if (at(from).closed) {
    miss(from);
    return;
  }
  if (offer.kind == Frame::Kind::kPlaced) {
    if (!at(from).placed.start(offer, std::move(receive))) {
      close_damaged(from, "it offers a message in memory that is not shared");
    }
    return;
  }
  if (!at(from).receives.expect(offer.id, std::move(receive))) {
    close_damaged(from, "it offers two messages with one number");
    return;
  }
  at(from).stream.post({.kind = Frame::Kind::kAccept, .id = offer.id});
}

bool Mailbox::fits(const Receive& receive, Rank from, const Frame& frame) {
  const Envelope& wanted = receive.envelope;
  if (frame.dtype == wanted.dtype && frame.count == wanted.count) return true;
  events_.failed(receive_mismatch(self_, receive, from, frame));
  return false;
}

}  // namespace peal::mail
