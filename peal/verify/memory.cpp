#include "peal/verify/memory.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace peal::verify {

Memory::Memory(Elements size, std::vector<Access> users) : size_(size) {
  pieces_[Elements(0)] = {.first = {}, .written = {}, .reads = std::move(users)};
}

Elements Memory::end_of(Pieces::const_iterator piece) const {
  const auto next = std::next(piece);
  return next == pieces_.end() ? size_ : next->first;
}

std::optional<Access> Memory::unordered_with_read(Range range, const VectorClock& clock) const {
  for (auto at = holder(range.begin); at != pieces_.end() && at->first < range.end(); ++at) {
    if (!clock.knows(at->second.written.event)) return at->second.written;
  }
  return std::nullopt;
}

std::optional<Access> Memory::unordered_with_write(Range range, const VectorClock& clock) const {
  for (auto at = holder(range.begin); at != pieces_.end() && at->first < range.end(); ++at) {
    if (!clock.knows(at->second.written.event)) return at->second.written;
    for (const Access& read : at->second.reads) {
      if (!clock.knows(read.event)) return read;
    }
  }
  return std::nullopt;
}

std::optional<Access> Memory::unread_store(Range range) const {
  for (auto at = holder(range.begin); at != pieces_.end() && at->first < range.end(); ++at) {
    if (at->second.pending == Purpose::kToBeRead) return at->second.written;
  }
  return std::nullopt;
}

Content Memory::peek(Range range) const {
  Content content;
  for (auto at = holder(range.begin); at != pieces_.end() && at->first < range.end(); ++at) {
    const Elements begin = std::max(at->first, range.begin);
    const Elements count = std::min(end_of(at), range.end()) - begin;
    append(content, {at->second.first.at(begin - at->first), count});
  }
  return content;
}

Content Memory::read(Range range, const Access& by) {
  split(range.begin);
  split(range.end());
  for (auto at = pieces_.find(range.begin); at != pieces_.end() && at->first < range.end(); ++at) {
    std::vector<Access>& reads = at->second.reads;
    std::erase_if(reads, [&](const Access& read) { return read.event.actor == by.event.actor; });
    reads.push_back(by);
    at->second.pending = Purpose::kWanted;
  }
  return peek(range);
}

void Memory::write(Elements begin, const Content& content, const Access& by, Purpose purpose) {
  for (const Run& run : content) {
    const Elements end = begin + run.count;
    split(begin);
    split(end);
    pieces_.erase(pieces_.find(begin), pieces_.lower_bound(end));
    pieces_[begin] = {.first = run.first, .written = by, .reads = {}, .pending = purpose};
    begin = end;
  }
}

void Memory::hand_over(const Access& by) {
  for (auto& [begin, piece] : pieces_) {
    piece.written = by;
    piece.reads.clear();
    piece.pending = Purpose::kWanted;
  }
}

void Memory::split(Elements position) {
  if (position >= size_) return;
  const auto at = holder(position);
  if (at->first == position) return;
  Piece rest = at->second;
  rest.first = rest.first.at(position - at->first);
  pieces_.emplace(position, std::move(rest));
}

}  // namespace peal::verify
