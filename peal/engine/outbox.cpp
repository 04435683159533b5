#include "peal/engine/outbox.h"

#include <algorithm>

namespace peal::engine {

void Outbox::add_header(Rank peer, const Header& header) {
  Queue& queue = queues_[static_cast<std::size_t>(peer)];
  queue.header = header.encode();
  add(peer, queue.header);
}

void Outbox::add(Rank peer, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  Queue& queue = queues_[static_cast<std::size_t>(peer)];
  if (!queue.waits) waiting_.push_back(peer);
  queue.waits = true;
  queue.pieces.push_back(bytes);
}

void Outbox::clear() {
  for (Queue& queue : queues_) {
    queue.pieces.clear();
    queue.first = 0;
    queue.waits = false;
  }
  waiting_.clear();
}

bool Outbox::has_queued() const {
  return std::ranges::any_of(
      waiting_, [&](Rank peer) { return !queues_[static_cast<std::size_t>(peer)].pieces.empty(); });
}

Outbox::Pumped Outbox::pump(transport::Channel& channel, Bytes most) {
  Pumped pumped;
  for (std::size_t i = 0; i < waiting_.size();) {
    Queue& queue = queues_[static_cast<std::size_t>(waiting_[i])];
    bool held = false;
    if (queue.pieces.empty() || pumped.bytes >= most) {
      held = !channel.try_flush(waiting_[i]);
    } else {
      const auto pieces = front(queue, most - pumped.bytes);
      const transport::Transfer transfer = channel.try_send(waiting_[i], pieces);
      if (transfer.closed) {
        pumped.lost = waiting_[i];
        return pumped;
      }
      pumped.bytes += transfer.bytes;
      held = transfer.held;
      drop(queue, transfer.bytes);
    }
    queue.waits = held || !queue.pieces.empty();
    if (!queue.waits) {
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
  return pumped;
}

std::span<const transport::ConstPiece> Outbox::front(const Queue& queue, Bytes most) {
  const auto rest = std::span<const transport::ConstPiece>(queue.pieces).subspan(queue.first);
  auto left = static_cast<std::size_t>(most.value);
  for (std::size_t i = 0; i < rest.size(); ++i) {
    if (rest[i].size() > left) {
      front_.assign(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(i));
      if (left > 0) front_.push_back(rest[i].first(left));
      return front_;
    }
    left -= rest[i].size();
  }
  return rest;
}

void Outbox::drop(Queue& queue, Bytes bytes) {
  auto left = static_cast<std::size_t>(bytes.value);
  while (queue.first < queue.pieces.size()) {
    transport::ConstPiece& piece = queue.pieces[queue.first];
    const std::size_t taken = std::min(left, piece.size());
    piece = piece.subspan(taken);
    left -= taken;
    if (!piece.empty()) return;
    ++queue.first;
  }
  queue.pieces.clear();
  queue.first = 0;
}

}  // namespace peal::engine
