#include "peal/mail/placed_mail.h"

#include <algorithm>
#include <utility>

#include "peal/kernels/kernels.h"

namespace peal::mail {
namespace {

/// How much is copied at a time, so that other users of the mailbox and the report of a failure do
/// not wait longer.
constexpr Bytes kCopyPiece = 1_MiB;

}  // namespace

PlacedMail::PlacedMail(Rank self, Rank peer, transport::Window* window, Bytes streamed)
    : self_(self),
      peer_(peer),
      window_(window != nullptr && window->reaches(peer) ? window : nullptr),
      streamed_(streamed) {}

std::optional<transport::ArenaOffset> PlacedMail::place(const std::byte* data, Bytes size) {
  if (window_ == nullptr) return std::nullopt;
  const auto place = window_->locate(data, size);
  if (!place) return std::nullopt;
  transport::copy_edges(*place, size, data, window_->address(self_, place->offset, size));
  return place->offset;
}

bool PlacedMail::start(const Frame& offer, Receive receive) {
  if (window_ == nullptr) return false;
  const std::byte* const from = window_->try_address(peer_, {offer.place}, receive.size());
  if (from == nullptr) return false;
  copies_.push_back({std::move(receive), offer.id, from});
  return true;
}

bool PlacedMail::copy_piece() {
  Copy& copy = copies_.front();
  Receive& receive = copy.receive;
  const Bytes size = std::min(receive.size() - receive.have, kCopyPiece);
  kernels::copy(
      copy.from + receive.have.value,
      receive.data + receive.have.value,
      size,
      receive.size() > streamed_ ? kernels::Stores::kStreaming : kernels::Stores::kCached);
  receive.have += size;
  return true;
}

std::optional<PlacedMail::Copied> PlacedMail::take_copied() {
  if (copies_.empty()) return std::nullopt;
  Copy& copy = copies_.front();
  if (copy.receive.have < copy.receive.size() || window_->has_withdrawn(peer_)) return std::nullopt;
  Copied copied{std::move(copy.receive.ticket), copy.id};
  copies_.pop_front();
  return copied;
}

}  // namespace peal::mail
