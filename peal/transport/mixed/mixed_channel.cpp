#include "peal/transport/mixed/mixed_channel.h"

#include <utility>

namespace peal::transport {

MixedChannel::MixedChannel(std::unique_ptr<PollableChannel> near,
                           std::unique_ptr<PollableChannel> far,
                           std::vector<bool> near_ranks)
    : near_(std::move(near)), far_(std::move(far)), near_ranks_(std::move(near_ranks)) {}

bool MixedChannel::is_near(Rank peer) const {
  const auto index = static_cast<std::size_t>(peer);
  return peer >= 0 && index < near_ranks_.size() && near_ranks_[index];
}

Transfer MixedChannel::try_send(Rank peer, std::span<const ConstPiece> pieces) {
  return route(peer).try_send(peer, pieces);
}

Transfer MixedChannel::try_receive(Rank peer, std::span<std::byte> into) {
  return route(peer).try_receive(peer, into);
}

void MixedChannel::wait(std::span<const Interest> interests, Deadline deadline) {
  wait_by_poll(*this, interests, deadline, entries_);
}

bool MixedChannel::prepare(std::span<const Interest> interests, std::vector<pollfd>& entries) {
  near_interests_.clear();
  far_interests_.clear();
  for (const Interest& interest : interests) {
    (is_near(interest.peer) ? near_interests_ : far_interests_).push_back(interest);
  }
  const std::size_t before = entries.size();
  const bool near_sleeps = near_->prepare(near_interests_, entries);
  near_entries_ = entries.size() - before;
  const bool far_sleeps = far_->prepare(far_interests_, entries);
  return near_sleeps && far_sleeps;
}

void MixedChannel::finish(std::span<const pollfd> entries) {
  near_->finish(entries.first(near_entries_));
  far_->finish(entries.subspan(near_entries_));
}

}  // namespace peal::transport
