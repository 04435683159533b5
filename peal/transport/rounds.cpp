#include "peal/transport/rounds.h"

#include <algorithm>
#include <exception>

#include "peal/base/thread.h"

namespace peal::transport {
namespace {

/// Before the thread looks again where a sleep has failed.
constexpr auto kPause = std::chrono::milliseconds(10);

}  // namespace

Rounds::~Rounds() {
  if (!owner_.is_current()) {
    leave_to_parent(std::move(thread_));
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  alarm_.event()->ring();
  if (thread_.joinable()) thread_.join();
}

void Rounds::add(RingChannel& channel, Member& member) {
  {
    const std::lock_guard lock(mutex_);
    entries_.push_back({channel, member});
    try {
      if (!thread_.joinable()) thread_ = start_thread([this] { run(); });
    } catch (...) {
      entries_.pop_back();
      throw;
    }
  }
  alarm_.event()->ring();
}

void Rounds::remove(const Member& member) noexcept {
  std::unique_lock lock(mutex_);
  const auto found =
      std::ranges::find_if(entries_, [&](const Entry& entry) { return &entry.member == &member; });
  if (found == entries_.end()) return;
  found->leaving = true;
  left_.wait(lock, [&] { return inside_ != &*found; });
  entries_.erase(found);
}

void Rounds::run() {
  std::unique_lock lock(mutex_);
  bool woken = true;
  while (!stopping_) {
    const TimePoint next = go_around(lock, woken);
    if (stopping_) return;
    lock.unlock();
    woken = wait_until(next);  // even if `next` has passed: a peer may have rung
    lock.lock();
  }
}

/// Without memory or a working poll(2) the thread goes on by looking.
bool Rounds::wait_until(TimePoint next) noexcept {
  try {
    return alarm_.wait(Deadline(next));
  } catch (const std::exception&) {
    std::this_thread::sleep_for(kPause);
    return true;
  }
}

void Rounds::go_round(Entry& entry) noexcept {
  entry.channel.get_up();
  interests_.clear();
  entry.due = entry.member.round(interests_);
  try {
    if (!entry.channel.lie_down(interests_)) entry.due = kAtOnce;
  } catch (const std::exception&) {  // for want of memory
    entry.due = Clock::now() + kPause;
  }
}

/// The event was hushed before, so data that a peer publishes after this check rings it again. A
/// ringer publishes before it rings, and may be stopped before it marks the sleep as rung. So the
/// thread checks each channel, and not only its doorbell.
TimePoint Rounds::go_around(std::unique_lock<std::mutex>& lock, bool woken) {
  const TimePoint now = Clock::now();
  TimePoint next = TimePoint::max();
  for (Entry& entry : entries_) {
    if (entry.leaving) continue;
    if (entry.due <= now || (woken && entry.channel.may_go_on())) {
      inside_ = &entry;
      lock.unlock();
      go_round(entry);
      lock.lock();
      inside_ = nullptr;
      left_.notify_all();
    }
    next = std::min(next, entry.due);
  }
  return next;
}

}  // namespace peal::transport
