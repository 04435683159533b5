#include "peal/mail/self_mail.h"

#include <algorithm>

#include "peal/kernels/kernels.h"

namespace peal::mail {
namespace {

/// Stores the payload of a kept message.
void fill(Arrival& arrival, std::span<const std::byte> data) {
  const std::span<std::byte> room = arrival.payload.make_room(data.size());
  std::copy(data.begin(), data.end(), room.begin());
  arrival.complete = true;
}

}  // namespace

void SelfMail::send(const TicketPtr& ticket, const Frame& frame, std::span<const std::byte> data) {
  if (sends_.admits(frame.payload)) {
    fill(*matching_.keep(self_, frame), data);
    sends_.sent(frame.payload);
    ticket->succeed(self_);
    return;
  }
  Frame offer = frame;
  offer.id = next_id_++;
  sends_.hold({ticket, offer, data});
  offer.kind = Frame::Kind::kOffer;
  offers_.emplace(offer.id, matching_.keep(self_, offer));
}

void SelfMail::deliver(const TicketPtr& ticket,
                       std::span<const std::byte> data,
                       const Receive& receive) const {
  kernels::copy(data.data(), receive.data, receive.size());
  ticket->succeed(self_);
  receive.ticket->succeed(self_);
}

void SelfMail::received(Bytes payload) {
  sends_.give_back({1, payload});
  keep_held();
}

void SelfMail::receive_held(const Frame& offer, const Receive& receive) {
  offers_.erase(offer.id);
  const auto message = sends_.take(offer.id);
  if (!message) return;
  deliver(message->ticket, message->data, receive);
  keep_held();  // the removed message may have been larger than those behind it
}

void SelfMail::keep_held() {
  while (const auto message = sends_.release()) {
    const auto offer = offers_.find(message->frame.id);
    if (offer == offers_.end()) continue;
    const Matching::Position arrival = offer->second;
    offers_.erase(offer);
    arrival->frame = message->frame;
    fill(*arrival, message->data);
    message->ticket->succeed(self_);
  }
}

void SelfMail::forget_held() {
  sends_.clear();
  offers_.clear();
}

}  // namespace peal::mail
