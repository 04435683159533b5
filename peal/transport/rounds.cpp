#include "peal/transport/rounds.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <optional>

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
  all_.with([](All& all) { all.stopping = true; });
  alarm_.event()->ring();
  if (thread_.joinable()) thread_.join();
}

void Rounds::add(RingChannel& channel, Member& member) {
  all_.with([&](All& all) {
    all.entries.push_back({channel, member});
    try {
      if (!thread_.joinable()) thread_ = start_thread([this] { run(); });
    } catch (...) {
      all.entries.pop_back();
      throw;
    }
  });
  alarm_.event()->ring();
}

void Rounds::remove(const Member& member) noexcept {
  const std::optional<Entries::iterator> entry =
      all_.with([&](All& all) -> std::optional<Entries::iterator> {
        const auto found = std::ranges::find_if(
            all.entries, [&](const Entry& one) { return &one.member == &member; });
        if (found == all.entries.end()) return std::nullopt;
        found->leaving = true;
        return found;
      });
  if (!entry) return;
  all_.wait(
      Deadline(TimePoint::max()),
      [&](const All& all) { return all.inside != *entry; },
      [&](All& all) { all.entries.erase(*entry); });
}

void Rounds::run() {
  bool woken = true;
  while (!is_stopping()) {
    const TimePoint next = go_around(woken);
    woken = wait_until(next);  // even if `next` has passed: a peer may have rung
  }
}

bool Rounds::is_stopping() {
  return all_.with([](const All& all) { return all.stopping; });
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
TimePoint Rounds::go_around(bool woken) {
  const TimePoint now = Clock::now();
  TimePoint next = TimePoint::max();
  const auto needs_round = [&](const Entry& entry) {
    return entry.due <= now || (woken && entry.channel.may_go_on());
  };
  const auto go_on = [&](All& all) -> Entry* {
    auto at = all.entries.begin();
    if (all.inside != all.entries.end()) {
      next = std::min(next, all.inside->due);
      at = std::next(all.inside);
    }
    for (; at != all.entries.end(); ++at) {
      if (at->leaving) continue;
      if (needs_round(*at)) break;
      next = std::min(next, at->due);
    }
    all.inside = at;
    return at == all.entries.end() ? nullptr : &*at;
  };
  while (Entry* const entry = all_.update(go_on)) go_round(*entry);
  return next;
}

}  // namespace peal::transport
