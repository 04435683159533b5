#include "peal/transport/shm/ring.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/system/prefetch.h"

namespace peal::transport {
namespace {

/// Positions are published at least this often, so that both sides copy at the same time.
/// Publishing after each cache line would take the position's line from the other side each time.
constexpr std::uint64_t kPublishEvery = 16 << 10;

constexpr std::uint64_t kLine = 64;
/// At most this much is fetched back from the reader before the next write.
constexpr std::uint64_t kPrepared = 8 * kLine;

Error corrupt(const RingMemory& memory, std::uint64_t written, std::uint64_t taken) {
  return Error(ErrorKind::kPeerLost,
               fmt::format("the memory shared with rank {} is corrupt: {} bytes written, {} taken, "
                           "room for {}; that process has overwritten it",
                           memory.peer,
                           written,
                           taken,
                           memory.capacity.value));
}

std::uint64_t capacity_of(const RingMemory& memory) {
  return static_cast<std::uint64_t>(memory.capacity.value);
}

/// How many of `size` bytes are contiguous from `position` on, at most kPublishEvery.
std::uint64_t run_at(std::uint64_t position, std::uint64_t size, std::uint64_t capacity) {
  const std::uint64_t to_seam = capacity - (position & (capacity - 1));
  return std::min({size, to_seam, kPublishEvery});
}

}  // namespace

RingWriter::RingWriter(RingMemory memory)
    : memory_(memory), header_(memory.header), data_(memory.data) {}

Bytes RingWriter::write(std::span<const ConstPiece> pieces) {
  std::uint64_t size = 0;
  for (const ConstPiece& piece : pieces) size += piece.size();
  if (size <= RingHeader::Cell::kSize && space(size) >= size) {
    write_short(pieces, size);
    return Bytes(static_cast<std::int64_t>(size));
  }
  // Even if only a cell's worth fits, the cell stays empty: a cell holds a whole write or nothing.
  empty_cell();
  const std::uint64_t before = written_;
  for (const ConstPiece& piece : pieces) {
    const std::uint64_t fits = std::min<std::uint64_t>(piece.size(), space(piece.size()));
    append(piece.first(fits));
    if (fits < piece.size()) break;
  }
  if (published_ != written_) publish();
  prepare(written_ - before);
  return Bytes(static_cast<std::int64_t>(written_ - before));
}

/// Stops at the free room: the lines beyond hold the bytes that the reader takes next.
void RingWriter::prepare(std::uint64_t size) {
  const std::uint64_t capacity = capacity_of(memory_);
  const std::uint64_t most = std::min({size, kPrepared, capacity - (written_ - taken_)});
  for (std::uint64_t ahead = 0; ahead < most; ahead += kLine) {
    prefetch_to_write(data_ + ((written_ + ahead) & (capacity - 1)));
  }
}

std::uint64_t RingWriter::space(std::uint64_t wanted) {
  const std::uint64_t capacity = capacity_of(memory_);
  if (capacity - (written_ - taken_) < wanted) {
    const std::uint64_t taken = header_->taken.load(std::memory_order_acquire);
    if (taken < taken_ || taken > written_) throw corrupt(memory_, written_, taken);
    taken_ = taken;
  }
  return capacity - (written_ - taken_);
}

void RingWriter::append(ConstPiece piece) {
  while (!piece.empty()) {
    const std::uint64_t capacity = capacity_of(memory_);
    const std::uint64_t run = run_at(written_, piece.size(), capacity);
    copy_(piece.data(), data_ + (written_ & (capacity - 1)), Bytes(static_cast<std::int64_t>(run)));
    written_ += run;
    piece = piece.subspan(run);
    if (written_ - published_ >= kPublishEvery) publish();
  }
}

/// Writes into the ring too: the reader may come when the cell already holds a later write.
void RingWriter::write_short(std::span<const ConstPiece> pieces, std::uint64_t size) {
  if (size == 0) return;
  RingHeader::Cell& cell = header_->cell;
  std::array<std::uint64_t, std::tuple_size_v<decltype(cell.words)>> words{};
  auto* const bytes = reinterpret_cast<std::byte*>(words.data());
  std::uint64_t have = 0;
  for (const ConstPiece& piece : pieces) {
    if (!piece.empty()) std::memcpy(bytes + have, piece.data(), piece.size());
    have += piece.size();
  }
  empty_cell();  // so that the reader never takes a mixture of two writes
  for (std::size_t i = 0; i < words.size(); ++i) {
    cell.words[i].store(words[i], std::memory_order_release);
  }
  cell.begin.store(written_ + 1, std::memory_order_release);
  cell_is_empty_ = false;
  append({bytes, size});
  if (published_ != written_) publish();
}

/// Only if the cell is full: the store would take the line from the reader, which polls it.
void RingWriter::empty_cell() {
  if (cell_is_empty_) return;
  header_->cell.begin.store(0, std::memory_order_relaxed);
  cell_is_empty_ = true;
}

void RingWriter::publish() {
  published_ = written_;
  header_->written.store(written_);
}

bool RingWriter::has_space() const noexcept {
  return header_->written.load() - header_->taken.load() != capacity_of(memory_);
}

RingReader::RingReader(RingMemory memory)
    : memory_(memory), header_(memory.header), data_(memory.data) {}

RingReader::Taken RingReader::read(std::span<std::byte> into) {
  const std::uint64_t capacity = capacity_of(memory_);
  const std::uint64_t written = header_->written.load(std::memory_order_acquire);
  const std::uint64_t taken = taken_.load(std::memory_order_relaxed);
  if (written < taken || written - taken > capacity) throw corrupt(memory_, written, taken);
  const std::uint64_t size = std::min<std::uint64_t>(written - taken, into.size());
  if (size > 0 && size == written - taken && size <= RingHeader::Cell::kSize &&
      read_cell(taken, into.first(size))) {
    return {Bytes(static_cast<std::int64_t>(size)), took(size)};
  }
  bool published = false;
  for (std::uint64_t done = 0; done < size;) {
    const std::uint64_t run = run_at(taken + done, size - done, capacity);
    std::memcpy(into.data() + done, data_ + ((taken + done) & (capacity - 1)), run);
    done += run;
    published |= took(run);
  }
  return {Bytes(static_cast<std::int64_t>(size)), published};
}

bool RingReader::took(std::uint64_t size) {
  const std::uint64_t taken = taken_.load(std::memory_order_relaxed) + size;
  taken_.store(taken, std::memory_order_relaxed);
  if (taken - published_ < std::min(kPublishEvery, capacity_of(memory_) / 4)) return false;
  published_ = taken;
  header_->taken.store(taken);
  return true;
}

/// Returns all bytes that are there if they come from the last write. A later write would have
/// another beginning, or be longer than a cell.
bool RingReader::read_cell(std::uint64_t taken, std::span<std::byte> into) const {
  const RingHeader::Cell& cell = header_->cell;
  const auto is_next = [&] { return cell.begin.load(std::memory_order_acquire) == taken + 1; };
  if (!is_next()) return false;
  std::array<std::uint64_t, std::tuple_size_v<decltype(cell.words)>> words;
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i] = cell.words[i].load(std::memory_order_acquire);
  }
  if (!is_next()) return false;
  std::memcpy(into.data(), words.data(), into.size());
  return true;
}

bool RingReader::has_data() const noexcept {
  return header_->written.load() != taken_.load(std::memory_order_relaxed);
}

}  // namespace peal::transport
