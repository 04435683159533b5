#include "peal/mail/large_mail.h"

#include <algorithm>
#include <utility>

namespace peal::mail {

// ---- sending

void LargeSends::offer(std::uint64_t id, const TicketPtr& ticket, std::span<const std::byte> data) {
  offered_.emplace(id, Send{ticket, id, data});
}

void LargeSends::accepted(std::uint64_t id) {
  const auto found = offered_.find(id);
  if (found == offered_.end()) return;
  accepted_.push_back(std::move(found->second));
  offered_.erase(found);
}

void LargeSends::start(std::uint64_t id, const TicketPtr& ticket, std::span<const std::byte> data) {
  accepted_.push_back({ticket, id, data});
}

void LargeSends::taken(std::uint64_t id, Rank to) {
  const auto found = offered_.find(id);
  if (found == offered_.end()) return;
  found->second.ticket->succeed(to);
  offered_.erase(found);
}

bool LargeSends::post_piece(FrameStream& stream) {
  Send& send = accepted_.front();
  const auto size = std::min(send.rest.size(), static_cast<std::size_t>(kDataPiece.value));
  const Frame frame{
      .kind = Frame::Kind::kData, .id = send.id, .payload = Bytes(static_cast<std::int64_t>(size))};
  const bool last = size == send.rest.size();
  stream.post(frame, send.rest.first(size), last ? send.ticket : nullptr);
  send.rest = send.rest.subspan(size);
  if (last) accepted_.pop_front();
  return true;
}

void LargeSends::clear() {
  offered_.clear();
  accepted_.clear();
}

// ---- receiving

std::optional<std::string> LargeReceives::objection(const Frame& piece) const {
  const auto found = receives_.find(piece.id);
  if (found == receives_.end()) return "it sends a piece of a message that was not accepted";
  const Receive& receive = found->second;
  if (receive.have + piece.payload > receive.size()) {
    return "it sends more of a message than it offered";
  }
  return std::nullopt;
}

std::optional<Receive> LargeReceives::take(std::uint64_t id, Bytes payload) {
  const auto found = receives_.find(id);
  if (found == receives_.end()) return std::nullopt;
  if (found->second.have > 0_B || found->second.size() != payload) return std::nullopt;
  std::optional<Receive> receive = std::move(found->second);
  receives_.erase(found);
  return receive;
}

std::span<std::byte> LargeReceives::place_of(const Frame& piece) {
  const Receive& receive = receives_.at(piece.id);
  return {receive.data + receive.have.value, static_cast<std::size_t>(piece.payload.value)};
}

void LargeReceives::end_piece(const Frame& piece, Rank from) {
  const auto found = receives_.find(piece.id);
  if (found == receives_.end()) return;
  Receive& receive = found->second;
  receive.have += piece.payload;
  if (receive.have < receive.size()) return;
  receive.ticket->succeed(from);
  receives_.erase(found);
}

}  // namespace peal::mail
