#include "peal/transport/window/window.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/guarded.h"
#include "peal/system/per_process.h"
#include "peal/system/shared_file.h"
#include "peal/transport/window/arena.h"
#include "peal/transport/window/own_pages.h"
#include "peal/transport/window/registered_pieces.h"

namespace peal::transport {
namespace {

/// Memory is committed in steps, so that few allocations need a system call.
constexpr Bytes kCommitStep = 2_MiB;

Bytes bytes_in(std::span<std::byte> span) { return Bytes(static_cast<std::int64_t>(span.size())); }

/// What happens to the pages of a piece on deregistration. The beginning of the arena up to
/// `committed` must keep its memory.
Emptied use_after(const RegisteredPiece& piece, Bytes committed) {
  const Bytes begin(static_cast<std::int64_t>(piece.arena_offset));
  return begin >= committed ? Emptied::kGivenBack : Emptied::kKept;
}

}  // namespace

struct Window::Impl {
  Impl(std::size_t own_index, std::vector<Segment> all, int file, std::shared_ptr<void> owner)
      : own(own_index),
        segments(std::move(all)),
        arena_file(file),
        keep_alive(std::move(owner)),
        arena(bytes_in(own_arena())) {}

  std::span<std::byte> own_arena() const { return segments[own].arena; }
  FilePages file_pages(std::uint64_t offset) const {
    return {arena_file, Bytes(static_cast<std::int64_t>(offset)), own_arena().data() + offset};
  }
  void commit_up_to(Bytes size);
  void free_in_arena(std::uint64_t offset) noexcept {
    arena.with([&](Arena& all) { all.deallocate(offset); });
    generation.fetch_add(1);
  }
  RegisteredPiece place(std::span<std::byte> memory);
  void share(const RegisteredPiece& piece);
  void unshare(const RegisteredPiece& piece, Bytes done) noexcept;

  std::size_t own;
  std::vector<Segment> segments;
  int arena_file;
  std::shared_ptr<void> keep_alive;

  /// The counter that the sleeper of this rank waits for.
  std::atomic<SleepableCounter*> awaited = nullptr;
  /// Whether wake_all was called since a sleeper returned last.
  std::atomic<bool> woken = false;

  Guarded<Arena> arena;
  std::atomic<std::uint64_t> generation = 0;
  /// How much of the arena's beginning has memory; registered pages beyond it have memory of their
  /// own. Separate from `arena`, so that `locate` never waits while the system allocates memory.
  Guarded<Bytes> committed;

