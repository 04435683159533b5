#include "peal/transport/window/registered_pieces.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/transport/window/own_pages.h"

namespace peal::transport {
namespace {

std::uint64_t in_page(const void* memory) {
  return reinterpret_cast<std::uintptr_t>(memory) % static_cast<std::uint64_t>(page_size().value);
}

}  // namespace

std::span<std::byte> RegisteredPiece::pages() const { return whole_pages_in(memory); }

std::uint64_t RegisteredPiece::pages_offset() const {
  return locate(pages().data(), 0_B).offset.value;
}

Bytes RegisteredPiece::arena_size() const {
  const auto page = static_cast<std::uint64_t>(page_size().value);
  const std::uint64_t end = in_page(memory.data()) + memory.size();
  return Bytes(static_cast<std::int64_t>((end + page - 1) / page * page));
}

Location RegisteredPiece::locate(const std::byte* part, Bytes size) const {
  const std::span<std::byte> shared = pages();
  const std::byte* const shared_end = shared.data() + shared.size();
  return {.offset = {arena_offset + in_page(memory.data()) +
                     static_cast<std::uint64_t>(part - memory.data())},
          .head = std::clamp(Bytes(shared.data() - part), 0_B, size),
          .tail = std::clamp(Bytes(part + size.value - shared_end), 0_B, size)};
}

RegisteredPieces::Entry RegisteredPieces::entry_of(const RegisteredPiece& piece) {
  Pieces one{{piece.memory.data(), piece}};
  return one.extract(one.begin());
}

void RegisteredPieces::check_apart(std::span<const std::byte> memory) const {
  const auto after = pieces_.lower_bound(memory.data() + memory.size());
  if (after == pieces_.begin()) return;
  const std::span<std::byte> before = std::prev(after)->second.memory;
  if (before.data() + before.size() <= memory.data()) return;
  throw Error(
      ErrorKind::kUsage,
      fmt::format("{} bytes of memory cannot be registered: some of them are registered already",
                  memory.size()));
}

std::optional<RegisteredPiece> RegisteredPieces::remove(const std::byte* memory) noexcept {
  const auto node = pieces_.extract(memory);
  return node.empty() ? std::nullopt : std::optional(node.mapped());
}

std::optional<Location> RegisteredPieces::locate(const std::byte* memory, Bytes size) const {
  const auto after = pieces_.upper_bound(memory);
  if (after == pieces_.begin()) return std::nullopt;
  const RegisteredPiece& piece = std::prev(after)->second;
  const std::byte* const end = piece.memory.data() + piece.memory.size();
  if (size < 0_B || memory >= end || size > Bytes(end - memory)) return std::nullopt;
  if (piece.pages().empty()) return std::nullopt;
  return piece.locate(memory, size);
}

}  // namespace peal::transport
