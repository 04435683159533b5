#include "peal/transport/window.h"

#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/guarded.h"
#include "peal/transport/arena.h"

namespace peal::transport {
namespace {

/// Memory is committed in steps, so that few allocations need a system call.
constexpr Bytes kCommitStep = 2_MiB;

Bytes bytes_in(std::span<std::byte> span) { return Bytes(static_cast<std::int64_t>(span.size())); }

}  // namespace

struct Window::Impl {
  Impl(std::size_t own_index,
       std::vector<Segment> all,
       Commit commit_memory,
       std::shared_ptr<void> owner)
      : own(own_index),
        segments(std::move(all)),
        commit(std::move(commit_memory)),
        keep_alive(std::move(owner)),
        arena(bytes_in(own_arena())) {}

  std::span<std::byte> own_arena() const { return segments[own].arena; }
  void commit_up_to(Bytes size);

  std::size_t own;
  std::vector<Segment> segments;
  Commit commit;
  std::shared_ptr<void> keep_alive;

  /// The counter that the sleeper of this rank waits for.
  std::atomic<SleepableCounter*> awaited = nullptr;
  /// wake_all was called since a sleeper returned last.
  std::atomic<bool> woken = false;

  Guarded<Arena> arena;
  std::atomic<std::uint64_t> generation = 0;
  /// Apart from `arena`, so that `locate` never waits for the system to find memory.
  Guarded<Bytes> committed;
};

void Window::Impl::commit_up_to(Bytes size) {
  committed.with([&](Bytes& done) {
    if (size <= done) return;
    const Bytes steps =
        Bytes((size.value + kCommitStep.value - 1) / kCommitStep.value * kCommitStep.value);
    const Bytes goal = std::min(steps, bytes_in(own_arena()));
    commit(goal);
    done = goal;
  });
}

Window::Window(Rank self,
               Rank first,
               std::vector<Segment> segments,
               Commit commit,
               std::shared_ptr<void> keep_alive)
    : impl_(std::make_shared<Impl>(static_cast<std::size_t>(self - first),
                                   std::move(segments),
                                   std::move(commit),
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
  // In this order, so that wake_all either sees who sleeps or is seen: it sets `woken` and then
  // stirs what it finds in `awaited`.
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
  if (counter != nullptr) counter->stir();
}

void Window::post(const Notice& notice) {
  ControlPage& page = *pages_[index(self_)];
  page.line_of(notice.sequence).write(notice);
  page.posted.store(notice.sequence, std::memory_order_release);
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
  const auto offset = static_cast<std::uint64_t>(memory - impl_->own_arena().data());
  impl_->arena.with([&](Arena& arena) { arena.deallocate(offset); });
  impl_->generation.fetch_add(1);
}

std::uint64_t Window::generation() const { return impl_->generation.load(); }

std::optional<ArenaOffset> Window::locate(const void* memory, Bytes size) const {
  // Foreign memory is told without a lock.
  const std::span<std::byte> own = impl_->own_arena();
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  const auto begin = reinterpret_cast<std::uintptr_t>(own.data());
  if (address < begin || address >= begin + own.size()) return std::nullopt;
  const std::uint64_t offset = address - begin;
  const bool inside = impl_->arena.with([&](Arena& arena) { return arena.holds(offset, size); });
  return inside ? std::optional(ArenaOffset{offset}) : std::nullopt;
}

void Window::withdraw() noexcept { pages_[index(self_)]->withdrawn.store(1); }

bool Window::has_withdrawn(Rank rank) const noexcept {
  // A load would not keep what was read before it from being read later; this does.
  return pages_[index(rank)]->withdrawn.fetch_or(0) != 0;
}

std::byte* Window::address(Rank rank, ArenaOffset offset) const {
  const std::span<std::byte> arena = impl_->segments[index(rank)].arena;
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
