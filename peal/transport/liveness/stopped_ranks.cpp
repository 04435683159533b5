#include "peal/transport/liveness/stopped_ranks.h"

#include <algorithm>
#include <utility>

namespace peal::transport {
namespace {

constexpr std::size_t kRanksPerLook = 8;

}  // namespace

StoppedRanks::StoppedRanks(std::vector<Rank> ranks, std::function<Presence(Rank)> presence)
    : ranks_(std::move(ranks)), presence_(std::move(presence)) {}

std::vector<Rank> StoppedRanks::look() {
  for (std::size_t i = 0; i < std::min(kRanksPerLook, ranks_.size()); ++i) {
    const Rank rank = ranks_[next_];
    next_ = (next_ + 1) % ranks_.size();
    if (presence_(rank).state == Presence::State::kStopped) {
      stopped_.insert(rank);
    } else {
      stopped_.erase(rank);
    }
  }
  return {stopped_.begin(), stopped_.end()};
}

}  // namespace peal::transport
