#include "peal/engine/mail_peer.h"

namespace peal::engine {

/// What is to go out goes first: the peer reads it while this rank looks at what has come. A stream
/// that takes nothing more is not given up before that is read: the reason may be in it.
MailStream::State MailPeer::pump(MailReader& reader) {
  using State = MailStream::State;
  bool sent = pump_out();
  const State state = stream.pump_in(reader);
  if (state == State::kClosed || state == State::kDamaged) return state;
  sent |= post_credit();
  sent |= pump_out();
  if (hears() && (eager_sends.post_next(stream) || sends.post_next_piece(stream))) {
    pump_out();
    sent = true;
  }
  return sent ? State::kMoved : state;
}

bool MailPeer::post_credit() {
  if (!owes_credit()) return false;
  const MailCount received = eager_receives.give_back();
  stream.post({.kind = MailFrame::Kind::kCredit,
               .count = Elements(received.messages),
               .id = static_cast<std::uint64_t>(received.bytes.value)});
  return true;
}

bool MailPeer::pump_out() {
  if (!has_unsent()) return false;
  const MailStream::State out = stream.pump_out();
  deaf = out == MailStream::State::kClosed;
  return out == MailStream::State::kMoved;
}

bool MailPeer::copy_next_piece() {
  if (!placed.copy_next_piece()) return false;
  if (const auto copied = placed.take_copied()) {
    stream.post({.kind = MailFrame::Kind::kTaken, .id = copied->id});
    stream.pump_out();  // the sender waits for it
    copied->ticket->succeed(stream.peer());
  }
  return true;
}

void MailPeer::accepted(std::uint64_t id) {
  if (auto held = eager_sends.take(id)) {
    sends.start(id, held->ticket, held->data);
  } else {
    sends.accepted(id);
  }
}

void MailPeer::let_go() {
  stream.let_go();
  eager_sends.clear();
  eager_receives.clear();
  sends.clear();
  receives.clear();
  placed.clear();
  eager.reset();
  arriving.reset();
}

}  // namespace peal::engine