  const OwnerProcess process;
  Guarded<RegisteredPieces> registered;
  std::atomic<std::size_t> registered_count = 0;  // so that `locate` can avoid the lock
};

void Window::Impl::commit_up_to(Bytes size) {
  committed.with([&](Bytes& done) {
    if (size <= done) return;
    const Bytes steps =
        Bytes((size.value + kCommitStep.value - 1) / kCommitStep.value * kCommitStep.value);
    const Bytes goal = std::min(steps, bytes_in(own_arena()));
    grow_shared_file(arena_file, done, goal);
    done = goal;
  });
}

/// Finds room for the memory to register, at the arena's end. Nothing else should lie there, so its
/// memory can be returned to the system on deregistration.
RegisteredPiece Window::Impl::place(std::span<std::byte> memory) {
  RegisteredPiece piece{memory};
  if (piece.pages().empty()) return piece;
  const auto page = static_cast<std::uint64_t>(page_size().value);
  piece.arena_offset =
      arena.with([&](Arena& all) { return all.allocate_last(piece.arena_size(), page); });
  return piece;
}

void Window::Impl::share(const RegisteredPiece& piece) {
  if (piece.pages().empty()) return;
  const FilePages pages = file_pages(piece.pages_offset());
  const Bytes begin(static_cast<std::int64_t>(piece.arena_offset));
  // The pages at both ends, for the edges that operations copy there.
  grow_shared_file(arena_file, begin, pages.offset);
  grow_shared_file(arena_file, pages.offset + bytes_in(piece.pages()), begin + piece.arena_size());
  share_pages(piece.pages(), pages);
}

/// Makes the piece, or its shared part, private, and then frees its place. On failure it may still
/// lie there. Then the place stays taken and the file's pages stay as they are.
void Window::Impl::unshare(const RegisteredPiece& piece, Bytes done) noexcept {
  if (piece.pages().empty()) return;
  const Emptied emptied = use_after(piece, done);
  if (!unshare_pages(piece.pages(), file_pages(piece.pages_offset()), emptied)) return;
  const Bytes begin(static_cast<std::int64_t>(piece.arena_offset));
  if (emptied == Emptied::kGivenBack) {
    empty_shared_file(arena_file, begin, begin + piece.arena_size());
  }
  free_in_arena(piece.arena_offset);
}

Window::Window(Rank self,
               Rank first,
               std::vector<Segment> segments,
               int arena_file,
               std::shared_ptr<void> keep_alive)
    : impl_(std::make_shared<Impl>(static_cast<std::size_t>(self - first),
                                   std::move(segments),
                                   arena_file,
                                   std::move(keep_alive))),
      self_(self),
      first_(first) {
  for (const Segment& segment : impl_->segments) {
    pages_.push_back(reinterpret_cast<ControlPage*>(segment.control.data()));
  }
}

std::span<std::byte> Window::stage(Rank rank) const { return impl_->segments[index(rank)].stage; }

void Window::sleep_until(Rank rank, std::uint64_t turn, std::uint64_t value, Deadline deadline) {
  SleepableCounter& counter = slot(rank, turn).counter;
  // In this order, so that wake_all either sees the sleeper or is seen by it: wake_all sets `woken`
  // and then interrupts the sleep on the counter in `awaited`.
  impl_->awaited = &counter;
  const std::uint64_t announced = counter.announce_sleep();
  if (SleepableCounter::value_in(announced) < value && !impl_->woken) {
    counter.sleep(announced, deadline);
  }
  impl_->awaited = nullptr;
  impl_->woken = false;
}

void Window::wake_all() noexcept {
  impl_->woken = true;
  SleepableCounter* const counter = impl_->awaited;
  if (counter != nullptr) counter->interrupt();
}

std::optional<Notice> Window::notice(Rank rank, std::uint64_t sequence) const {
  if (sequence == 0) return std::nullopt;
  return pages_[index(rank)]->line_of(sequence).read(sequence);
}

std::uint64_t Window::posted(Rank rank) const {
  return pages_[index(rank)]->posted.load(std::memory_order_acquire);
}

std::byte* Window::allocate(Bytes size) {
  const std::uint64_t offset =
      impl_->arena.with([&](Arena& arena) { return arena.allocate(size); });
  std::byte* const memory = impl_->own_arena().data() + offset;
  try {
    impl_->commit_up_to(Bytes(static_cast<std::int64_t>(offset)) + size);
  } catch (...) {
    deallocate(memory);
    throw;
  }
  return memory;
}

void Window::deallocate(std::byte* memory) noexcept {
  if (!impl_->process.is_current()) return;
  impl_->free_in_arena(static_cast<std::uint64_t>(memory - impl_->own_arena().data()));
}

void Window::register_memory(std::span<std::byte> memory) {
  // One at a time, so that memory found private stays private until it is shared.
  impl_->committed.with([&](const Bytes& done) {
    impl_->registered.with([&](const RegisteredPieces& all) { all.check_apart(memory); });
    check_own_memory(memory);
    RegisteredPieces::Entry entry = RegisteredPieces::entry_of({memory});
    const RegisteredPiece& piece = entry.mapped();
    entry.mapped() = impl_->place(memory);
    try {
      impl_->share(piece);
    } catch (...) {
      impl_->unshare(piece, done);
      throw;
    }
    // Only now: the arena holds the contents that a peer expects there.
    impl_->registered.with([&](RegisteredPieces& all) { all.add(std::move(entry)); });
    impl_->registered_count.fetch_add(1);
    impl_->generation.fetch_add(1);
  });
}

void Window::deregister_memory(const std::byte* memory) noexcept {
  if (!impl_->process.is_current()) return;
  impl_->committed.with([&](const Bytes& done) {
    const auto piece =
        impl_->registered.with([&](RegisteredPieces& all) { return all.remove(memory); });
    if (!piece) return;
    impl_->registered_count.fetch_sub(1);
    impl_->generation.fetch_add(1);
    impl_->unshare(*piece, done);
  });
}

std::uint64_t Window::generation() const { return impl_->generation.load(); }

std::optional<Location> Window::locate(const void* memory, Bytes size) const {
  // Memory that is not registered is recognised without a lock.
  const std::span<std::byte> own = impl_->own_arena();
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  const auto begin = reinterpret_cast<std::uintptr_t>(own.data());
  if (address < begin || address >= begin + own.size()) {
    if (impl_->registered_count == 0) return std::nullopt;
    const auto* const piece = static_cast<const std::byte*>(memory);
    return impl_->registered.with(
        [&](const RegisteredPieces& all) { return all.locate(piece, size); });
  }
  const std::uint64_t offset = address - begin;
  const bool inside = impl_->arena.with([&](Arena& arena) { return arena.holds(offset, size); });
  return inside ? std::optional(Location{.offset = {offset}}) : std::nullopt;
}

void Window::withdraw() noexcept { pages_[index(self_)]->withdrawn.store(1); }

bool Window::has_withdrawn(Rank rank) const noexcept {
  // After a load, earlier reads could still be delayed; after this read-modify-write they cannot.
  return pages_[index(rank)]->withdrawn.fetch_or(0) != 0;
}

std::byte* Window::try_address(Rank rank, ArenaOffset offset, Bytes size) const noexcept {
  const std::span<std::byte> arena = impl_->segments[index(rank)].arena;
  const auto wanted = static_cast<std::uint64_t>(size.value);
  const bool is_inside = wanted <= arena.size() && offset.value <= arena.size() - wanted;
  return is_inside ? arena.data() + offset.value : nullptr;
}

std::byte* Window::address(Rank rank, ArenaOffset offset, Bytes size) const {
  if (std::byte* const memory = try_address(rank, offset, size)) return memory;
  throw Error(ErrorKind::kBug,
              fmt::format("{} bytes at offset {} are beyond the {} bytes that rank {} shares",
                          size.value,
                          offset.value,
                          impl_->segments[index(rank)].arena.size(),
                          rank));
}

}  // namespace peal::transport
