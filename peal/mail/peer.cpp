#include "peal/mail/peer.h"

namespace peal::mail {

/// Sends first: the peer reads while this rank looks at what has arrived. If the stream accepts no
/// more bytes, reads what has arrived before giving up the stream, because it may contain the
/// reason.
FrameStream::State Peer::pump(FrameReader& reader) {
  using State = FrameStream::State;
  bool sent = pump_out();
  const State state = stream.pump_in(reader);
  if (state == State::kClosed || state == State::kDamaged) return state;
  sent |= post_credit();
  sent |= pump_out();
  if (can_receive() && (eager_sends.post_next(stream) || sends.post_next_piece(stream))) {
    pump_out();
    sent = true;
  }
  return sent ? State::kMoved : state;
}

bool Peer::post_credit() {
  if (!owes_credit()) return false;
  const MessageCount received = eager_receives.give_back();
  stream.post({.kind = Frame::Kind::kCredit,
               .count = Elements(received.messages),
               .id = static_cast<std::uint64_t>(received.bytes.value)});
  return true;
}

bool Peer::pump_out() {
  if (!has_unsent()) return false;
  const FrameStream::State out = stream.pump_out();
  sending_closed = out == FrameStream::State::kClosed;
  return out == FrameStream::State::kMoved;
}

bool Peer::copy_next_piece() {
  if (!placed.copy_next_piece()) return false;
  if (const auto copied = placed.take_copied()) {
    stream.post({.kind = Frame::Kind::kTaken, .id = copied->id});
    stream.pump_out();  // the sender waits for it
    copied->ticket->succeed(stream.peer());
  }
  return true;
}

void Peer::accepted(std::uint64_t id) {
  if (auto held = eager_sends.take(id)) {
    sends.start(id, held->ticket, held->data);
  } else {
    sends.accepted(id);
  }
}

void Peer::forget_messages() {
  stream.release_borrowed();
  eager_sends.clear();
  eager_receives.clear();
  sends.clear();
  receives.clear();
  placed.clear();
  eager.reset();
  arriving.reset();
}

}  // namespace peal::mail
