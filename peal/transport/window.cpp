#include "peal/transport/window.h"

#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/guarded.h"
#include "peal/transport/arena.h"
#include "peal/transport/control_page.h"

namespace peal::transport {
namespace {

/// Memory is committed in steps, so that few allocations need a system call.
constexpr Bytes kCommitStep = 2_MiB;

constexpr Rank kNobody = -1;

Bytes bytes_in(std::span<std::byte> span) { return Bytes(static_cast<std::int64_t>(span.size())); }

}  // namespace

struct Window::Impl {
  Impl(Rank self_rank, std::vector<Segment> all, Commit commit_memory, std::shared_ptr<void> owner)
      : self(self_rank),
        segments(std::move(all)),
        commit(std::move(commit_memory)),
        keep_alive(std::move(owner)),
        arena(bytes_in(arena_of(self))) {}

  ControlPage& page(Rank rank) const {
    return *reinterpret_cast<ControlPage*>(segments[static_cast<std::size_t>(rank)].control.data());
  }
  std::span<std::byte> arena_of(Rank rank) const {
    return segments[static_cast<std::size_t>(rank)].arena;
  }
  void commit_up_to(Bytes size);

  Rank self;
  std::vector<Segment> segments;
  Commit commit;
  std::shared_ptr<void> keep_alive;

  /// Whose counter the sleeper of this rank waits for.
  std::atomic<Rank> awaited = kNobody;
  /// wake_all was called since a sleeper returned last.
  std::atomic<bool> woken = false;

  Guarded<Arena> arena;
  /// Apart from `arena`, so that `locate` never waits for the system to find memory.
  Guarded<Bytes> committed;
};

void Window::Impl::commit_up_to(Bytes size) {
  committed.with([&](Bytes& done) {
    if (size <= done) return;
    const Bytes steps =
        Bytes((size.value + kCommitStep.value - 1) / kCommitStep.value * kCommitStep.value);
    const Bytes goal = std::min(steps, bytes_in(arena_of(self)));
    commit(goal);
    done = goal;
  });
}

Window::Window(Rank self,
               std::vector<Segment> segments,
               Commit commit,
               std::shared_ptr<void> keep_alive)
    : impl_(std::make_shared<Impl>(
          self, std::move(segments), std::move(commit), std::move(keep_alive))) {}

int Window::ranks() const { return static_cast<int>(impl_->segments.size()); }

std::span<std::byte> Window::stage(Rank rank) const {
  return impl_->segments[static_cast<std::size_t>(rank)].stage;
}

void Window::signal(std::uint64_t value) { impl_->page(impl_->self).counter.advance(value); }

std::uint64_t Window::counter(Rank rank) const { return impl_->page(rank).counter.value(); }

void Window::sleep_until(Rank rank, std::uint64_t value, Deadline deadline) {
  SleepableCounter& counter = impl_->page(rank).counter;
  // In this order, so that wake_all either sees who sleeps or is seen: it sets `woken` and then
  // stirs what it finds in `awaited`.
  impl_->awaited = rank;
  const std::uint64_t announced = counter.announce_sleep();
  if (SleepableCounter::value_in(announced) < value && !impl_->woken) {
    counter.sleep(announced, deadline);
  }
  impl_->awaited = kNobody;
  impl_->woken = false;
}

void Window::wake_all() noexcept {
  impl_->woken = true;
  const Rank rank = impl_->awaited;
  if (rank != kNobody) impl_->page(rank).counter.stir();
}

void Window::post(const Notice& notice) {
  ControlPage& page = impl_->page(impl_->self);
  page.line_of(notice.sequence).write(notice);
  page.posted.store(notice.sequence, std::memory_order_release);
}

std::optional<Notice> Window::notice(Rank rank, std::uint64_t sequence) const {
  if (sequence == 0) return std::nullopt;
  return impl_->page(rank).line_of(sequence).read(sequence);
}

std::uint64_t Window::posted(Rank rank) const {
  return impl_->page(rank).posted.load(std::memory_order_acquire);
}

std::byte* Window::allocate(Bytes size) {
  const std::uint64_t offset =
      impl_->arena.with([&](Arena& arena) { return arena.allocate(size); });
  std::byte* const memory = impl_->arena_of(impl_->self).data() + offset;
  try {
    impl_->commit_up_to(Bytes(static_cast<std::int64_t>(offset)) + size);
  } catch (...) {
    deallocate(memory);
    throw;
  }
  return memory;
}

void Window::deallocate(std::byte* memory) noexcept {
  const auto offset = static_cast<std::uint64_t>(memory - impl_->arena_of(impl_->self).data());
  impl_->arena.with([&](Arena& arena) { arena.deallocate(offset); });
}

std::optional<ArenaOffset> Window::locate(const void* memory, Bytes size) const {
  // Foreign memory is told without a lock.
  const std::span<std::byte> own = impl_->arena_of(impl_->self);
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  const auto begin = reinterpret_cast<std::uintptr_t>(own.data());
  if (address < begin || address >= begin + own.size()) return std::nullopt;
  const std::uint64_t offset = address - begin;
  const bool inside = impl_->arena.with([&](Arena& arena) { return arena.holds(offset, size); });
  return inside ? std::optional(ArenaOffset{offset}) : std::nullopt;
}

std::byte* Window::address(Rank rank, ArenaOffset offset) const {
  const std::span<std::byte> arena = impl_->arena_of(rank);
  if (offset.value > arena.size()) {
    throw Error(ErrorKind::kBug,
                fmt::format("offset {} is beyond the {} bytes that rank {} shares",
                            offset.value,
                            arena.size(),
                            rank));
  }
  return arena.data() + offset.value;
}

}  // namespace peal::transport
